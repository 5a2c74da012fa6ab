"""The effects of changes of the metadata while the broker runs equal those of a start with the same log.

Random requests (topics created, grown, deleted and created again under the same names, configs of topics, brokers and
telemetry altered, leaders elected, quotas) come between the steps of earlier ones, and sometimes a write fails. In the
end the existing logs, their epochs and configs, the broker's configuration and the telemetry subscriptions must equal
those of the image, and those of a broker that starts with the same metadata log, on the same disk and on an empty one.
SEED=n replays one run, RUNS=n makes more of them.
"""

from __future__ import annotations

import errno
import io
import os
import random
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.slices import Slices, finish, is_work
from tests.unit.config_kit import (
    BROKER,
    CLIENT_METRICS,
    DELETE,
    SET,
    TOPIC,
    altered,
    handler,
    open_configurable,
)
from tests.unit.metadata_fakes import DIRECTORY_ID, FakeContext, FakeStorage, Hasty, Later, Stored, creatable

RUNS = int(os.environ.get("RUNS", "40"))
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else [20_261_119 + run for run in range(RUNS)]
REQUESTS = 60
NAMES = ("a", "b", "c", "d")
TOPIC_KEYS, BROKER_KEYS = ("retention.ms", "max.message.bytes"), ("log.retention.ms", "message.max.bytes")


class Disk(FakeStorage):
    """Logs that a start finds again; those of other topics would be set aside."""

    def __init__(self, logs: dict[tuple[str, int], bytes]) -> None:
        super().__init__()
        self.logs = logs
        self.strays: list[tuple[str, int]] = []

    def open_all(
        self, known: dict[tuple[str, int], bytes], config_of: Any, placement: Any = None
    ) -> list[tuple[str, int]]:
        for key, topic_id in list(self.logs.items()):
            if known.get(key) == topic_id:
                self.partitions[key] = Stored(topic_id, -1, DIRECTORY_ID)
                self.configs[key[0]] = config_of(key[0])
            else:
                self.strays.append(key)
        return [key for key in known if key not in self.partitions]

    def create(
        self, topic: str, index: int, topic_id: bytes, config: Any, epoch: int, directory: bytes, members: Any
    ) -> None:
        found = self.partitions.get((topic, index))
        assert found is None or found.topic_id == topic_id, "the log of a deleted topic is taken for its own"
        super().create(topic, index, topic_id, config, epoch, directory, members)
        self.logs[topic, index] = topic_id

    def delete(self, topic: str, index: int) -> None:
        super().delete(topic, index)
        del self.logs[topic, index]


def open_on(directory: Path, logs: dict[tuple[str, int], bytes], later: Later | None = None) -> Any:
    slices = Slices(later.soon, Hasty()) if later else None
    return open_configurable(directory, later, slices, Disk(logs))


