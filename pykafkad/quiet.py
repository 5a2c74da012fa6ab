"""Log lines that clients can cause again and again: one a minute of each kind and address.

Owns the table of the lines that were logged, and counts those left out since, which are reported when the minute is
over. The table is bounded: if there are too many addresses, the others are counted together as `other addresses`. At
debug level all lines are logged.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.logs import Logger

Allows = Callable[["Logger", str, str], bool]  # Quiet.allows, for modules that do not know the broker

MINUTE_MS = 60_000
KINDS_MAX = 256  # entries of the table, and so lines a minute
OTHERS = "other addresses"


def always(log: Logger, kind: str, address: str) -> bool:
    """`Quiet.allows` where there is no loop."""
    return True


class Quiet:
    def __init__(self, now_ms: Callable[[], int], call_later: Callable[..., object]) -> None:
        """`now_ms` is a clock that never goes back."""
        self._now_ms = now_ms
        self._call_later = call_later
        self._left_out: dict[tuple[str, str], int] = {}  # the oldest first
        self._said: dict[tuple[str, str], tuple[int, Logger]] = {}  # the time and the logger; the same keys

    def allows(self, log: Logger, kind: str, address: str) -> bool:
        """Whether to log the line now. If not, it is counted."""
        if log.debugs:
            return True
        key = (kind, address)
        if key not in self._said and len(self._said) >= KINDS_MAX:
            key = ("more lines", OTHERS)
        if key in self._said:
            self._left_out[key] += 1
            return False
        if not self._said:
            self._call_later(MINUTE_MS, self._end_minutes)
        self._said[key] = self._now_ms(), log
        self._left_out[key] = 0
        return True

    def _end_minutes(self) -> None:
        """Report how many lines were left out of those kinds whose minute is over, and forget these."""
        now_ms = self._now_ms()
        for key, (said_ms, log) in list(self._said.items()):
            if said_ms + MINUTE_MS > now_ms:
                self._call_later(said_ms + MINUTE_MS - now_ms, self._end_minutes)
                return
            del self._said[key]
            if count := self._left_out.pop(key):
                kind, address = key
                log.info(f"{kind}: {count} more from {address} within a minute")


def kind_of(text: str) -> str:
    """What lines of one kind have in common: the words before the first number, name or sign."""
    words = []
    for word in text.split(" "):
        if not word.isalpha():
            break
        words.append(word)
    return " ".join(words) or "trouble"
