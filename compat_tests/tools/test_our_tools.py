"""`pykafkad TOOL` and Kafka's tool of the same purpose, with the same arguments, on one Apache Kafka broker.

Their standard outputs are compared byte by byte, in order, and so are the exit codes; of standard error only the first
line, which is the message for the user. Changes of the broker are made twice, by each tool with its own names (NAME in
the arguments; both names are equally long, so that columns are as wide).
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from compat_tests.tools.both import Side
from compat_tests.tools.toolbox import SECONDS, Toolbox, run_alone
from compat_tests.tools.twins import NAME, Twins

STARTS = 5
START_RATIO = 0.1


@pytest.fixture(scope="module")
def twins(toolbox: Toolbox, reference: Side) -> Twins:
    twins = Twins(toolbox, reference.bootstrap)
    for name, partitions in (("read", "1"), ("spread", "3"), ("t1", "1"), ("t2", "2"), ("t5", "1")):
        done = twins.ours("topics", "--create", "--topic", name, "--partitions", partitions)
        assert done.code == 0, done.err
    lines = "h1:a,h2:-\tk1\tv1\nh1:b\tk2\t-\n-\t-\tv3\n"
    properties = ["parse.key=true", "parse.headers=true", "null.marker=-"]
    pairs = [word for pair in properties for word in ("--reader-property", pair)]
    assert twins.ours("produce", "--topic", "read", *pairs, stdin=lines).code == 0
    assert twins.ours("produce", "--topic", "read", "--compression-codec", "lz4", stdin="packed\n").code == 0
    return twins


TOPICS = [
    "--list",
    "--list --exclude-internal --topic t.*",
    "--describe --topic t.*",
    "--describe --topic t1,t2,spread",
    "--describe --topic spread --partition-size-limit-per-response 1",
    "--describe --topic t.* --topics-with-overrides",
    "--describe --topic t.* --under-replicated-partitions",
    "--describe --topic t.* --at-min-isr-partitions",
    "--describe --topic t.* --under-min-isr-partitions",
    "--describe --topic t.* --unavailable-partitions",
    "--describe --topic no-such",
    "--describe --topic no-such --if-exists",
    "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ",
    "--describe --topic-id xx",
    "--describe --topic [",
    "--create --topic t1",
    "--create --topic t1 --if-not-exists",
    "--create --topic no --partitions 0",
    "--create --topic no --partitions x",
    "--create --topic no --replication-factor 3",
    "--create --topic no --replication-factor 99999",
    "--create --topic no --replica-assignment 1:1",
    "--create --topic no --replica-assignment 1:2,3",
    "--create --topic no --replica-assignment 9",
    "--create --topic no --config retention.ms=abc",
    "--create --topic no --config retention.ms",
    "--create --topic no --config no.such=1",
    "--create --topic no!",
    "--alter --topic spread --partitions 3",
    "--alter --topic no-such --partitions 3",
    "--alter --topic spread",
    "--delete --topic no-such",
    "--delete --topic no-such --if-exists",
    "--list --describe",
    "--list --topic t1 --partitions 5",
    "--list --topic t1 --topic t2",
    "--list --no-such-option",
    "--list -topic t1",
    "--topic",
]
CONFIGS = [
    "--describe --topic t1",
    "--describe --topic t1 --all",
    "--describe --topic no-such",
    "--describe --broker 1",
    "--describe --broker 7",
    "--describe --broker x",
    "--describe --broker-defaults",
    "--describe --entity-type brokers",
    "--describe --entity-type brokers --entity-name 1 --all",
    "--describe --broker-logger 1",
    "--describe --group no-such",
    "--describe --client-metrics no-such",
    "--describe --user no-such",
    "--describe --entity-type no-such",
    "--describe",
    "--describe --topic t1 --entity-type topics",
    "--describe --no-such-option",
    "--alter --topic t1",
    "--alter --topic t1 --add-config no.such=1",
    "--alter --topic no-such --add-config retention.ms=1",
    "--alter --topic t1 --add-config retention.ms",
    "--alter --topic t1 --add-config retention.ms=soon",
    "--alter --broker 1 --add-config no.such.key",
    "--alter --client c --add-config no.such=1",
    "--alter --user u --add-config producer_byte_rate=x",
    "--alter --user u --delete-config producer_byte_rate",
    "--alter --ip 127.0.0.1 --add-config no=1",
    "--alter --broker-logger 1 --add-config no.such.logger=DEBUG",
    "--alter --describe --topic t1",
]
OFFSETS = [
    "",
    "--time earliest",
    "--time -3 --topic read",
    "--time 1 --topic read",
    "--time soon",
    "--topic spread --partitions 0,2",
    "--partitions x",
    "--topic-partitions spread:1-,t.*:0",
    "--topic-partitions spread:-2,:9",
    "--topic-partitions spread:x",
    "--topic-partitions spread --topic spread",
    "--topic no-such",
    "--exclude-internal-topics",
]
CONSUME = [
    "--topic read --from-beginning --max-messages 4",
    "--topic read --partition 0 --offset 1 --max-messages 2",
    "--topic read --partition 0 --offset earliest --max-messages 4 --formatter-property print.key=true "
    "--formatter-property print.headers=true --formatter-property print.offset=true --formatter-property "
    "print.timestamp=true --formatter-property print.partition=true --formatter-property print.epoch=true",
    "--topic read --from-beginning --max-messages 4 --formatter-property print.key=true --formatter-property "
    "key.separator=| --formatter-property null.literal=NULL --formatter-property line.separator=$",
    "--topic read --from-beginning --max-messages 1 --property print.key=true",
    "--topic read --from-beginning --max-messages 2 --command-property group.protocol=consumer",
    "--include re.* --from-beginning --max-messages 4",
    "--topic read --from-beginning --timeout-ms 2000 --isolation-level read_committed",
    "--topic read --partition 0 --offset earliest --max-messages 2 --formatter "
    "org.apache.kafka.tools.consumer.NoOpMessageFormatter",
    "--topic read --offset 5",
    "--topic read --partition 0 --offset -5",
    "--topic read --include x",
    "--topic read --group g --partition 0",
    "--topic read --group a --command-property group.id=b",
    "--topic read --from-beginning --command-property auto.offset.reset=latest",
    "--no-such-option",
]
GROUPS = [
    "--list",
    "--list --state",
    "--list --type",
    "--list --state --type",
    "--list --state empty",
    "--list --type no-such",
    "--describe --group no-such",
    "--describe --group no-such --members",
    "--describe --group no-such --state",
    "--describe",
    "--describe --group g --members --offsets",
    "--describe --group g --topic t",
    "--delete --group no-such",
    "--delete",
    "--delete --group g --topic t",
    "--delete-offsets --group no-such --topic t2",
    "--delete-offsets --group no-such",
    "--reset-offsets --group g",
    "--reset-offsets --group g --topic t2 --to-latest --to-earliest --dry-run",
    "--reset-offsets --group g --topic t2 --to-earliest --dry-run",
    "--reset-offsets --group g --topic t2 --to-earliest --dry-run --execute",
    "--reset-offsets --group g --topic no-such --to-earliest --dry-run",
    "--reset-offsets --group g --topic t2:0,9 --to-earliest --dry-run",
    "--reset-offsets --group g --topic t2:x --to-earliest --dry-run",
    "--reset-offsets --group g --topic read --to-offset 2 --dry-run --export",
    "--reset-offsets --group g --topic read --shift-by 2 --dry-run",
    "--reset-offsets --group g --topic read --to-datetime 2020-01-01T00:00:00.000 --dry-run",
    "--reset-offsets --group g --topic read --to-datetime 2099-01-01T00:00:00.000 --dry-run",
    "--reset-offsets --group g --topic read --by-duration PT1H --dry-run",
    "--reset-offsets --group g --topic read --to-current --dry-run",
    "--reset-offsets --group g --dry-run --to-latest",
    "--members",
]
PRODUCE = [
    "--topic read --request-required-acks 5",
    "--topic read --compression-codec no-such",
    "--topic read --reader-property headers.separator=:",
    "--topic read --producer-property acks=1 --command-property acks=1",
    "--no-such-option",
    "",
]


@pytest.mark.parametrize("words", TOPICS)
def test_topics(twins: Twins, words: str) -> None:
    twins.same("topics", *words.split(), first_error=False)


@pytest.mark.parametrize("words", CONFIGS)
def test_configs(twins: Twins, words: str) -> None:
    twins.same("configs", *words.split())


@pytest.mark.parametrize("words", OFFSETS)
def test_offsets(twins: Twins, words: str) -> None:
    twins.same("offsets", *words.split(), first_error=False)


@pytest.mark.parametrize("words", CONSUME)
def test_consume(twins: Twins, words: str) -> None:
    twins.same("consume", *words.split(), first_error=False)


@pytest.mark.parametrize("words", GROUPS)
def test_groups(twins: Twins, words: str) -> None:
    twins.same("groups", *words.split(), first_error=False)


@pytest.mark.parametrize("words", PRODUCE)
def test_produce_refuses(twins: Twins, words: str) -> None:
    twins.same("produce", *words.split(), stdin="x\n", first_error=False)


@pytest.mark.parametrize(
    "words", ["--list", "--list --consumer", "--list --group-type classic", "--list --share"]
)
def test_the_listing_of_all_groups(twins: Twins, words: str) -> None:
    theirs = twins.theirs("groups", *words.split())
    ours = twins.ours("groups", *words.split(), *(["--all-types"] if words == "--list" else []))
    assert (ours.code, ours.out) == (theirs.code, theirs.out)


def test_log_dirs(twins: Twins) -> None:
    twins.same("log-dirs", "--describe")
    twins.same("log-dirs", "--describe", "--topic-list", "spread,read")
    twins.same("log-dirs", "--describe", "--broker-list", "1,9")
    twins.same("log-dirs", "--topic-list", "spread", first_error=False)


# -- what changes the broker


def test_a_topics_life(twins: Twins) -> None:
    name = f"life-{uuid.uuid4().hex[:6]}-{NAME}"
    twins.same("topics", "--create", "--topic", name, "--config", "retention.ms=5000")
    twins.same("configs", "--describe", "--topic", name)
    twins.same(
        "configs", "--alter", "--topic", name, "--add-config", "cleanup.policy=[delete,compact],segment.ms=7"
    )
    twins.same("configs", "--alter", "--topic", name, "--delete-config", "retention.ms,segment.ms")
    twins.same("configs", "--describe", "--topic", name)
    twins.same("topics", "--alter", "--topic", name, "--partitions", "3")
    twins.same("offsets", "--topic", name)
    twins.same("topics", "--delete", "--topic", name)


def test_a_name_that_warns(twins: Twins) -> None:
    name = f"with.dots-{NAME}"
    twins.same("topics", "--create", "--topic", name, "--replica-assignment", "1,1")
    twins.same("topics", "--delete", "--topic", name)


def test_quotas_and_credentials(twins: Twins) -> None:
    user = ["--user", f"user-{NAME}"]
    added = "producer_byte_rate=1048576,consumer_byte_rate=20000000,request_percentage=0.5"
    twins.same("configs", "--alter", *user, "--add-config", added)
    twins.same("configs", "--describe", *user)
    twins.same("configs", "--alter", *user, "--client", "c", "--add-config", "producer_byte_rate=10")
    twins.same("configs", "--describe", *user, "--client", "c")
    twins.same("configs", "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]")
    twins.same("configs", "--describe", *user)
    twins.same("configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    twins.same(
        "configs", "--alter", *user, "--delete-config", added.replace("=1048576", "").partition(",")[0]
    )
    twins.same("configs", "--describe", *user)


def test_what_other_things_have_configs(twins: Twins) -> None:
    for what, added in (
        (["--group", f"g-{NAME}"], "consumer.session.timeout.ms=50000"),
        (["--client-metrics", f"m-{NAME}"], "metrics=[a,b],interval.ms=1000"),
    ):
        twins.same("configs", "--alter", *what, "--add-config", added)
        twins.same("configs", "--describe", *what)
        twins.same("configs", "--alter", *what, "--delete-config", added.partition("=")[0])


def test_a_groups_life(twins: Twins) -> None:
    group = ["--group", f"life-{NAME}"]
    how = ["--topic", "read", *group, "--from-beginning", "--max-messages", "3"]
    assert twins.same("consume", *how, first_error=False).out == "v1\nnull\nv3\n"
    twins.same("groups", "--describe", *group)
    twins.same("groups", "--describe", *group, "--verbose")
    twins.same("groups", "--describe", *group, "--members", "--verbose")
    twins.same("groups", "--describe", *group, "--state", "--verbose")
    assert (
        twins.same("consume", "--topic", "read", *group, "--max-messages", "1", first_error=False).out
        == "packed\n"
    )
    for scenario in (["--to-earliest"], ["--shift-by", "2"], ["--to-offset", "99"], ["--to-current"]):
        twins.same("groups", "--reset-offsets", *group, "--topic", "read", *scenario, "--execute")
        twins.same("groups", "--describe", *group)
    twins.same("groups", "--reset-offsets", *group, "--all-topics", "--to-latest", "--execute", "--export")
    twins.same("groups", "--delete-offsets", *group, "--topic", "read")
    twins.same("groups", "--delete", *group)
    twins.same("groups", "--delete", *group)


PRODUCED = [
    ([], "plain\nlines\n"),
    (["--sync"], "one by one\nand again"),
    (["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"], "k:v\nk2:\n"),
    (["--property", "parse.key=true"], "old\tname\n"),
    (["--reader-property", "parse.key=true"], "k\tv\nno key\n"),
    (["--compression-codec"], "gzip\n"),
    (["--compression-codec", "zstd", "--batch-size", "1"], "one\nbatch\neach\n"),
    (["--request-required-acks", "0"], "not answered\n"),
    (["--command-property", "enable.idempotence=false", "--timeout", "1"], "é😀\n"),
]


def test_produce(twins: Twins) -> None:
    """Both write the same records, in batches of the same codec and kind."""
    name = f"made-{uuid.uuid4().hex[:6]}-{NAME}"
    twins.same("topics", "--create", "--topic", name)
    for arguments, stdin in PRODUCED:
        twins.same("produce", "--topic", name, *arguments, stdin=stdin, first_error=False)
    how = ["--topic", name, "--from-beginning", "--timeout-ms", "2000"]
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"]
    records = twins.same("consume", *how, *shown, first_error=False).out
    assert records.count("\n") == 14


def test_live_members_are_described_alike(twins: Twins) -> None:
    """A member of ours and one of theirs share the partitions of a topic, by either protocol."""
    for protocol in ("classic", "consumer"):
        group = f"live-{protocol}"
        how = ["--topic", "spread", "--group", group, "--command-property", f"group.protocol={protocol}"]
        theirs = twins.toolbox.start(
            "console-consumer", *twins._words((*how, "--timeout-ms", "16000"), ""), seconds=40
        )
        ours = subprocess.Popen(
            [sys.executable, "-m", "pykafkad", "consume", *twins._words((*how, "--timeout-ms", "16000"), "")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_members(twins, group, 2)
            for view in (["--offsets"], ["--members", "--verbose"], ["--state", "--verbose"]):
                twins.same("groups", "--describe", "--group", group, *view)
        finally:
            ours.wait(SECONDS)
            theirs.result(SECONDS)


def wait_for_members(twins: Twins, group: str, count: int) -> None:
    """Wait until that many members own partitions."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        shown = twins.ours("groups", "--describe", "--group", group, "--members").out.splitlines()
        rows = [line.split() for line in shown if line.startswith(group)]
        if len(rows) == count and all(row[-1] != "0" for row in rows):
            return
        time.sleep(0.2)
    pytest.fail(f"{group} did not settle")


