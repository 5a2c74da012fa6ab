"""How the controllers are reached: where each listens, who of them is active, and asking that one.

The config names some (a voter by its id, a bootstrap server by a number of ours below 0), their answers and the log
name the others. `ask` asks the active one, and asks again, in a moment, where it is not reached or says that it is
active no more, until the time for that is up. Invariant: `done` is called once, later, with the answer or an OSError.
"""

from __future__ import annotations

import errno

from pykafkad import errors
from pykafkad.config_kraft import BOOTSTRAP, NAMES, VOTERS, address_of, voters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.net.peers import Peers, Purpose

    Address = tuple[str, int]
    Build = Callable[[int], Any]

FIRST_BOOTSTRAP = -2  # as Kafka numbers them, downwards
AGAIN_MS = 50
PATIENCE_MS = 60_000
NOBODY = -1


class Controllers:
    def __init__(
        self,
        config: Any,
        connect: Callable[[Callable[[int], Address | None]], Peers],
        call_later: Callable[..., Any],
        now_ms: Callable[[], int],
    ) -> None:
        """`connect` makes the connections, given where a node listens."""
        self.voters = voters_of(config[VOTERS])
        self._addresses: dict[int, Address] = dict(self.voters)
        for number, text in enumerate(config[BOOTSTRAP]):
            self._addresses[FIRST_BOOTSTRAP - number] = address_of(text)
        self.configured = list(self._addresses)
        self._listener: str = config[NAMES][0].upper()
        self.peers = connect(self._addresses.get)
        self.active = NOBODY
        self._call_later, self._now_ms = call_later, now_ms
        self._closed = False

    def follow(self, active: int) -> None:
        """That one is active now. Whoever waits for an answer of the one before asks this one."""
        before, self.active = self.active, active
        if before not in (active, NOBODY):
            self.peers.drop(before)

    def learn(self, addresses: Iterable[tuple[int, Address]]) -> None:
        for node, address in addresses:
            if node >= 0 and self._addresses.get(node) != address:
                self._addresses[node] = address
                self.peers.drop(node)

    def voters_are(self, record: bytes) -> list[int]:
        """As a dynamic quorum says it (KIP-853): their ids."""
        from pykafkad.messages import VotersRecord

        voters = VotersRecord.decode(record, 0).voters
        self.learn(
            (voter.voter_id, (point.host, point.port))
            for voter in voters
            for point in voter.endpoints
            if point.name.upper() == self._listener
        )
        return [voter.voter_id for voter in voters if voter.voter_id in self._addresses]

    def ask(
        self,
        purpose: Purpose,
        api_key: int,
        newest: int,
        build: Build,
        done: Callable[[Any], object],
        *,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        Question(self, purpose, api_key, newest, build, done, self._now_ms() + patience_ms).ask()

    def try_again(self, question: Question) -> bool:
        """False: there is no more time for it."""
        if self._closed or self._now_ms() >= question.deadline_ms:
            return False
        self._call_later(AGAIN_MS, question.ask)
        return True

    def close(self) -> None:
        self._closed = True
        self.peers.close()


class Question:
    def __init__(
        self,
        owner: Controllers,
        purpose: Purpose,
        api_key: int,
        newest: int,
        build: Build,
        done: Callable[[Any], object],
        deadline_ms: int,
    ) -> None:
        self._owner, self._purpose = owner, purpose
        self._api_key, self._newest, self._build, self._done = api_key, newest, build, done
        self.deadline_ms = deadline_ms

    def ask(self) -> None:
        active = self._owner.active
        if active == NOBODY:
            self._answered(ConnectionError(errno.ENOTCONN, "nobody is known to be the active controller"))
            return
        link = self._owner.peers.to(active, self._purpose)
        if link.is_full:
            self._answered(ConnectionError(errno.EAGAIN, "too many requests wait for the active controller"))
        else:
            link.ask_built(self._api_key, self._newest, self._build, self._answered)

    def _answered(self, answer: Any) -> None:
        is_passing = isinstance(answer, OSError) or getattr(answer, "error_code", 0) == errors.NOT_CONTROLLER
        if not is_passing or not self._owner.try_again(self):
            self._done(answer)
