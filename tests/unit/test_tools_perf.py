"""The performance tools count what they send and read, and print Kafka's lines; log-dirs prints Kafka's JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykafkad import messages, tools
from pykafkad.tools import log_dirs, perf_produce, throttle
from tests.unit.tools_kit import FakeBroker, install

WHERE = ["--bootstrap-server", "127.0.0.1:9092", "--topic", "t"]
NUMBER = r"[0-9.]+"


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker()
    install(monkeypatch, broker)
    broker.create("t")
    return broker


def run(capsys: pytest.CaptureFixture[str], tool: str, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tools.main(tool, [*WHERE, *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_perf_produce(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--num-records", "50", "--record-size", "20", "--throughput", "-1", "--warmup-records", "10"]
    code, out, err = run(capsys, "perf-produce", *how)
    assert (code, err) == (0, "")
    warmup, total, steady = out.splitlines()
    assert warmup.startswith("Warmup first 10 records.")
    numbers = (
        rf"records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max latency, "
        r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\."
    )
    assert re.fullmatch(f"50 {numbers}", total) and re.fullmatch(f"40 steady state {numbers}", steady)
    values = broker.values("t")
    assert len(values) == 50 and all(re.fullmatch(rb"[A-Z]{20}", value or b"") for value in values)
    assert len(set(values)) == 50


def test_payloads_that_count_up_or_come_from_a_file(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capsys, "perf-produce", "--num-records", "3", "--throughput", "-1", "--payload-monotonic")
    assert broker.values("t") == [b"0", b"1", b"2"]
    file = tmp_path / "payloads"
    file.write_text("één|twee|")
    how = [
        "--num-records",
        "9",
        "--throughput",
        "-1",
        "--payload-file",
        str(file),
        "--payload-delimiter",
        r"\|",
    ]
    code, out, _ = run(capsys, "perf-produce", *how)
    assert code == 0 and out.splitlines()[:2] == [
        f"Reading payloads from: {file}",
        "Number of records read: 2",
    ]
    assert set(broker.values("t")[3:]) == {"één".encode(), b"twee"}


def test_records_that_fail_are_told_and_not_counted(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--num-records", "2", "--record-size", "20", "--throughput", "-1"]
    broker.fail("Produce", 29)
    code, out, err = run(capsys, "perf-produce", *how)
    assert code == 1 and out.startswith("0 records sent") and err.count("TopicAuthorizationException") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--num-records", "0", "--record-size", "1", "--throughput", "1"],
            "--num-records should be greater than zero",
        ),
        (
            ["--num-records", "1", "--record-size", "0", "--throughput", "1"],
            "--record-size should be greater than zero",
        ),
        (["--num-records", "1", "--throughput", "1"], "required"),
        (
            ["--num-records", "1", "--record-size", "1", "--throughput", "1", "--warmup-records", "1"],
            "must be strictly fewer",
        ),
        (
            ["--num-records", "1", "--record-size", "1", "--throughput", "1", "--reporting-interval", "0"],
            "--reporting-interval should be greater than zero",
        ),
    ],
)
def test_command_lines_that_are_refused(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, _, err = run(capsys, "perf-produce", *arguments)
    assert code == 1 and said in err


def test_samples_are_bounded() -> None:
    stats = perf_produce._Stats(3_000_000, 10**12, is_steady=False)
    for number in range(60):
        stats.record(number, 1, 0)
    assert len(stats._samples) == 10


def test_perf_consume(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        broker.append("t", 0, (b"k", b"x" * 9), (None, b"y" * 10))
    code, out, _ = run(capsys, "perf-consume", "--num-records", "6")
    header, line = out.splitlines()
    assert code == 0 and header.startswith("start.time, end.time, data.consumed.in.MB")
    fields = line.split(", ")
    assert len(fields) == 10 and fields[4] == "6" and fields[2] == f"{60 / 1_048_576:.4f}"
    assert any(broker.committed.values()), "its group has committed"


def test_perf_consume_that_waits_in_vain(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "perf-consume", "--num-records", "6", "--timeout", "0", "--hide-header")
    assert code == 0 and out.startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (0 ms)"
    )


def test_a_rate_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    kept = throttle.Throttle(1000, 0)
    assert not kept.is_due(5, 0) and not kept.is_due(5, 10) and kept.is_due(50, 10)
    for _ in range(7):
        kept.rest()
    assert slept == [0.002] * 3, "single milliseconds are not worth a sleep"
    assert not throttle.Throttle(-1, 0).is_due(10**9, 1)


def test_the_json_of_log_dirs() -> None:
    result = messages.DescribeLogDirsResponse.DescribeLogDirsResult
    topic = messages.DescribeLogDirsResponse.DescribeLogDirsTopic
    partition = messages.DescribeLogDirsResponse.DescribeLogDirsPartition
    rows = [partition(partition_index=index, partition_size=index * 10) for index in range(3)]
    found = {
        1: [
            result(log_dir="/data", topics=[topic(name="a", partitions=rows)]),
            result(log_dir="/bad", error_code=56),
        ]
    }
    shown = log_dirs.to_json(log_dirs.fields(found, set()))
    assert (
        '{"partitions":[{"partition":"a-2","size":20,"offsetLag":0,"isFuture":false},'
        '{"partition":"a-1","size":10,"offsetLag":0,"isFuture":false},'
        '{"partition":"a-0","size":0,"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/data"}'
    ) in shown
    failed = "org.apache.kafka.common.errors.KafkaStorageException"
    assert f'{{"partitions":[],"error":"{failed}","logDir":"/bad"}}' in shown
    assert shown.startswith('{"brokers":[{"broker":1,"logDirs":[{') and shown.endswith('}]}],"version":1}')
    assert '"partitions":[],"error":null' in log_dirs.to_json(log_dirs.fields({1: found[1][:1]}, {"other"}))