# -- files and measurements


def test_dump_log(twins: Twins, reference: Side) -> None:
    """The broker's own files, as it writes them."""
    data = Path(reference.data)
    read = data / "read-0" / "00000000000000000000"
    for suffix in (".log", ".index", ".timeindex"):
        for how in (
            ["--deep-iteration"],
            ["--print-data-log"],
            ["--index-sanity-check"],
            ["--skip-record-metadata"],
        ):
            twins.same("dump-log", "--no-bootstrap", "--files", f"{read}{suffix}", *how)
    metadata = str(data / "__cluster_metadata-0" / "00000000000000000000.log")
    twins.same(
        "dump-log", "--no-bootstrap", "--files", metadata, "--cluster-metadata-decoder", "--max-bytes", "9000"
    )
    for log in sorted(data.glob("__consumer_offsets-*/*.log")):
        twins.same("dump-log", "--no-bootstrap", "--files", str(log), "--offsets-decoder", first_error=False)
    twins.same("dump-log", "--no-bootstrap", "--files", str(data / "meta.properties"))
    twins.same(
        "dump-log", "--no-bootstrap", "--files", f"{data}/none/00000000000000000000.log", first_error=False
    )


def shape(line: str) -> str:
    """A line without its numbers and times."""
    return "".join("#" if character.isdigit() else character for character in line).replace("#", "")


