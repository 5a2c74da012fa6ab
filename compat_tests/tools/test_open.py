"""`pykafkad open` of a copy of a Kafka's directory: stock tools print the same as for the Kafka it was copied from.

Also after that Kafka got more records and commits: what is opened stays as it was copied.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.tools.both import Both, Side
from compat_tests.tools.toolbox import SECONDS, Printed, Toolbox

READY = "pykafkad ready: bootstrap.servers="
VALUES = [f"value {number}" for number in range(40)]

SHOWN = [
    "topics --list",
    "topics --describe",
    "topics --describe --topic spread",
    "get-offsets",
    "get-offsets --time earliest",
    "get-offsets --time max-timestamp --topic spread",
    "consumer-groups --list",
    "consumer-groups --describe --all-groups",
    "consumer-groups --describe --group readers --state",
    "groups --list",
    "configs --describe --entity-type topics --entity-name spread",
    "console-consumer --topic spread --partition 1 --offset earliest --timeout-ms 2000"
    " --formatter-property print.offset=true --formatter-property print.timestamp=true",
    "console-consumer --topic packed --partition 0 --offset earliest --timeout-ms 2000",
]


class Copy:
    """A Kafka, and a broker that serves a copy of its directory."""

    def __init__(self, toolbox: Toolbox, kafka: Side, bootstrap: str, data: Path) -> None:
        self.opened = Both(toolbox, Side("opened", bootstrap, str(data), lags=False), kafka)
        self.data = data


def produce(toolbox: Toolbox, kafka: Side, topic: str, *configs: str, partitions: int = 1) -> None:
    words = ["--bootstrap-server", kafka.bootstrap, "--topic", topic]
    pairs = [word for config in configs for word in ("--config", config)]
    made = toolbox.run("topics", "--create", "--partitions", str(partitions), *words, *pairs)
    assert made.code == 0, made.out
    lines = "".join(f"{value}:{value}\n" for value in VALUES)
    properties = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    done = toolbox.run("console-producer", *words, *properties, stdin=lines)
    assert done.code == 0, done.err


def consume(toolbox: Toolbox, kafka: Side, count: int) -> None:
    words = ["--bootstrap-server", kafka.bootstrap, "--topic", "spread", "--group", "readers"]
    done = toolbox.run("console-consumer", *words, "--from-beginning", "--max-messages", str(count))
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def copy(toolbox: Toolbox, reference: Side, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    produce(toolbox, reference, "spread", "retention.ms=-1", "segment.ms=60000", partitions=3)
    produce(toolbox, reference, "packed", "compression.type=zstd")
    produce(toolbox, reference, "logged", "message.timestamp.type=LogAppendTime")
    consume(toolbox, reference, 25)
    data = tmp_path_factory.mktemp("copied") / "data"
    shutil.copytree(reference.data, data)
    process = subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "open", str(data), "--read-only", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY)
        yield Copy(toolbox, reference, line.removeprefix(READY).strip(), data)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize("command", SHOWN)
def test_stock_tools_print_what_they_print_on_the_kafka_it_was_copied_from(copy: Copy, command: str) -> None:
    tool, *arguments = command.split()
    assert copy.opened.same(tool, *arguments).out


def test_topics_have_their_ids(copy: Copy) -> None:
    ours, theirs = copy.opened.raw("topics", "--describe")
    assert sorted(re.findall(r"TopicId: (\S+)", ours.out)) == sorted(
        re.findall(r"TopicId: (\S+)", theirs.out)
    )


def test_a_group_goes_on_where_it_was(copy: Copy) -> None:
    """On both: the records that it had not read yet are also read from the copy."""
    arguments = ["--topic", "spread", "--group", "readers", "--timeout-ms", "6000"]
    ours, theirs = copy.opened.raw("console-consumer", *arguments)
    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())
    assert len(ours.out.splitlines()) == len(VALUES) - 25
    copy.opened.same("consumer-groups", "--describe", "--group", "readers", has="readers spread")


def test_what_would_change_it_is_refused_in_words(copy: Copy) -> None:
    def refused(*words: str) -> None:
        printed: Printed = copy.opened.raw(*words)[0]
        assert printed.code == 1 and "opened read-only" in printed.out + printed.err, printed

    refused("topics", "--create", "--topic", "fresh")
    refused("topics", "--delete", "--topic", "logged")
    refused("topics", "--alter", "--topic", "logged", "--partitions", "9")
    refused("configs", "--alter", "--topic", "logged", "--add-config", "retention.ms=1")


def test_dump_log_reads_the_copy(copy: Copy) -> None:
    """It needs no broker, and reads files that nobody has changed."""
    files = [str(path) for path in sorted((copy.data / "spread-1").glob("*.log"))]
    arguments = ["--files", ",".join(files), "--print-data-log"]
    printed = copy.opened.toolbox.run("dump-log", *arguments)
    assert printed.code == 0 and "payload: value" in printed.out
