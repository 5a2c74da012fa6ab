"""`pykafkad transactions` and kafka-transactions on one Kafka, which has transactions of all kinds: open, ended, none
yet, and some that no coordinator knows. Then kafka-transactions on pykafkad and on Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.raw import RawClient
from compat_tests.raw_producer import RawProducer as Producer
from compat_tests.tools.both import Both, Side
from compat_tests.tools.toolbox import Toolbox
from compat_tests.tools.twins import NAME, Twins
from pykafkad import messages

LONG_AGO_MS = 20 * 60_000
GHOST = 4000  # a producer id that no coordinator has given out
DURATION = 7  # the column of `describe` that differs from run to run


@pytest.fixture(scope="module")
def twins(toolbox: Toolbox, reference: Side) -> Twins:
    """Partitions need not be added to a transaction here: that is how transactions came to hang before KIP-890."""
    twins = Twins(toolbox, reference.bootstrap)
    how = ["--alter", "--broker", "1", "--add-config", "transaction.partition.verification.enable=false"]
    assert twins.ours("configs", *how).code == 0
    long_ago_ms = int(time.time() * 1000) - LONG_AGO_MS
    with client_of(reference) as client:
        create(client, wide=3, one=1)
        Producer(client, "open").begin().add("wide", 0, 1, 2).produce("wide", 0).produce("wide", 2)
        Producer(client, "committed").begin().add("wide", 0).produce("wide", 0).end(committed=True)
        Producer(client, "aborted").begin().add("wide", 2).add("one", 0).produce("one", 0).end(
            committed=False
        )
        Producer(client, "empty").begin()
        Producer(client, "not-added").begin().produce("wide", 1, at_ms=long_ago_ms)
        Producer(client, "late").begin().add("wide", 1).produce("wide", 1, at_ms=long_ago_ms)
        for topic, partition in (("wide", 0), ("one", 0), ("wide", 2)):
            Producer(client, "no-such", GHOST).produce(topic, partition, at_ms=long_ago_ms - LONG_AGO_MS)
        Producer(client, "no-such", GHOST + 1).produce("one", 0, at_ms=long_ago_ms + LONG_AGO_MS - 90_000)
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
        long_ago_ms = int(time.time() * 1000) - LONG_AGO_MS
        for name in ("ghost-ours", "ghost-them"):
            for index in (0, 1):
                Producer(client, "no-such", GHOST).produce(name, index, at_ms=long_ago_ms)
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
    long_ago_ms = int(time.time() * 1000) - LONG_AGO_MS
    for side in both.sides:
        with client_of(side) as client:
            Producer(client, ids[0]).begin().add(topic, 0, 1).produce(topic, 0)
            Producer(client, ids[1]).begin().add(topic, 1).produce(topic, 1).end(committed=True)
            Producer(client, ids[2]).begin().add(topic, 0).end(committed=False)
            Producer(client, ids[3]).begin()
            Producer(client, ids[4]).begin().add(topic, 0).produce(topic, 0, at_ms=long_ago_ms)
            Producer(client, "no-such", GHOST).produce(topic, 0, at_ms=long_ago_ms)
            Producer(client, "no-such", GHOST + 1).produce(topic, 1, at_ms=long_ago_ms)
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