class Life:
    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = random.Random(seed)
        self.later = Later()
        self.logs: dict[tuple[str, int], bytes] = {}
        self.broker = open_on(directory, self.logs, self.later)
        self.asked = self.told = 0
        self._write = self.broker.log.write
        self.broker.log.write = self._perhaps_write

    def _perhaps_write(self, data: bytes) -> None:
        if self.chance.random() < 0.05:
            raise OSError(errno.ENOSPC, "no space left on device")
        self._write(data)

    def _done(self, *result: Any) -> None:
        self.told += 1

    def live(self) -> None:
        requests = (
            (self.create, 6), (self.grow, 3), (self.delete, 2), (self.renew, 2), (self.alter_topic, 5),
            (self.alter_broker, 3), (self.alter_metrics, 2), (self.elect, 2), (self.change_quota, 1),
        )  # fmt: skip
        for _ in range(REQUESTS):
            self.chance.choices([each for each, _ in requests], [weight for _, weight in requests])[0]()
            self.asked += 1
            for _ in range(self.chance.choice((0, 0, 1, 3, 40))):
                if self.later.waiting:
                    self.later.step()
        self.later.all()
        assert self.told == self.asked and self.broker.controller.idle

    # -- requests

    def create(self) -> None:
        configs: dict[str, Any] = (
            {"retention_ms": str(self.chance.randrange(1, 9))} if self.chance.random() < 0.3 else {}
        )
        topics = [
            creatable(name, self.chance.choice((1, 3, 12, 90)), **configs)
            for name in self.chance.sample(NAMES, 2)
        ]
        self.broker.controller.create_topics(topics, False, self._done)

    def renew(self) -> None:
        """Delete a topic, and create it again at once."""
        name = self.chance.choice(NAMES)
        topic_id = self.broker.controller.names.id_of(name)
        self.broker.controller.delete_topics([topic_id or bytes(16)], lambda errors: None)
        self.broker.controller.create_topics([creatable(name, 5)], False, self._done)

    def grow(self) -> None:
        kind = messages.CreatePartitionsRequest.CreatePartitionsTopic
        count = self.chance.choice((4, 15, 100))
        topics = [kind(name=self.chance.choice(NAMES), count=count, assignments=None)]
        self.broker.controller.create_partitions(topics, False, self._done)

    def delete(self) -> None:
        ids = [self.broker.controller.names.id_of(name) for name in self.chance.sample(NAMES, 2)]
        self.broker.controller.delete_topics([each for each in ids if each is not None], self._done)

    def alter_topic(self) -> None:
        self.alter(TOPIC, self.chance.choice(NAMES), self.chance.choice(TOPIC_KEYS))

    def alter_broker(self) -> None:
        self.alter(BROKER, self.chance.choice(("", "1")), self.chance.choice(BROKER_KEYS))

    def alter_metrics(self) -> None:
        self.alter(CLIENT_METRICS, self.chance.choice(("m", "n")), "interval.ms")

    def alter(self, kind: int, name: str, key: str) -> None:
        value = str(self.chance.randrange(100, 5_000))
        change = (key, SET, value) if self.chance.random() < 0.7 else (key, DELETE, None)
        request = messages.IncrementalAlterConfigsRequest(resources=[altered(kind, name, change)])
        context = Context(self)
        result = handler("incremental_alter_configs").handle(self.broker, request, context)
        result = finish(result) if is_work(result) else result
        if result is not context:
            self._done()

    def elect(self) -> None:
        """Begin a new leader epoch of an existing partition."""

        def plan() -> Any:
            there = [topic for topic in self.broker.image.topics.values() if topic.partitions]
            if not there:
                return []
            topic = self.chance.choice(there)
            index = self.chance.randrange(len(topic.partitions))
            if self.broker.controller.names.id_of(topic.name) != topic.id:
                return []
            return [(messages.PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=1), 0)]

        self.broker.controller.in_turn(plan, self._done)

    def change_quota(self) -> None:
        entity = [messages.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")]
        remove = self.chance.random() < 0.5
        record = messages.ClientQuotaRecord(entity=entity, key="consumer_byte_rate", value=1.0, remove=remove)
        self.broker.controller.commit([(record, 0)], self._done)


class Context(FakeContext):
    def __init__(self, life: Life) -> None:
        super().__init__(1)
        self._life = life

    def answer(self, response: Any) -> None:
        super().answer(response)
        self._life._done()


def state(broker: Any) -> dict[str, Any]:
    """The effects of the metadata, except for leader epochs, which begin anew with each start."""
    storage = broker.storage
    names = {name for name, _ in storage.partitions}
    return {
        "logs": {key: found.topic_id for key, found in storage.partitions.items()},
        "configs": {name: [storage.configs[name][key] for key in TOPIC_KEYS] for name in names},
        "broker": [broker.config[key] for key in BROKER_KEYS],
        "layers": [broker.controller.dynamic.of_all, broker.controller.dynamic.of_this],
        "telemetry": {name: found.interval_ms for name, found in broker.telemetry.subscriptions.items()},
        "quotas": broker.image.client_quotas,
    }


def check_image(broker: Any) -> None:
    """The logs are those of the image, with its epochs and configs."""
    topics = broker.image.topics.values()
    expected = {
        (topic.name, index): (topic.id, partition.leader_epoch)
        for topic in topics
        for index, partition in enumerate(topic.partitions)
    }
    assert {key: found[:2] for key, found in broker.storage.partitions.items()} == expected
    for topic in topics:
        if topic.partitions:
            for key in topic.configs:
                assert str(broker.storage.configs[topic.name][key]) == topic.configs[key]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_start_comes_to_what_running_came_to(seed: int, tmp_path: Path, said: io.StringIO) -> None:
    try:
        life = Life(seed, tmp_path)
        life.live()
        check_image(life.broker)
        came_to = state(life.broker)
        life.broker.log.close()  # as after kill -9
        for logs in (dict(life.logs), {}):
            again = open_on(tmp_path, logs)
            check_image(again)
            assert state(again) == came_to
            assert not again.storage.strays
            again.log.close()
        assert not any(words in said.getvalue() for words in ("could not follow", "is offline"))
    except BaseException as error:
        error.add_note(f"SEED={seed} replays it")
        raise
