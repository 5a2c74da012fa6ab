"""What a test does with a Broker: producing, reading, waiting, groups, reset; and what it is told when time is up."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import (
    AlterClientQuotasRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    CreatePartitionsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from pykafkad.testing import Broker, BrokerError, BrokerTimeout, Client, Record

SECONDS = 60.0
SHORT = 0.2  # for what does not come
FIND = FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"])
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset(timeout=SECONDS)
    return shared


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with broker.client() as client:
        yield client


# -- records


def test_values_are_bytes_text_json_or_nothing(broker: Broker) -> None:
    broker.produce("orders", b"\xff", "text", {"a": [1]}, 7, None)
    assert [each.value for each in broker.records("orders")] == [b"\xff", b"text", b'{"a": [1]}', b"7", None]


def test_keys_headers_partitions_and_times_come_back(broker: Broker) -> None:
    broker.create_topic("orders", 3)
    written = broker.produce(
        "orders", "x", key="k", headers={"h": "1", "n": None}, partition=2, timestamp_ms=1234
    )
    record = Record(b"x", b"k", [("h", b"1"), ("n", None)], 2, 1234, 0, "orders")
    assert written == [record]
    assert broker.records("orders") == [record]
    assert broker.records("orders", partition=1) == []
    broker.create_topic("copy", 3)
    broker.produce("copy", *broker.records("orders", decode=str), Record("y", "other"))
    assert [(each.key, each.partition) for each in broker.records("copy", partition=2)] == [(b"k", 2)]


def test_keys_choose_partitions_as_kafkas_producers_do_and_the_others_go_round(broker: Broker) -> None:
    broker.create_topic("orders", 3)
    assert [each.partition for each in broker.produce("orders", 1, 2, 3, 4)] == [0, 1, 2, 0]
    # the Java client's murmur2 of these keys, modulo 3
    places = {key: broker.produce("orders", "x", key=key)[0].partition for key in ("a", "b", "c", "key")}
    assert places == {"a": 1, "b": 2, "c": 1, "key": 1}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written_and_read(broker: Broker, codec: str) -> None:
    values = [f"value {number}" * 100 for number in range(50)]
    broker.produce("orders", *values, codec=codec)
    assert [each.value for each in broker.records("orders", 50, decode=str, timeout=SECONDS)] == values


def test_an_unknown_codec_is_refused(broker: Broker) -> None:
    with pytest.raises(ValueError, match="codec='lzo': one of none, gzip, snappy, lz4, zstd"):
        broker.produce("orders", 1, codec="lzo")


def test_values_are_decoded_as_asked(broker: Broker) -> None:
    broker.produce("orders", {"id": 1}, key="first")
    broker.produce("orders", None, key="second")
    (text, nothing) = broker.records("orders", decode=str)
    assert (text.value, text.key, nothing.value, nothing.key) == ('{"id": 1}', "first", None, "second")
    assert broker.records("orders", decode=json.loads)[0].value == {"id": 1}
    assert broker.records("orders", decode=len)[0].value == 9


def test_records_of_several_partitions_are_in_the_order_of_their_times(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    for number in (3, 1, 2):
        broker.produce("orders", number, partition=number % 2, timestamp_ms=number)
    assert [each.value for each in broker.records("orders", 3)] == [b"2", b"3", b"1"]


def test_n_records_are_waited_for_and_no_more_are_returned(broker: Broker) -> None:
    later = threading.Timer(0.1, lambda: broker.produce("orders", "a", "b", "c"))
    later.start()
    assert [each.value for each in broker.records("orders", 2, timeout=SECONDS)] == [b"a", b"b"]
    later.join()
    broker.wait_for("orders", 3, timeout=SECONDS)


def test_what_did_not_come_says_what_was_there(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    broker.produce("orders", "x", partition=1)
    with pytest.raises(BrokerTimeout) as told:
        broker.records("orders", 2, timeout=SHORT)
    assert "1 records of orders after 0.2 s; its offsets: orders-0 from 0 to 0, orders-1 from 0 to 1" in str(
        told.value
    )
    assert isinstance(told.value, TimeoutError) and isinstance(told.value, BrokerError)
    with pytest.raises(BrokerTimeout, match="1 records of orders after"):
        broker.wait_for("orders", 2, timeout=SHORT)
    with pytest.raises(BrokerTimeout, match="there is no topic missing, but orders"):
        broker.records("missing", 1, timeout=SHORT)
    with pytest.raises(BrokerError, match="there is no topic missing, but orders"):
        broker.records("missing")
    with pytest.raises(BrokerError, match="orders has 2 partitions, and no 7"):
        broker.records("orders", partition=7)


def test_all_is_collected_until_nothing_comes(broker: Broker) -> None:
    stop = threading.Event()

    def keep_on() -> None:
        number = 0
        while not stop.wait(0.02):
            broker.produce("endless", number)
            number += 1

    broker.produce("orders", 1, 2)
    assert [each.value for each in broker.collect_until_idle("orders", idle=SHORT)] == [b"1", b"2"]
    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        with pytest.raises(BrokerTimeout, match="records of endless after 1 s"):
            broker.collect_until_idle("endless", idle=SECONDS, timeout=1)
    finally:
        stop.set()
        thread.join()


def test_a_broker_that_is_down_or_paused_says_so() -> None:
    with Broker(topics=["t"]) as broker:
        broker.pause()
        with pytest.raises(BrokerTimeout, match=r"did not answer for 0\.2 s"):
            broker.records("t", timeout=SHORT)
        broker.kill()
        with pytest.raises(BrokerError, match="not running"):
            broker.produce("t", 1)
        broker.restart()
        broker.produce("t", 1)
        broker.close()
        with pytest.raises(BrokerError, match="closed"):
            broker.start()


def test_the_directory_of_a_killed_broker_can_be_copied(tmp_path: Path) -> None:
    with Broker(topics=["t"]) as broker:
        broker.kill()
        shutil.copytree(broker.data, tmp_path / "copy")
    assert (tmp_path / "copy" / "t-0").is_dir()


def test_the_address_has_the_name_of_testcontainers(broker: Broker) -> None:
    assert broker.get_bootstrap_server() == broker.bootstrap_servers


# -- groups


def join(client: Client, group: str = "readers", topic: str = "orders") -> str:
    """A classic member that has all of a topic of two partitions."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    joined = client.call(request, 3)
    assert joined.error_code == 0
    kind = ConsumerProtocolAssignment
    has = kind(assigned_partitions=[kind.TopicPartition(topic=topic, partitions=[0, 1])], user_data=None)
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=b"\0\0" + has.encode(0)
    )
    synced = SyncGroupRequest(
        group_id=group,
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        assignments=[assignment],
    )
    assert client.call(synced, 3).error_code == 0
    return str(joined.member_id)


