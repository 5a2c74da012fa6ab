"""`pykafkad transactions` and kafka-transactions on one Kafka, which has transactions of all kinds: open, ended, none
yet, and some that no coordinator knows. Then kafka-transactions on pykafkad and on Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.raw import RawClient
from compat_tests.tools.both import Both, Side
from compat_tests.tools.toolbox import Toolbox
from compat_tests.tools.twins import NAME, Twins
from pykafkad import errors, messages
from pykafkad.hot import records
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

TRANSACTION = 1
LONG_AGO_MS = 20 * 60_000
GHOST = 4000  # a producer id that no coordinator has given out
NOT_READY = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.CONCURRENT_TRANSACTIONS,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.OPERATION_NOT_ATTEMPTED,
}
READY_SECONDS = 30
DURATION = 7  # the column of `describe` that differs from run to run


class Producer:
    """A transactional producer in versions from before the second part of KIP-890."""

    def __init__(self, client: RawClient, id: str, producer_id: int = -1) -> None:
        self._client = client
        self.id = id
        self.producer_id, self.epoch = producer_id, 0

    def begin(self) -> Producer:
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id])
        init = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=600_000, producer_id=-1, producer_epoch=-1
        )
        self._ask(find, 4, lambda answer: [answer.coordinators[0].error_code])  # makes the topic, at first
        answer = self._ask(init, 4, lambda answer: [answer.error_code])
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def add(self, topic: str, *partitions: int) -> Producer:
        row = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[row],
        )
        self._ask(
            request,
            3,
            lambda answer: [
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            ],
        )
        return self

    def produce(self, topic: str, partition: int, ago_ms: int = 0, now_ms: int = 0) -> Producer:
        batch = records.build(
            [(b"k", b"v", [], (now_ms or int(time.time() * 1000)) - ago_ms)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=0,
            transactional=True,
        )
        row = ProduceRequest.TopicProduceData(
            name=topic, partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=batch)]
        )
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=30_000, topic_data=[row])
        self._ask(request, 11, lambda answer: [answer.responses[0].partition_responses[0].error_code])
        return self

    def _ask(self, request: Any, version: int, codes: Callable[[Any], list[int]]) -> Any:
        """Ask until the coordinator and the partitions are ready; nothing may be refused for another reason."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            answer = self._client.ask(request, version)
            left = [code for code in codes(answer) if code]
            if not left:
                return answer
            assert NOT_READY.issuperset(left)
            time.sleep(0.1)
        pytest.fail(f"{type(request).__name__} is not answered")

    def end(self, committed: bool) -> None:
        """The second answer comes when the markers are written."""
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        for _ in range(2):
            self._ask(request, 4, lambda answer: [answer.error_code])


@pytest.fixture(scope="module")
def twins(toolbox: Toolbox, reference: Side) -> Twins:
    """Partitions need not be added to a transaction here: that is how transactions came to hang before KIP-890."""
    twins = Twins(toolbox, reference.bootstrap)
    how = ["--alter", "--broker", "1", "--add-config", "transaction.partition.verification.enable=false"]
    assert twins.ours("configs", *how).code == 0
    with client_of(reference) as client:
        create(client, wide=3, one=1)
        Producer(client, "open").begin().add("wide", 0, 1, 2).produce("wide", 0).produce("wide", 2)
        Producer(client, "committed").begin().add("wide", 0).produce("wide", 0).end(committed=True)
        Producer(client, "aborted").begin().add("wide", 2).add("one", 0).produce("one", 0).end(
            committed=False
        )
        Producer(client, "empty").begin()
        Producer(client, "not-added").begin().produce("wide", 1, LONG_AGO_MS)
        Producer(client, "late").begin().add("wide", 1).produce("wide", 1, LONG_AGO_MS)
        for topic, partition in (("wide", 0), ("one", 0), ("wide", 2)):
            Producer(client, "no-such", GHOST).produce(topic, partition, 2 * LONG_AGO_MS)
        Producer(client, "no-such", GHOST + 1).produce("one", 0, 90_000)
    return twins


def client_of(side: Side) -> RawClient:
    return RawClient(int(side.bootstrap.rpartition(":")[2]))