def test_perf(twins: Twins) -> None:
    """Measurements: only the words between the numbers can be the same."""
    name = f"perf-{NAME}"
    twins.same("topics", "--create", "--topic", name, "--partitions", "2")
    how = ["--topic", name, "--num-records", "3000", "--record-size", "100", "--throughput", "-1"]
    for more in ([], ["--warmup-records", "100"], ["--command-property", "acks=1", "linger.ms=1"]):
        ours, theirs = twins.ours("perf-produce", *how, *more), twins.theirs("producer-perf", *how, *more)
        assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    how = ["--topic", name, "--num-records", "3000"]
    for more in ([], ["--hide-header"], ["--show-detailed-stats"], ["--date-format", "HH:mm"]):
        ours, theirs = twins.ours("perf-consume", *how, *more), twins.theirs("consumer-perf", *how, *more)
        assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    for words in ("--topic t1", "--topic t1 --num-records 1 --messages 1", "--no-such"):
        assert (
            twins.ours("perf-consume", *words.split()).code
            == twins.theirs("consumer-perf", *words.split()).code
            == 1
        )
    for words in ("--topic t1", "--topic t1 --num-records 0 --throughput 1 --record-size 1", "--no-such"):
        assert (
            twins.ours("perf-produce", *words.split()).code
            == twins.theirs("producer-perf", *words.split()).code
            == 1
        )


