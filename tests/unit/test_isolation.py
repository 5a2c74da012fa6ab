"""A broker of a cluster is cut off for a drill: everything that joins it to others is, and is mended together."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pykafkad.cluster.zookeeper.isolation import Isolation
from pykafkad.control import isolation
from pykafkad.control.lines import CommandError


class Line:
    """Notes what is done to it."""

    def __init__(self, name: str, done: list[str]) -> None:
        self.name, self.done = name, done

    def cut(self, *listener: str) -> None:
        self.done.append(" ".join(["cut", self.name, *listener]))

    def mend(self) -> None:
        self.done.append(f"mend {self.name}")


class Broker:
    def __init__(self) -> None:
        self.done: list[str] = []
        lines: list[Any] = [Line(name, self.done) for name in ("listeners", "zookeeper", "peers", "channels")]
        self.cluster: Any = self
        self.isolation = Isolation(lines[0], "INTERNAL", lines[1])
        assert [self.isolation.joined(each) for each in lines[2:]] == lines[2:]


def test_all_lines_are_cut_and_mended() -> None:
    broker = Broker()
    assert list(isolation.isolate(cast("Any", broker), None, {})) == [{"isolated": True}]
    assert broker.done == ["cut listeners INTERNAL", "cut zookeeper", "cut peers", "cut channels"]
    assert broker.isolation.is_on
    broker.done.clear()
    assert list(isolation.heal(cast("Any", broker), None, {})) == [{"isolated": False}]
    assert broker.done == ["mend listeners", "mend zookeeper", "mend peers", "mend channels"]
    assert not broker.isolation.is_on


def test_a_single_node_cannot_be_cut_off() -> None:
    broker = Broker()
    broker.cluster = None
    for command in (isolation.isolate, isolation.heal):
        with pytest.raises(CommandError, match="nobody to be cut off from"):
            list(command(cast("Any", broker), None, {}))
    assert broker.done == []
