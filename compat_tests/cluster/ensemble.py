"""Three ZooKeepers that are one: any of them may go, and with two of them nothing is agreed upon any more."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from compat_tests.cluster.brokers import need_zookeeper
from pykafkad.local_cluster import zookeeper
from pykafkad.testing.ports import lasting_port

SIZE = 3
DEADLINE_S = 60.0


class Member(zookeeper.ZooKeeper):
    """One of them. `voters`: the lines that name all."""

    def __init__(self, directory: Path, id: int, port: int, voters: dict[str, str]) -> None:
        super().__init__(str(directory), port)
        self._voters = voters
        data = directory / "data"
        data.mkdir(parents=True)
        (data / "myid").write_text(f"{id}\n")

    def _config(self) -> str:
        lines = {"initLimit": "10", "syncLimit": "5", **self._voters}
        return super()._config() + "".join(f"{key}={value}\n" for key, value in lines.items())


class Ensemble:
    def __init__(self, directory: Path) -> None:
        need_zookeeper()
        ports = different_ports(3 * SIZE)
        voters = {f"server.{id}": f"{zookeeper.HOST}:{ports.pop()}:{ports.pop()}" for id in range(SIZE)}
        self.members = [Member(directory / str(id), id, ports.pop(), voters) for id in range(SIZE)]

    @property
    def connect(self) -> str:
        return ",".join(each.address for each in self.members)

    def __enter__(self) -> Ensemble:
        try:
            for id in range(SIZE):
                self.start(id)
            self.until_serving()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for each in self.members:
            if each.process.is_running:
                each.process.kill()

    def start(self, id: int) -> None:
        self.members[id].start(zookeeper.jars())

    def kill(self, id: int) -> None:
        self.members[id].process.kill()

    def serving(self) -> int:
        """How many answer: none, when too few are left to agree."""
        return sum(zookeeper.answers(zookeeper.HOST, each.port) for each in self.members)

    def until_serving(self, count: int = SIZE) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while (found := self.serving()) != count:
            assert time.monotonic() < deadline, f"{found} of {SIZE} ZooKeepers serve, not {count}"
            time.sleep(0.1)


def different_ports(count: int) -> list[int]:
    found: dict[int, None] = {}
    while len(found) < count:
        found[lasting_port(zookeeper.HOST)] = None
    return list(found)
