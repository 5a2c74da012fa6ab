"""`pykafkad produce` fails when a record was not stored, whatever the reason, and says which those are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pykafkad import errors, tools
from pykafkad.net.client import Cluster
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import produce
from tests.unit.tools_kit import FakeBroker, install


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker()
    broker.create("t")
    install(monkeypatch, broker)
    monkeypatch.setattr(produce, "readable", lambda descriptors, timeout_s: descriptors[:1])
    return broker


class Given:
    """Runs the tool on some lines of standard input."""

    def __init__(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._path, self._monkeypatch, self._capsys = path, monkeypatch, capsys

    def __call__(self, lines: str, *arguments: str) -> tuple[int, list[str]]:
        self._path.write_text(lines)
        with self._path.open() as file:
            self._monkeypatch.setattr(sys, "stdin", file)
            code = tools.main("produce", ["--topic", "t", *arguments])
        found = self._capsys.readouterr()
        assert not found.out
        return code, found.err.splitlines()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Given:
    return Given(tmp_path / "lines", monkeypatch, capsys)


def test_all_is_well(broker: FakeBroker, given: Given) -> None:
    assert given("a\nb\n") == (0, [])
    assert broker.values("t") == [b"a", b"b"]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (errors.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationException"),
        (errors.MESSAGE_TOO_LARGE, "RecordTooLargeException"),
        (errors.INVALID_RECORD, "InvalidRecordException"),
    ],
)
def test_what_the_broker_refuses(broker: FakeBroker, given: Given, code: int, name: str) -> None:
    each = ["--batch-size", "1"]  # a record a batch
    broker.fail("Produce", 0, code, 0, code, code)
    exit_code, said = given("a\nb\nc\nd\ne\nf\n", *each)
    assert exit_code == 1 and broker.values("t") == [b"a", b"c", b"f"]
    assert [line.rpartition(" ")[2] for line in said[:3]] == ["2)", "4)", "5)"]
    assert all(name in line for line in said[:3])
    assert said[3:] == ["ERROR 3 of 6 records were not stored in topic t: lines 2, 4-5"]


def test_what_is_too_large_to_be_sent(broker: FakeBroker, given: Given) -> None:
    code, said = given("a\n" + "b" * 300 + "\n", "--command-property", "max.request.size=200")
    assert code == 1 and "RecordTooLargeException" in said[0] and said[1].endswith("topic t: line 2")
    assert broker.values("t") == [b"a"]


def test_a_topic_that_is_not_there(broker: FakeBroker, given: Given) -> None:
    broker.fail("Metadata", *[errors.UNKNOWN_TOPIC_OR_PARTITION] * 9)
    code, said = given("a\nb\n", "--max-block-ms", "0")
    assert code == 1 and said[0].endswith("Topic t not present in metadata after 0 ms. (line 1)")
    assert said[2:] == ["ERROR 2 of 2 records were not stored in topic t: lines 1-2"]


def test_a_broker_that_goes_in_between(
    broker: FakeBroker, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Cluster, address: tuple[str, int]) -> None:
        raise Unreachable("No broker answers at h:1: connection refused.")

    fresh = Cluster.fresh
    turns = iter([fresh, fresh])
    monkeypatch.setattr(Cluster, "fresh", lambda self, address: next(turns, gone)(self, address))
    broker.fail("Produce", 0, -2)
    code, said = given(
        "a\nb\nc\n", "--batch-size", "1", "--command-property", "max.in.flight.requests.per.connection=1"
    )
    assert code == 1 and broker.values("t") == [b"a"]
    assert said == [
        "No broker answers at h:1: connection refused.",
        "ERROR 1 of 2 records were not stored in topic t: line 2",
        "ERROR nothing after line 2 was read",
    ]


def test_no_producer_id(broker: FakeBroker, given: Given) -> None:
    broker.fail("InitProducerId", errors.CLUSTER_AUTHORIZATION_FAILED)
    code, said = given("a\n")
    assert code == 1 and "ClusterAuthorizationException" in said[0] and said[1].endswith("topic t: line 1")
    assert len(said) == 2, "all was read"


def test_a_line_that_is_none(broker: FakeBroker, given: Given) -> None:
    """What is before it is sent, and the message has its number."""
    code, said = given("k\tv\nx\ny\tz\n", "--reader-property", "parse.key=true")
    assert code == 1
    assert said == ["No key separator found on line number 2: 'x'", "ERROR nothing after line 2 was read"]
    assert broker.values("t") == [b"v"]


def test_sync_ends_with_the_first(broker: FakeBroker, given: Given) -> None:
    broker.fail("Produce", 0, errors.TOPIC_AUTHORIZATION_FAILED)
    code, said = given("a\nb\nc\n", "--sync")
    assert code == 1 and said[1:] == [
        "ERROR 1 of 2 records were not stored in topic t: line 2",
        "ERROR nothing after line 2 was read",
    ]
    assert broker.values("t") == [b"a"]


def test_many_faults_are_not_told_one_by_one(broker: FakeBroker, given: Given) -> None:
    broker.fail("Produce", *[errors.INVALID_RECORD] * 50)
    code, said = given("x\n" * 50, "--batch-size", "1")
    assert code == 1 and len(said) == produce.COMPLAINTS_MAX + 1
    assert said[-1] == "ERROR 50 of 50 records were not stored in topic t: lines 1-50"


def test_ranges() -> None:
    assert produce.ranges([1, 3, 4, 5, 9]) == "1, 3-5, 9"
    many = produce.ranges(range(1, 100, 2))
    assert many.startswith("1, 3, 5, ") and many.endswith(", 39, ...")
