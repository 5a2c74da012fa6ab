"""The fixtures, as a test suite of a user's has them, and what its reports say of a failed test."""

from __future__ import annotations

import time

import pytest

from pykafkad.testing import report

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, text: str, *options: str, passed: int = 0, failed: int = 0) -> str:
    pytester.makepyfile(text)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers", *options)
    result.assert_outcomes(passed=passed, failed=failed)
    return str(result.stdout.str())


def test_each_test_has_a_broker_with_nothing_in_it(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest
        from pykafkad.testing import BrokerError

        seen = []

        @pytest.mark.parametrize("number", range(5))
        def test_one(kafka, number):
            with pytest.raises(BrokerError, match="there is no topic orders, but none at all"):
                kafka.records("orders")
            kafka.create_topic("orders", 3)
            assert kafka.produce("orders", "x")[0].offset == 0
            assert kafka.group("readers").state == "Dead"
            with kafka.client() as client:
                commit(client)
            assert kafka.committed("readers")
            seen.append(kafka.pid)

        def test_one_process_serves_them_all():
            assert len(seen) == 5 and len(set(seen)) == 1

        def commit(client):
            from pykafkad.messages import FindCoordinatorRequest, OffsetCommitRequest as kind
            row = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            topic = kind.OffsetCommitRequestTopic(name="orders", partitions=[row])
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"])
            while client.call(find, 4).coordinators[0].error_code:
                pass
            request = kind(group_id="readers", topics=[topic])
            assert client.call(request, 8).topics[0].partitions[0].error_code == 0
        """,
        passed=6,
    )


@pytest.mark.parametrize("end", ["kill", "stop", "pause", "close"])
def test_a_broker_that_was_ended_or_paused_is_not_used_again(pytester: pytest.Pytester, end: str) -> None:
    run(
        pytester,
        f"""
        seen = []

        def test_first(kafka):
            seen.append(kafka.pid)
            kafka.{end}()

        def test_second(kafka):
            assert kafka.pid not in seen
            kafka.produce("orders", "x")
        """,
        passed=2,
    )


def test_a_client_that_is_left_behind_does_not_meet_the_next_test(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import os, pytest
        left = []

        def test_first(kafka):
            left.append((kafka.pid, kafka.client()))

        @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
        def test_second(kafka):
            assert kafka.pid != left[0][0]
            with pytest.raises(OSError):
                os.kill(left[0][0], 0)
        """,
        passed=2,
    )


def test_configs_and_topics_are_marked_and_overridden(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest
        from pykafkad.testing import Client
        from pykafkad.messages import DescribeConfigsRequest as Describe, MetadataRequest

        pytestmark = pytest.mark.kafka(topics={"everywhere": 1}, config={"num.partitions": 3})

        @pytest.fixture
        def kafka_config():
            return {"log.retention.ms": 1000, "num.partitions": 2}

        def counts(kafka):
            with kafka.client() as client:
                rows = client.call(MetadataRequest(topics=None), 12).topics
            return {row.name: len(row.partitions) for row in rows}

        def config(kafka, key):
            resource = Describe.DescribeConfigsResource(
                resource_type=4, resource_name="1", configuration_keys=[key]
            )
            with kafka.client() as client:
                answer = client.call(Describe(resources=[resource]), 4)
            return answer.results[0].configs[0].value

        def test_of_the_module(kafka):
            kafka.produce("made", "x")
            assert counts(kafka) == {"everywhere": 1, "made": 3}
            assert config(kafka, "log.retention.ms") == "1000"

        @pytest.mark.kafka(config={"num.partitions": 4}, topics=["own"])
        def test_of_its_own(kafka, kafka_topic):
            kafka.produce("made", "x")
            assert counts(kafka) == {"everywhere": 1, "own": 1, "made": 4, kafka_topic: 1}
            assert kafka_topic.startswith("test_of_its_own-")

        def test_of_the_module_again(kafka):
            assert counts(kafka) == {"everywhere": 1}
        """,
        passed=3,
    )


def test_a_mark_with_a_mistake_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kafka(confg={"num.partitions": 4})
        def test_it(kafka): ...
        """)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    assert "pytest.mark.kafka(config=None, topics=())" in result.stdout.str()
    assert "confg" in result.stdout.str()


def test_one_broker_is_shared_by_the_whole_run(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest
        seen = set()

        @pytest.fixture(scope="session")
        def kafka_config():
            return {"num.partitions": 2}

        @pytest.mark.parametrize("number", range(3))
        def test_one(kafka_broker, kafka_topic, number):
            seen.add(kafka_broker.pid)
            kafka_broker.produce(kafka_topic, number)
            assert [each.value for each in kafka_broker.records(kafka_topic)] == [b"%d" % number]
            assert kafka_broker.config["num.partitions"] == "2"

        def test_all(kafka_broker):
            assert seen == {kafka_broker.pid}
        """,
        passed=4,
    )


def test_a_factory_makes_brokers_that_end_with_the_test(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        made = []

        def test_two(kafka_factory):
            made.extend([kafka_factory(["a"]), kafka_factory(config={"num.partitions": 7})])
            assert made[0].records("a") == []
            assert made[0].pid != made[1].pid

        def test_none_is_left():
            assert [each.running for each in made] == [False, False]
        """,
        passed=2,
    )


