"""Random lives of brokers that change configs, quotas and users in one ZooKeeper: connections lost and won, sessions that
expire, controllers that change, answers late and in any order between brokers.

What must hold: every change is answered once; a change that was acknowledged is lost to none that ended before it began;
and when all is quiet, every broker's image says what the znodes say. SEED=n replays one life, RUNS=n makes more of them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from pykafkad.cluster.client_quotas import record_of
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.publishing import Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper import entities
from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.configs import ClusterConfigs
from pykafkad.cluster.zookeeper.notifications import KEPT_MS
from pykafkad.messages import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import Create, Delete
from pykafkad.zookeeper.config_znodes import read_config
from pykafkad.zookeeper.znodes import PERSISTENT, ControllerNode, parents, write_controller
from tests.zookeeper_lives import ZooKeeperLife, live_through

RUNS = int(os.environ.get("RUNS", "150"))
STEPS = 300
SEEDS = [20_261_119 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
A_RUN = 50
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
CONFIG = "/config/"


class Attempt:
    """One change that was asked for: its keys, and when it was under way."""

    def __init__(self, wanted: dict[str, dict[str, str | None]], began: int) -> None:
        self.wanted = wanted
        self.began = began
        self.ended: int | None = None
        self.is_acknowledged = False


class Broker:
    def __init__(self, life: Life) -> None:
        self.image = Image()
        self.image.take_delta()
        self.zookeeper = life.server.client()
        run = Slices(life.soon, life).run  # type: ignore[arg-type]
        asking, line = Asking(self.zookeeper), Turns(run)
        self.configs = ClusterConfigs(asking, self.image, Publishers(), line.run, run, life.now_ms)
        self.zookeeper.start()
        self.configs.load(lambda error: None)


class Life(ZooKeeperLife[Broker]):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for path in PERSISTENT:
            self.server.do(*map(Create, parents(path)))
        self.elect()
        self.brokers = [Broker(self) for _ in range(self.chance.randint(1, 3))]
        self.attempts: list[Attempt] = []

    # -- what happens

    def elect(self) -> None:
        self.server.do(Delete("/controller"))
        if self.chance.random() < 0.9:
            node = write_controller(ControllerNode(self.chance.randrange(3)))
            self.server.do(Create("/controller", node))

    def change(self) -> None:
        records = [self.record() for _ in range(self.chance.randint(1, 3))]
        attempt = Attempt(entities.changes_of(records), self.time)
        self.attempts.append(attempt)

        def told(error: Any) -> None:
            assert attempt.ended is None
            attempt.ended = self.time
            attempt.is_acknowledged = error is None

        self.chance.choice(self.brokers).configs.commit(records, told)

    def record(self) -> Any:
        value = self.chance.choice([None, str(self.chance.randrange(1_000_000))])
        what = self.chance.randrange(4)
        if what == 0:
            return config_record(2, self.chance.choice("tu"), self.chance.choice("ab"), value), 0
        if what == 1:
            return config_record(4, self.chance.choice(["", "1"]), "k", value), 0
        name = self.chance.choice(["u", "v"])
        if what == 2:
            entities_of: list[dict[str, str | None]] = [
                {"user": name}, {"user": name, "client-id": None}, {"client-id": name},
            ]  # fmt: skip
            quota = None if value is None else float(value)
            return record_of(self.chance.choice(entities_of), "producer_byte_rate", quota), 0
        if value is None:
            return RemoveUserScramCredentialRecord(name=name, mechanism=1), 0
        record = UserScramCredentialRecord(name=name, mechanism=1, iterations=int(value))
        record.salt, record.stored_key, record.server_key = b"s", b"k", b"v"
        return record, 0

    def disturb(self) -> None:
        client = self.chance.choice(self.brokers).zookeeper
        what = self.chance.random()
        if what < 0.4 and client.is_connected:
            client.disconnect()
        elif what < 0.7 and not client.is_connected:
            client.reconnect()
        elif what < 0.8 and client.session_id:
            client.expire()
        elif what < 0.9:
            self.elect()
        else:
            self.ms += self.chance.choice([1, 1000, KEPT_MS])

    def live(self) -> None:
        for _ in range(STEPS):
            what = self.chance.random()
            if what < 0.06:
                self.change()
            elif what < 0.10:
                self.disturb()
            else:
                self.move()

    def settle(self) -> None:
        """Nothing more happens to them."""
        self.server.do(Delete("/controller"), Create("/controller", write_controller(ControllerNode(0))))
        super().settle()

    # -- what must hold

    def stored(self) -> dict[str, dict[str, str]]:
        """Of all znodes below /config, those that hold something."""
        found = {
            path.removeprefix(CONFIG): read_config(data)
            for path, data in self.server.tree("/config").items()
            if data is not None and not path.startswith("/config/changes")
        }
        return {path: configs for path, configs in found.items() if configs}

    def check(self) -> None:
        assert all(each.ended is not None for each in self.attempts)
        stored = self.stored()
        for broker in self.brokers:
            for known in {*stored, *entities.known_paths(broker.image)}:
                assert entities.records_of(broker.image, known, stored.get(known, {})) == [], known
        for path, key in {
            (where, key) for each in self.attempts for where, keys in each.wanted.items() for key in keys
        }:
            self.check_value(path, key, stored.get(path, {}).get(key))

    def check_value(self, path: str, key: str, value: str | None) -> None:
        """Somebody wrote it (or it was never there), and nobody after that."""
        nobody = Attempt({path: {key: None}}, -1)
        nobody.ended = -1
        those = [nobody, *(each for each in self.attempts if key in each.wanted.get(path, {}))]
        last = max((each.began for each in those if each.is_acknowledged), default=-1)
        may_be = [each.wanted[path][key] for each in those if each.ended is None or each.ended >= last]
        assert value in may_be, (path, key, value)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_a_life(seeds: list[int]) -> None:
    live_through(seeds, Life)