def create(client: RawClient, **partitions: int) -> None:
    topics = [
        messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in partitions.items()
    ]
    answer = client.ask(messages.CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
    assert [row.error_code for row in answer.topics] == [0] * len(topics)


SHOWN = [
    "list",
    "list --duration-filter -1",
    "list --duration-filter=0",
    "list --duration-filter 86400000",
    "list --transactional-id-pattern .*t.*",
    "list --transactional-id-pattern [",
    "list --transactional-id-pattern no-such",
    "describe --transactional-id empty",
    "describe --transactional-id no-such",
    "describe --transactional-id=",
    "describe-producers --topic wide --partition 0",
    "describe-producers --topic one --partition 0 --broker-id 1",
    "describe-producers --topic in/valid --partition 0",
    "find-hanging --topic wide",
    "find-hanging --topic wide --partition 1",
    "find-hanging --topic one --max-transaction-timeout 0",
    "find-hanging --topic one --max-transaction-timeout -2",
    "find-hanging --topic wide --max-transaction-timeout 30",
    "find-hanging --broker-id 1",
    "find-hanging --broker-id 1 --topic one",
    "find-hanging --broker-id 9",
    "find-hanging --topic no-such",
    "abort --topic one --partition 0 --start-offset 0",
    "abort --topic one --partition 0 --producer-id 4001 --producer-epoch -2 --coordinator-epoch 0",
]
REFUSED = [
    "no-such",
    "des --transactional-id x",
    "list --duration-filter x",
    "list --duration-filter 9223372036854775808",
    "list --duration-filter",
    "list --no-such",
    "list word --no-such",
    "list --topic wide",
    "describe",
    "describe --transactional-id --topic",
    "describe-producers",
    "describe-producers --topic wide",
    "describe-producers --partition 0",
    "describe-producers --topic wide --partition 2147483648",
    "find-hanging",
    "find-hanging --partition 0",
    "find-hanging --broker-id 1 --partition 0",
    "abort",
    "abort --topic one --partition 0",
    "abort --topic one --partition 0 --producer-id 1",
    "abort --topic one --partition 0 --producer-id 1 --producer-epoch 0",
    "abort --topic one --partition 0 --producer-id 1 --producer-epoch 32768 --coordinator-epoch 0",
    "forceTerminateTransaction",
    "",
]


@pytest.mark.parametrize("words", SHOWN)
def test_what_is_shown(twins: Twins, words: str) -> None:
    twins.same("transactions", *words.split())


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(twins: Twins, words: str) -> None:
    twins.same("transactions", *words.split())


@pytest.mark.parametrize("id", ["open", "committed", "aborted", "late"])
def test_transactions_that_have_begun(twins: Twins, id: str) -> None:
    """How long ago that was is another time in each run."""
    how = ["describe", "--transactional-id", id]
    ours, theirs = twins.ours("transactions", *how), twins.theirs("transactions", *how)
    shown = [[line.split("\t") for line in printed.out.splitlines()] for printed in (ours, theirs)]
    for title, row in shown:
        assert title[DURATION] == "TransactionDurationMs"
        assert 0 <= int(row.pop(DURATION)) < 3_600_000
    assert shown[0] == shown[1]


def test_the_log_of_the_coordinator(twins: Twins, reference: Side) -> None:
    logs = sorted(Path(reference.data).glob("__transaction_state-*/*.log"))
    written = [str(log) for log in logs if log.stat().st_size]
    assert written
    how = ["dump-log", "--no-bootstrap", "--transaction-log-decoder", "--files", ",".join(written)]
    shown = twins.same(*how).out
    assert '{"transactionalId":"aborted"}' in shown and '"transactionStatus":3' in shown
    twins.same(*how, "--skip-record-metadata")


def test_ghosts_are_found_and_aborted(twins: Twins, reference: Side) -> None:
    with client_of(reference) as client:
        create(client, **{"ghost-ours": 2, "ghost-them": 2})
        now_ms = int(time.time() * 1000)
        for name in ("ghost-ours", "ghost-them"):
            for index in (0, 1):
                Producer(client, "no-such", GHOST).produce(name, index, LONG_AGO_MS, now_ms)
    where = ["--topic", f"ghost-{NAME}", "--partition"]
    by_ids = ["--producer-id", str(GHOST), "--producer-epoch", "0", "--coordinator-epoch"]
    for partition, how in (("0", ["--start-offset", "0"]), ("1", [*by_ids, "-1"])):
        assert twins.same("transactions", "find-hanging", *where, partition).out.count("ghost") == 1
        twins.same("transactions", "abort", *where, partition, *how)
        assert twins.same("transactions", "find-hanging", *where, partition).out.count("ghost") == 0
    twins.same("transactions", "abort", *where, "1", *by_ids, "5")
    assert "has been fenced" in twins.same("transactions", "abort", *where, "1", *by_ids, "0").err


def test_a_transaction_is_terminated(twins: Twins, reference: Side) -> None:
    with client_of(reference) as client:
        for id in ("force-ours", "force-them"):
            Producer(client, id).begin().add("wide", 0)
    twins.same("transactions", "forceTerminateTransaction", "--transactionalId", f"force-{NAME}")
    for id in ("force-ours", "force-them"):
        shown = twins.ours("transactions", "describe", "--transactional-id", id).out
        assert "Ongoing" not in shown and shown.splitlines()[1].split("\t")[3].strip() == "2"
    twins.same("transactions", "forceTerminateTransaction", "--transactionalId", f"not-begun-{NAME}")


# -- kafka-transactions on both


def without(*places: int) -> Callable[[str], str]:
    """Rows without the cells that differ: producer ids, times and durations."""

    def row(line: str) -> str:
        return " ".join(word for place, word in enumerate(line.split()) if place not in places)

    return row


def test_kafkas_tool_on_both(both: Both) -> None:
    verify = "transaction.partition.verification.enable"
    both.same(
        "configs",
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        f"{verify}=false",
    )
    topic, ids = both.topic("transacting", 2), [both.name("transactor") for _ in range(5)]
    now_ms = int(time.time() * 1000)
    for side in both.sides:
        with client_of(side) as client:
            Producer(client, ids[0]).begin().add(topic, 0, 1).produce(topic, 0)
            Producer(client, ids[1]).begin().add(topic, 1).produce(topic, 1).end(committed=True)
            Producer(client, ids[2]).begin().add(topic, 0).end(committed=False)
            Producer(client, ids[3]).begin()
            Producer(client, ids[4]).begin().add(topic, 0).produce(topic, 0, LONG_AGO_MS, now_ms)
            Producer(client, "no-such", GHOST).produce(topic, 0, LONG_AGO_MS, now_ms)
            Producer(client, "no-such", GHOST + 1).produce(topic, 1, LONG_AGO_MS, now_ms)
    for filters in ([], ["--duration-filter", "86400000"], ["--transactional-id-pattern", ".*[1-3]"]):
        both.same("transactions", "list", *filters, rewrite=without(2))
    both.same("transactions", "list", "--transactional-id-pattern", "[", exits=1)
    for transactional_id in ids:
        both.same(
            "transactions", "describe", "--transactional-id", transactional_id, rewrite=without(2, 6, 7)
        )
    both.same("transactions", "describe", "--transactional-id", "no-such", exits=1)
    where = ("--topic", topic, "--partition")
    for partition in ("0", "1"):
        both.same("transactions", "describe-producers", *where, partition, rewrite=without(0, 4))
    both.same("transactions", "find-hanging", "--topic", topic, has=str(GHOST), rewrite=without(7))
    both.same("transactions", "abort", *where, "1", "--start-offset", "2")
    by_ids = ("--producer-id", str(GHOST), "--producer-epoch", "0", "--coordinator-epoch")
    both.same("transactions", "abort", *where, "0", *by_ids, "3")
    both.same("transactions", "abort", *where, "0", *by_ids, "2", exits=1, has="has been fenced")
    assert len(both.same("transactions", "find-hanging", "--topic", topic).out) == 1
    both.same("transactions", "forceTerminateTransaction", "--transactionalId", ids[0])
    both.same("transactions", "list", rewrite=without(2))
    both.same("configs", "--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", verify)
