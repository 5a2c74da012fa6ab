"""The broker under the storm: a process with two log directories, topics, groups, and a well-behaved neighbour.

Owns the process, its directory, a connection of its own to restore things with (`tidy`), and what is known of it
(`names`). `tidy` removes what the storm has made, so that the memory that is left is the broker's own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pykafkad import messages
from pykafkad.hot import records
from pykafkad.testing import Broker, Client
from tests.storm.names import COMPACTED, GROUPS, NEIGHBOUR, TOPICS, Names
from tests.storm.neighbour import Neighbour

HOLD_MS = 50  # a longer callback of the loop is logged, and is a fault
CONFIG = {
    "num.partitions": 2,
    "offsets.topic.num.partitions": 4,
    "log.segment.delete.delay.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.max.session.timeout.ms": 10_000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 3000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 500,
}
PARTITIONS_KEPT = 40  # a larger topic is created anew
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
LOADING = (14, 15, 16)  # no coordinator, or not yet
SETTLE_SECONDS = 10.0
IDLE_SHARE = 0.05


class World:
    def __init__(
        self, *, neighbour: bool = True, config: dict[str, Any] | None = None, topics: int = 0
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pykafkad-storm-"))
        os.environ["PYKAFKAD_HOLD_MS"] = str(HOLD_MS)
        directories = [str(self.home / name) for name in ("data", "jbod")]
        self.broker = Broker(
            config=CONFIG | {"log.dirs": ",".join(directories)} | (config or {}), start=False
        )
        self.broker.log_path = str(self.home / "broker.log")
        self.names = Names()
        self.names.directories = directories
        self._client: Client | None = None
        self._log_at = 0
        self.neighbour: Neighbour | None = None
        try:
            self._begin(topics)
            if neighbour:
                self.neighbour = Neighbour(*self.address, self.broker.pid)
        except BaseException:
            self.close()
            raise

    def _begin(self, topics: int) -> None:
        self.broker.start()
        self._create({NEIGHBOUR: 1} | TOPICS | {f"many-{number}": 10 for number in range(topics)})
        self.learn_topics()
        for name in TOPICS:
            batch = records.build([(b"k", b"v" * 50, [], 1_795_000_000_000 + index) for index in range(100)])
            row = messages.ProduceRequest.PartitionProduceData(index=0, records=batch)
            topic = messages.ProduceRequest.TopicProduceData(name=name, partition_data=[row])
            self.call(messages.ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)
        self._wait_for_coordinators()
        self.names.learn(*self.asked(messages.InitProducerIdRequest(transaction_timeout_ms=1000), 4))
        self.names.learn(
            *self.asked(messages.GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
        )

    def _wait_for_coordinators(self) -> None:
        """__consumer_offsets is created when the first coordinator is looked up."""
        self.call(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=list(GROUPS)), 4)
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            described = self.call(messages.DescribeGroupsRequest(groups=list(GROUPS)), 5)
            if not any(group.error_code in LOADING for group in described.groups):
                return
            time.sleep(0.01)
        raise AssertionError("the groups cannot be asked for")

    # -- the broker

    @property
    def address(self) -> tuple[str, int]:
        return self.broker.host, self.broker.port

    @property
    def lives(self) -> bool:
        return self.broker.running

    def call(self, request: Any, version: int) -> Any:
        """Call on our own connection, or once more on a new one if it was closed meanwhile."""
        for last in (False, True):
            try:
                if self._client is None:
                    self._client = Client(*self.address, client_id="world")
                return self._client.call(request, version)
            except (OSError, ConnectionError):
                if self._client is not None:
                    self._client.close()
                    self._client = None
                if last:
                    raise
        raise AssertionError

    def asked(self, request: Any, version: int) -> tuple[Any, Any]:
        return request, self.call(request, version)

    def log(self) -> list[str]:
        """Its lines since the last time."""
        with open(self.broker.log_path, "rb") as file:
            file.seek(self._log_at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._log_at += len(whole)
        return whole.decode(errors="replace").splitlines()

    def memory(self) -> dict[str, int]:
        """In KiB: `now` without files, `peak` since `forget_peak`."""
        rows = dict.fromkeys(("RssAnon", "VmRSS", "VmHWM"), 0)
        with open(f"/proc/{self.broker.pid}/status", encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in rows:
                    rows[name] = int(value.split()[0])
        return {"now": rows["RssAnon"], "all": rows["VmRSS"], "peak": rows["VmHWM"]}

    def forget_peak(self) -> None:
        with suppress(OSError), open(f"/proc/{self.broker.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def ran_ms(self) -> float:
        """The processor time that all its threads have taken."""
        return time.clock_gettime_ns((~self.broker.pid << 3) | 2) / 1e6

    def settle(self, seconds: float = SETTLE_SECONDS) -> bool:
        """Wait until the broker has no work left."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ran, began = self.ran_ms(), time.monotonic()
            time.sleep(0.05)
            if (
                self.ran_ms() - ran
                < IDLE_SHARE * (time.monotonic() - began) * 1000 + (4 if self.neighbour else 0) * 5
            ):
                return True
        return False

    # -- putting things right

    def tidy(self) -> None:
        """Remove what the storm has made and altered, as far as its own requests could do it."""
        self._features()
        self._configs()
        self._quotas()
        self._groups()
        self._topics()

    def _features(self) -> None:
        answer = self.call(
            messages.ApiVersionsRequest(client_software_name="world", client_software_version="1"), 3
        )
        finalized = {row.name: row.max_version_level for row in answer.finalized_features}
        update = messages.UpdateFeaturesRequest.FeatureUpdateKey
        wanted = [
            update(feature=row.name, max_version_level=row.max_version, upgrade_type=1)
            for row in answer.supported_features
            if row.name in ("metadata.version", "group.version")
            and finalized.get(row.name) != row.max_version
        ]
        if wanted:
            self.call(messages.UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=wanted), 1)

    def _configs(self) -> None:
        """Brokers' configs first, since they may keep others out."""
        listed = self.call(messages.ListConfigResourcesRequest(resource_types=[METRICS, GROUP]), 1)
        resources = [(row.resource_type, row.resource_name) for row in listed.config_resources]
        rows = [(BROKER, ""), (BROKER, "1"), *resources, *((TOPIC, name) for name in TOPICS)]
        kind = messages.AlterConfigsRequest.AlterConfigsResource
        for resource_type, name in rows[:2]:
            self.call(
                messages.AlterConfigsRequest(
                    resources=[kind(resource_type=resource_type, resource_name=name)]
                ),
                2,
            )
        self.call(
            messages.AlterConfigsRequest(
                resources=[kind(resource_type=t, resource_name=n) for t, n in rows[2:]]
            ),
            2,
        )

    def _quotas(self) -> None:
        found = self.call(messages.DescribeClientQuotasRequest(), 1)
        request = messages.AlterClientQuotasRequest
        entries = [
            request.EntryData(
                entity=[
                    request.EntityData(entity_type=e.entity_type, entity_name=e.entity_name)
                    for e in row.entity
                ],
                ops=[request.OpData(key=value.key, remove=True) for value in row.values],
            )
            for row in found.entries or ()
        ]
        if entries:
            self.call(request(entries=entries), 1)

    def _groups(self) -> None:
        groups = [row.group_id for row in self.call(messages.ListGroupsRequest(), 5).groups]
        if groups:
            self.call(messages.DeleteGroupsRequest(groups_names=groups), 2)

    def _topics(self) -> None:
        found = self.call(messages.MetadataRequest(topics=None), 12).topics
        kept = {row.name: len(row.partitions) for row in found}
        gone = [
            name
            for name, partitions in kept.items()
            if not name.startswith(("__", "many-"))
            and name != NEIGHBOUR
            and (name not in TOPICS or partitions > PARTITIONS_KEPT)
        ]
        if gone:
            self.call(messages.DeleteTopicsRequest(topic_names=gone, timeout_ms=30_000), 5)
        self._create({name: TOPICS[name] for name in TOPICS if name not in kept or name in gone})
        self.learn_topics()

    def _create(self, topics: dict[str, int]) -> None:
        request = messages.CreateTopicsRequest
        compact = [request.CreatableTopicConfig(name="cleanup.policy", value="compact")]
        rows = [
            request.CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=1,
                configs=compact if name in COMPACTED else [],
            )
            for name, count in topics.items()
        ]
        for start in range(0, len(rows), 100):
            answer = self.call(request(topics=rows[start : start + 100], timeout_ms=30_000), 7)
            for row in answer.topics:
                if row.error_code not in (0, 36):
                    raise AssertionError(
                        f"{row.name} could not be created: {row.error_code} {row.error_message}"
                    )

    def learn_topics(self) -> None:
        answer = self.call(messages.MetadataRequest(topics=None), 12)
        self.names.topic_ids = {
            row.name: row.topic_id for row in answer.topics if row.name in TOPICS or row.name < "n"
        }
        self.names.cluster_id = answer.cluster_id

    # -- the end

    def close(self, *, keep: bool = False) -> None:
        if self.neighbour is not None:
            self.neighbour.close()
        if self._client is not None:
            self._client.close()
        self.broker.close()
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