def test_transactions_of_perf_produce(twins: Twins) -> None:
    name = f"perf-in-transactions-{NAME}"
    twins.same("topics", "--create", "--topic", name)
    how = ["--topic", name, "--num-records", "500", "--record-size", "10", "--throughput", "1000"]
    how += ["--transactional-id", f"id-{NAME}", "--transaction-duration-ms", "100"]
    assert twins.ours("perf-produce", *how).out.startswith("500 records sent")
    assert twins.theirs("producer-perf", *how).out.startswith("500 records sent")
    read = [
        "--topic",
        name,
        "--from-beginning",
        "--isolation-level",
        "read_committed",
        "--max-messages",
        "500",
    ]
    for tool in (twins.ours("consume", *read), twins.theirs("console-consumer", *read)):
        assert (tool.code, tool.out.count("\n")) == (0, 500)


def test_our_tools_start_in_a_tenth_of_the_time(twins: Twins) -> None:
    def seconds(run: object) -> float:
        assert callable(run)
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    where = ("--bootstrap-server", twins.bootstrap, "--list")
    theirs = min(seconds(lambda: run_alone("topics", where, "", SECONDS)) for _ in range(STARTS))
    ours = min(seconds(lambda: twins.ours("topics", "--list")) for _ in range(STARTS))
    print(f"topics --list: ours {ours * 1000:.0f} ms, Kafka's {theirs * 1000:.0f} ms")
    assert ours <= theirs * START_RATIO


def test_kafka_topics_version(twins: Twins) -> None:
    for tool in ("topics", "groups", "log-dirs", "consume", "produce", "dump-log", "offsets", "configs"):
        twins.same(tool, "--no-bootstrap", "--version")