def test_workers_have_brokers_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import os, pytest, time
        from pathlib import Path

        @pytest.mark.parametrize("number", range(8))
        def test_one(kafka, kafka_broker, number):
            kafka.produce("orders", number)
            assert [each.value for each in kafka.records("orders")] == [b"%d" % number]
            Path(__file__).with_name(f"{os.getpid()}-{kafka.pid}-{kafka_broker.pid}").touch()
            while len({path.name.split("-")[0] for path in Path(__file__).parent.glob("*-*-*")}) < 2:
                time.sleep(0.01)
        """)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "2", timeout=120)
    result.assert_outcomes(passed=8)
    rows = {tuple(path.name.split("-")) for path in pytester.path.glob("*-*-*")}
    assert len(rows) == 2
    assert len({row[0] for row in rows}) == 2
    assert len({pid for _, *pids in rows for pid in pids}) == 4


FAILING = """
import time

import pytest

def test_before(kafka, kafka_broker):
    kafka.produce("of-another", "secret")
    kafka_broker.produce("of-another-shared", "secret")

def test_fails(kafka):
    kafka.create_topic("orders", 2)
    kafka.produce("orders", *range(5), key="k", headers={"h": 1}, partition=1)
    from pykafkad.testing import Client
    with Client(kafka.host, kafka.port, client_id="shop") as client:
        from pykafkad.messages import FindCoordinatorRequest, OffsetCommitRequest as kind
        row = kind.OffsetCommitRequestPartition(partition_index=1, committed_offset=3)
        topic = kind.OffsetCommitRequestTopic(name="orders", partitions=[row])
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"])
        while client.call(find, 4).coordinators[0].error_code:
            pass
        request = kind(group_id="readers", topics=[topic])
        assert client.call(request, 8).topics[0].partitions[0].error_code == 0
        client._socket.sendall(bytes.fromhex("7fffffff"))
        assert client._socket.recv(1) == b""
        until = time.monotonic() + 30
        while "closed the connection of" not in kafka.log_text() and time.monotonic() < until:
            time.sleep(0.001)  # the line follows the close
    assert False

def test_after(kafka, kafka_broker):
    kafka.produce("of-a-later-one", "secret")
"""


def test_the_report_of_a_failed_test_shows_its_broker_and_nothing_of_others(
    pytester: pytest.Pytester,
) -> None:
    shown = run(pytester, FAILING, passed=2, failed=1)
    assert "topics" in shown and "orders-0: empty" in shown
    assert "orders-1: offsets 0 to 4" in shown
    assert "  4 key b'k' headers [('h', b'1')] b'4'" in shown
    assert "  2 key b'k'" in shown and "  1 key b'k'" not in shown
    assert "group readers is Empty with 0 members; committed: orders-1 at 3" in shown
    requests = shown.partition(": requests -")[2].partition(": log of this test -")[0]
    assert '"shop" OffsetCommit v8 topics=[orders] groups=[readers] OK' in requests
    assert "pykafkad.testing" not in requests
    assert "log of this test" in shown and "closed the connection of" in shown
    assert "of-another" not in shown and "of-a-later" not in shown and "b'secret'" not in shown


def test_of_a_shared_broker_only_what_the_test_did_is_shown(pytester: pytest.Pytester) -> None:
    text = """
        import time

        def test_before(kafka_broker):
            kafka_broker.produce("of-another", "secret")
            kafka_broker.produce("both", "older")
            time.sleep(0.01)  # records have times in milliseconds

        def test_fails(kafka_broker):
            kafka_broker.produce("both", "newer")
            assert False
        """
    shown = run(pytester, text, passed=1, failed=1)
    assert "  1 b'newer'" in shown
    assert "older" not in shown.partition("topics")[2].partition("short test summary")[0]
    assert "of-another-" not in shown.partition("topics")[2]


@pytest.mark.parametrize(("end", "said"), [("kill", "not running"), ("pause", "paused")])
def test_a_broker_that_cannot_be_asked_is_shown_by_its_log(
    pytester: pytest.Pytester, end: str, said: str
) -> None:
    text = f"""
        def test_fails(kafka_factory):
            kafka = kafka_factory()
            kafka.{end}()
            assert False
        """
    before = time.monotonic()
    shown = run(pytester, text, failed=1)
    assert said in shown.partition("kafka 127")[2]
    assert time.monotonic() - before < 60


def test_requests_of_the_log_are_shown_apart() -> None:
    at = "[2026-11-19 12:00:00,123]"
    lines = [
        f"{at} DEBUG [net] a connection",
        f'{at} DEBUG [requests] 127.0.0.1:5 "rdkafka" Produce v10 topics=[orders] OK 80 us',
        f'{at} DEBUG [requests] 127.0.0.1:6 "pykafkad.testing" Metadata v12 OK 80 us',
        "Traceback",
    ]
    requests, others = report.sorted_lines(lines)
    assert requests == ['12:00:00,123 127.0.0.1:5 "rdkafka" Produce v10 topics=[orders] OK 80 us']
    assert others == [lines[0], "Traceback"]
    assert report.last(["x"] * 60)[:2] == ["... 10 before", "x"]
    assert report.last(["x"] * 50) == ["x"] * 50


def test_a_report_that_cannot_be_made_does_not_hide_the_failure(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(watched: report.Watched, name: str) -> None:
        raise ZeroDivisionError("in the report")

    monkeypatch.setattr(report, "asked", fail)
    shown = run(pytester, "def test_fails(kafka):\n    assert 'the reason' is None", failed=1)
    assert "the reason" in shown and "they could not be asked for: in the report" in shown