def join_consumer_group(client: Client, group: str = "new", topic: str = "orders") -> str:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id="m", rebalance_timeout_ms=30_000, subscribed_topic_names=[topic]
    )
    request.topic_partitions = []
    answer = client.call(request, 0)
    assert answer.error_code == 0
    return str(answer.member_id)


def commit(client: Client, offset: int, group: str = "readers") -> None:
    row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[row])
    answer = client.call(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.fixture
def group(broker: Broker, client: Client) -> str:
    """The member of a group that has the two partitions of a topic with three records."""
    broker.create_topic("orders", 2)
    broker.produce("orders", 1, 2, 3, partition=0)
    broker.wait_for_group("readers", state="Dead")
    while client.call(FIND, 4).coordinators[0].error_code:
        pass
    return join(client)


def test_a_group_is_waited_for_and_looked_at(broker: Broker, group: str) -> None:
    found = broker.wait_for_group("readers", state="stable", members=1, timeout=SECONDS)
    assert (found.state, [each.id for each in found.members]) == ("Stable", [group])
    assert found.assigned == {("orders", 0), ("orders", 1)}
    assert broker.wait_for_group("readers") == broker.group("readers") == found
    assert broker.wait_for_assignment("readers", "orders", members=1, timeout=SECONDS) == found
    assert broker.wait_for_assignment("readers") == found


def test_a_group_that_is_not_as_wanted_is_told(broker: Broker, group: str) -> None:
    told = r"Empty with 2 members was waited for, and after 0.2 s group readers is Stable with 1 members: "
    with pytest.raises(BrokerTimeout, match=told + "pykafkad.testing has orders-0, orders-1"):
        broker.wait_for_group("readers", state="Empty", members=2, timeout=SHORT)
    broker.create_topic("other")
    with pytest.raises(BrokerTimeout, match="an assignment of orders, other was waited for"):
        broker.wait_for_assignment("readers", "orders", "other", timeout=SHORT)
    with pytest.raises(BrokerTimeout, match="an assignment of anything to 2 members was waited for"):
        broker.wait_for_assignment("readers", members=2, timeout=SHORT)
    with pytest.raises(BrokerTimeout, match=r"the group was waited for, .* group nobody is Dead with 0 memb"):
        broker.wait_for_group("nobody", timeout=SHORT)


def test_a_new_partition_has_to_be_assigned_too(broker: Broker, client: Client, group: str) -> None:
    more = CreatePartitionsRequest.CreatePartitionsTopic(name="orders", count=3, assignments=None)
    assert (
        client.call(CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3).results[0].error_code == 0
    )
    with pytest.raises(BrokerTimeout):
        broker.wait_for_assignment("readers", "orders", timeout=SHORT)


def test_lag_is_what_was_not_committed(broker: Broker, client: Client) -> None:
    broker.produce("orders", 1, 2, 3)
    with pytest.raises(BrokerError, match="group readers has no offsets and no partitions"):
        broker.lag("readers")
    assert broker.lag("readers", "orders") == 3
    while client.call(FIND, 4).coordinators[0].error_code:
        pass
    commit(client, 1)
    assert broker.committed("readers") == {("orders", 0): 1}
    assert broker.lag("readers") == broker.lag("readers", "orders") == 2
    with pytest.raises(BrokerTimeout, match="a lag of 1 was waited for"):
        broker.wait_for_group("readers", lag=1, timeout=SHORT)
    later = threading.Timer(0.1, commit, [client, 3])
    later.start()
    broker.wait_for_group("readers", lag=0, timeout=SECONDS)
    later.join()
    assert broker.lag("readers") == 0


def test_a_group_that_has_partitions_and_committed_nothing_lags_by_all(broker: Broker, group: str) -> None:
    assert broker.lag("readers") == 3


# -- reset


def test_nothing_is_left_after_a_reset(broker: Broker, client: Client, group: str) -> None:
    commit(client, 1, "without members")
    joined = join_consumer_group(client)
    set_configs(client)
    set_quota(client)
    assert broker.group("new").members
    broker.reset()

    assert user_topics(client) == []
    assert client.call(ListGroupsRequest(), 4).groups == []
    listed = client.call(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    assert listed.config_resources == []
    assert client.call(DescribeClientQuotasRequest(), 1).entries == []
    assert broker_config(client, ALL, "log.retention.ms") == []
    assert broker_config(client, THIS, "log.cleaner.threads") == [STATIC_OR_DEFAULT]
    # the members are told, and would join again
    heartbeat = HeartbeatRequest(group_id="readers", member_id=group, generation_id=1)
    assert client.call(heartbeat, 3).error_code == errors.UNKNOWN_MEMBER_ID
    again = ConsumerGroupHeartbeatRequest(group_id="new", member_id=joined, member_epoch=1)
    assert client.call(again, 0).error_code in (errors.UNKNOWN_MEMBER_ID, errors.GROUP_ID_NOT_FOUND)
    # and everything begins anew
    assert broker.produce("orders", "first")[0].offset == 0
    assert broker.lag("readers", "orders") == 1
    broker.reset()
    broker.reset()


BROKER, GROUP = 4, 32
ALL, THIS = "", "1"
STATIC_OR_DEFAULT = 5
QUOTA = "consumer_byte_rate"


def user_topics(client: Client) -> list[str]:
    topics = client.call(MetadataRequest(topics=None), 12).topics
    return [topic.name for topic in topics if not topic.is_internal]


def set_configs(client: Client) -> None:
    kind = IncrementalAlterConfigsRequest
    wanted = [
        (BROKER, ALL, "log.retention.ms", "1000000"),
        (BROKER, THIS, "log.cleaner.threads", "2"),
        (GROUP, "readers", "consumer.session.timeout.ms", "46000"),
    ]
    resources = [
        kind.AlterConfigsResource(
            resource_type=type_,
            resource_name=name,
            configs=[kind.AlterableConfig(name=key, config_operation=0, value=value)],
        )
        for type_, name, key, value in wanted
    ]
    for each in resources:
        (answer,) = client.call(kind(resources=[each]), 1).responses
        assert answer.error_code == 0, answer.error_message


def set_quota(client: Client) -> None:
    kind = AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type="client-id", entity_name=None)],
        ops=[kind.OpData(key=QUOTA, value=1e9, remove=False)],
    )
    assert client.call(kind(entries=[entry]), 1).entries[0].error_code == 0


def broker_config(client: Client, name: str, key: str) -> list[int]:
    kind = DescribeConfigsRequest
    resource = kind.DescribeConfigsResource(
        resource_type=BROKER, resource_name=name, configuration_keys=[key]
    )
    return [row.config_source for row in client.call(kind(resources=[resource]), 4).results[0].configs]


def test_a_reset_that_is_refused_says_why() -> None:
    with (
        Broker(topics=["t"], config={"delete.topic.enable": False}) as broker,
        pytest.raises(BrokerError, match="TOPIC_DELETION_DISABLED"),
    ):
        broker.reset()


def timed(call: Callable[[], Any]) -> float:
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def test_a_reset_is_much_faster_than_a_new_broker(broker: Broker, client: Client) -> None:
    def reset() -> float:
        broker.produce("orders", 1)
        while client.call(FIND, 4).coordinators[0].error_code:
            pass
        commit(client, 1)
        return timed(broker.reset)

    resets = min(reset() for _ in range(10))
    starts = min(timed(lambda: Broker().close()) for _ in range(5))
    assert resets < starts / 4
