"""The broker stops under its groups and starts again: every client continues where it was."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compat_tests.conftest import running_broker
from compat_tests.tools.toolbox import Toolbox

from .conftest import CONFIG
from .flavours import FLAVOURS, Flavour
from .stage import Stage

AT_ONCE = 4
OUTLASTS_MS = 10_000  # the time without a broker; a new member waits until the old one's session times out
LASTING = {**CONFIG, "group.consumer.session.timeout.ms": str(OUTLASTS_MS)}


@pytest.fixture
def broker() -> Iterator[Any]:
    with running_broker(LASTING) as made:
        yield made


class Group:
    """A group of one member."""

    def __init__(self, bootstrap: str, toolbox: Toolbox, flavour: Flavour) -> None:
        self.stage = Stage(bootstrap, toolbox)
        self.flavour = flavour

    def begin(self) -> None:
        self.partitions = self.stage.new_topic(2)
        topic = self.partitions[0].topic
        (self.member,) = self.stage.members(self.flavour, topic, "", session_ms=OUTLASTS_MS)
        self.member.join()
        self.stage.settled([self.member], self.partitions)
        self._read_and_commit(3)

    def go_on(self) -> None:  # what the client complains about meanwhile does not matter
        self._read_and_commit(6)

    def _read_and_commit(self, committed: int) -> None:
        self.stage.delivered(self.stage.produce(self.partitions, 3), [self.member])
        self.member.ask("commit")
        found = [self.member.committed(partition) for partition in self.partitions]
        assert found == [committed] * 2, (self.member, found)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_groups_go_on_after_the_broker_was_away(broker: Any, toolbox: Toolbox, end: str) -> None:
    groups = [Group(broker.bootstrap_servers, toolbox, one) for one in FLAVOURS]
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Group.begin, groups))
            getattr(broker, end)()
            broker.start()
            list(pool.map(Group.go_on, groups))
    finally:
        for group in groups:
            group.stage.close()
