"""Finds the topics that match a group's regular expressions: work that is done piece by piece.

All expressions of a group are resolved together: when one is new, when there are new topics, and periodically; not more
often than every MIN_INTERVAL_MS. The result is written to the log, where a new coordinator finds it.

Invariants: the work is bounded, whatever the expressions and the topic names are. An expression that takes more steps
than STEPS_MAX and STEPS_A_CHARACTER allow matches no topic, and so do those that follow after MATCHES_MAX matches. Only
one automaton exists at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafkad.pure.groups.topic_watch import watch_of
from pykafkad.pure.regex.automaton import Steps, TooMuchWork, for_topics
from pykafkad.pure.regex.parsing import InvalidPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.pure.groups.settings import GroupSettings

MIN_INTERVAL_MS = 10_000
NAMES_A_YIELD = 16
STEPS_MAX = 20_000_000  # a few seconds of work
STEPS_A_CHARACTER = 50  # of topic names; most expressions need one
MATCHES_MAX = 500_000  # more do not fit into a record batch either

Topics = frozenset[str]
MayDescribe = Callable[[str], bool]
NO_TOPICS: Topics = frozenset()


class Resolved:
    """The topics that match an expression; `version` is that of the topics it was compared with."""

    __slots__ = ("time_ms", "topics", "version")

    def __init__(self, topics: frozenset[str], version: int, time_ms: int) -> None:
        self.topics = topics
        self.version = version
        self.time_ms = time_ms


class Resolution:
    """`subscribed` are the group's expressions. Those that lose their last member meanwhile are skipped. Topics that
    `may_describe` does not hold for, match none: it is that of the member whose heartbeat asked for the resolution."""

    def __init__(
        self,
        subscribed: Mapping[str, int],
        settings: GroupSettings,
        now_ms: int,
        may_describe: MayDescribe | None = None,
    ) -> None:
        self.start_ms = now_ms
        self.is_done = False
        self.given_up: list[str] = []
        self.names: list[str] = []  # the topics to be compared
        self._subscribed = subscribed
        self._settings = settings
        self._may_describe = may_describe
        self._matches = 0

    def keeps_others_back(self, now_ms: int) -> bool:
        """Whether no other resolution may begin, because this one is in progress, or has just ended and could not be
        written."""
        return not self.is_done or now_ms <= self.start_ms + MIN_INTERVAL_MS

    def run(self) -> Steps[dict[str, Resolved]]:
        try:
            return (yield from self._run())
        finally:
            self.is_done = True

    def _run(self) -> Steps[dict[str, Resolved]]:
        topics = self._settings.topics
        watch_of(self._settings).newest_version()  # topics that are created from here on are not looked at
        version = topics.offset
        self.names = list(topics.topics)
        most_steps = STEPS_MAX + STEPS_A_CHARACTER * sum(map(len, self.names))
        results = {}
        for pattern in list(self._subscribed):
            if pattern in self._subscribed:
                found = yield from self._topics_of(pattern, most_steps)
                results[pattern] = Resolved(found, version, self.start_ms)
        return results

    def _topics_of(self, pattern: str, most_steps: int) -> Steps[Topics]:
        try:
            return (yield from self._search(pattern, most_steps))
        except TooMuchWork:
            self.given_up.append(pattern)
        except InvalidPattern:
            pass  # it was valid when a member sent it, but perhaps to another version of the broker
        return NO_TOPICS

    def _search(self, pattern: str, most_steps: int) -> Steps[Topics]:
        automaton = yield from for_topics(pattern)
        automaton.most_steps = most_steps
        found = set()
        for index, name in enumerate(self.names):
            if (yield from automaton.matches(name)) and self._may_see(name):
                found.add(name)
            if not index % NAMES_A_YIELD:
                yield
                if pattern not in self._subscribed:
                    break
        self._matches += len(found)
        if self._matches > MATCHES_MAX:
            raise TooMuchWork
        yield from watch_of(self._settings).learn(found)  # the group's epoch depends on the hashes
        return frozenset(found)

    def _may_see(self, name: str) -> bool:
        return self._may_describe is None or self._may_describe(name)
