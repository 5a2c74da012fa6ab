"""Message objects: defaults, names, comparison; what encoding refuses; frames, headers, tags."""

from __future__ import annotations

import array
import gc
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot import wire
from pykafkad.messages import (
    ApiVersionsResponse,
    ConsumerGroupMemberMetadataValue,
    CreateTopicsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    RequestHeader,
    TransactionLogValue,
)

TopicData = ProduceRequest.TopicProduceData
PartitionData = ProduceRequest.PartitionProduceData


class FileRange:
    def __init__(self, size: Any) -> None:
        self.size = size


def produce(records: Any = b"xyz", **more: Any) -> Any:
    partition = PartitionData(index=3, records=records)
    return ProduceRequest(topic_data=[TopicData(name="orders", partition_data=[partition])], **more)


def answer(*records: Any) -> Any:
    partitions = [FetchResponse.PartitionData(partition_index=i, records=r) for i, r in enumerate(records)]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)])


def test_fields_not_given_take_the_defaults_of_the_schema() -> None:
    fetch = FetchRequest()
    assert (fetch.max_bytes, fetch.session_epoch, fetch.cluster_id) == (0x7FFFFFFF, -1, None)
    assert (fetch.replica_id, fetch.topics, fetch.rack_id) == (-1, [], "")
    assert fetch.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert FetchRequest.FetchPartition().high_watermark == 2**63 - 1
    assert PartitionData().records is None
    assert FetchRequest.FetchTopic().topic_id == bytes(16)


def test_lists_and_structs_by_default_belong_to_one_object_alone() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(1)  # type: ignore[arg-type]
    first.replica_state.replica_id = 9
    assert (second.topics, second.replica_state.replica_id) == ([], -1)


def test_a_class_knows_its_api_and_versions() -> None:
    facts = [
        (cls.api_key, cls.min_version, cls.max_version, cls.flexible_since)
        for cls in (FetchRequest, messages.SaslHandshakeRequest, RequestHeader, messages.LeaderAndIsrRequest)
    ]
    assert facts == [(1, 0, 18, 12), (17, 0, 1, 32767), (-1, 1, 2, 2), (4, 0, 7, 4)]
    assert issubclass(FetchRequest, wire.Message)
    assert not issubclass(FetchRequest.FetchTopic, wire.Message)
    assert FetchRequest.FetchTopic.__qualname__ == "FetchRequest.FetchTopic"


def test_fields_tell_tools_what_the_schema_says() -> None:
    by_name = {field.attribute: field for field in wire.fields(FetchRequest)}
    assert list(by_name)[:3] == ["cluster_id", "replica_id", "replica_state"]
    cluster, topics = by_name["cluster_id"], by_name["topics"]
    assert (cluster.name, cluster.type, cluster.versions, cluster.nullable) == (
        "ClusterId",
        "string",
        (12, 18),
        (12, 18),
    )
    assert (cluster.tag, cluster.default, cluster.ignorable, cluster.struct) == (0, None, True, None)
    assert (topics.struct, topics.default, topics.nullable) == (FetchRequest.FetchTopic, [], (0, -1))


def test_a_name_that_is_no_message_is_an_attribute_error() -> None:
    for name in ("NoSuchMessage", "../schemas/FetchRequest", "_private", "__wrapped__"):
        with pytest.raises(AttributeError):
            getattr(messages, name)


def test_misspelt_fields_are_refused() -> None:
    with pytest.raises(TypeError, match=r"FetchRequest.. has no field 'max_wait'"):
        FetchRequest(max_wait=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="by name"):
        FetchRequest(1)  # type: ignore[arg-type, call-arg]
    with pytest.raises(AttributeError):
        FetchRequest().max_wait = 1  # type: ignore[attr-defined]


def test_names_that_are_equal_but_other_objects_find_their_fields() -> None:
    assert FetchRequest(**{"".join(["max_", "wait_ms"]): 7, "".join(["min_", "bytes"]): 8}) == FetchRequest(  # type: ignore[arg-type]
        min_bytes=8, max_wait_ms=7
    )


def test_objects_compare_by_their_fields_and_show_what_is_set() -> None:
    assert produce() == produce()
    assert produce() != produce(acks=1)
    assert produce() != 5
    assert repr(produce(acks=1)) == (
        "ProduceRequest(acks=1, topic_data=[TopicProduceData(name='orders', "
        "partition_data=[PartitionProduceData(index=3, records=b'xyz')])])"
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(produce())


def test_messages_do_not_occupy_the_cycle_collector() -> None:
    assert not gc.is_tracked(produce())


def test_a_deleted_field_is_missed_when_encoding() -> None:
    fetch = FetchRequest()
    del fetch.max_wait_ms
    assert "max_wait_ms" not in repr(fetch)
    with pytest.raises(wire.WireError, match="max_wait_ms: deleted"):
        fetch.encode(12)


def test_records_are_a_slice_of_the_buffer_and_keep_it() -> None:
    buffer = bytearray(b"....") + produce(b"0123456789").encode(9)
    decoded = ProduceRequest.decode(buffer, 9, 4)
    records = decoded.topic_data[0].partition_data[0].records
    assert records is not None
    assert (bytes(records), len(records), records.readonly) == (b"0123456789", 10, False)
    assert bytes(records[2:4]) == b"23"
    records[0] = ord("A")
    assert b"A123456789" in buffer
    with pytest.raises(BufferError):
        buffer.clear()


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda data: array.array("b", data)])
def test_any_buffer_of_bytes_is_read(wrap: Any) -> None:
    decoded = ProduceRequest.decode(wrap(produce().encode(9)), 9)
    assert bytes(decoded.topic_data[0].partition_data[0].records or b"") == b"xyz"


def test_bytes_after_a_message_are_not_looked_at_as_kafka_does_not() -> None:
    data = produce().encode(9)
    assert ProduceRequest.decode(data + b"more", 9) == produce()
    assert ProduceRequest.decode_prefix(data + b"more", 9) == (produce(), len(data))


@pytest.mark.parametrize(("start", "end"), [(-1, None), (0, 10**6), (5, 4), (10**6, None)])
def test_a_range_outside_the_buffer_is_refused(start: Any, end: Any) -> None:
    with pytest.raises(wire.WireError, match="buffer of"):
        ProduceRequest.decode(produce().encode(9), 9, start, end)


@pytest.mark.parametrize("version", [-1, 14, 32767])
def test_versions_that_a_message_has_not_are_refused(version: int) -> None:
    for act in (lambda: ProduceRequest.decode(b"\0" * 100, version), lambda: produce().encode(version)):
        with pytest.raises(wire.WireError, match="ProduceRequest has no version"):
            act()


@pytest.mark.parametrize(
    ("message", "version", "why"),
    [
        (ProduceRequest(acks=2**15), 9, "acks: 32768 is not between -32768 and 32767"),
        (ProduceRequest(timeout_ms=2**70), 9, "is not between"),
        (ProduceRequest(acks="1"), 9, "acks: an integer wanted, not str"),  # type: ignore[arg-type]
        (ProduceRequest(acks=None), 9, "acks: an integer wanted, not NoneType"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=None), 9, "topic_data: a null where none is allowed"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data="abc"), 9, "topic_data: a list wanted, not str"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=[1]), 9, "TopicProduceData wanted, not int"),  # type: ignore[list-item]
        (ProduceRequest(topic_data=[PartitionData()]), 9, "TopicProduceData wanted, not"),  # type: ignore[list-item]
        (ProduceRequest(transactional_id="x" * 32768), 9, "a string of 32768 bytes"),
        (ProduceRequest(transactional_id="\ud800"), 9, "not UTF-8"),
        (ProduceRequest(transactional_id=b"x"), 9, "a string wanted, not bytes"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=[TopicData(topic_id=b"123")]), 13, "a uuid of 16 bytes wanted"),
        (produce(records="abc"), 9, "records: bytes wanted, not str"),
        (produce(records=FileRange(5)), 9, "records: bytes wanted, not FileRange"),
        (MetadataRequest(topics=None), 0, "topics: a null where none is allowed"),
        (MetadataRequest(allow_auto_topic_creation=1), 4, "a bool wanted, not int"),  # type: ignore[arg-type]
        (FetchRequest(replica_state=None), 15, "replica_state: a null where none is allowed"),  # type: ignore[arg-type]
        (FetchRequest(unknown_tags={5: b""}), 11, "tagged fields are set, but this version has none"),
        (FetchRequest(unknown_tags={0: b""}), 12, "tag 0 is not unknown"),
        (FetchRequest(unknown_tags={-1: b""}), 12, "-1 is no tag"),
        (FetchRequest(unknown_tags={"x": b""}), 12, "'x' is no tag"),  # type: ignore[dict-item]
    ],
)
def test_what_a_version_cannot_hold_is_refused(message: Any, version: int, why: Any) -> None:
    with pytest.raises(wire.WireError, match=why):
        message.encode(version)


def test_a_field_the_version_has_not_is_dropped_if_ignorable_and_refused_if_not() -> None:
    assert FetchRequest(rack_id="r", session_id=5).encode(4) == FetchRequest().encode(4)
    with pytest.raises(wire.WireError, match=r"FetchRequest.forgotten_topics_data: set, but this version"):
        FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic()]).encode(4)
    with pytest.raises(wire.WireError, match="replica_state: set, but this version"):
        FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1)).encode(12)
    with pytest.raises(wire.WireError, match="replica_id: set, but this version"):
        FetchRequest(replica_id=1).encode(15)


def test_tagged_fields_at_their_default_are_left_out() -> None:
    value = TransactionLogValue(transaction_partitions=None)
    plain = value.encode(1)
    assert plain.endswith(b"\0")
    value.next_producer_id = 7
    value.client_transaction_version = 2
    tagged = value.encode(1)
    expected = plain[:-1] + bytes.fromhex("02 01 08 0000000000000007 02 02 0002")
    assert tagged == expected


def test_a_tagged_struct_that_may_be_null_is_marked_by_a_varint() -> None:
    cls = ConsumerGroupMemberMetadataValue
    for value, tail in ((None, "01 00 01 00"), (cls.ClassicMemberMetadata(session_timeout_ms=5), None)):
        data = cls(classic_member_metadata=value).encode(0)
        assert cls.decode(data, 0).classic_member_metadata == value
        assert tail is None or data.endswith(bytes.fromhex(tail))


def test_a_struct_that_may_be_null_is_marked_by_a_byte() -> None:
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=1)
    for value, mark in ((None, b"\xff\0"), (cursor, b"\x01\x02t\0\0\0\x01\0\0")):
        data = DescribeTopicPartitionsRequest(cursor=value).encode(0)
        assert data.endswith(mark)
        assert DescribeTopicPartitionsRequest.decode(data, 0).cursor == value


def test_unknown_tags_are_kept_and_written_in_the_order_of_tags() -> None:
    message = ApiVersionsResponse(
        finalized_features_epoch=5, unknown_tags={300: b"c", 9: b"b"}, zk_migration_ready=True
    )
    data = message.encode(3)
    assert data.endswith(bytes.fromhex("04 01 08 0000000000000005 03 01 01 09 01 62 ac02 01 63"))
    assert ApiVersionsResponse.decode(data, 3) == message


def test_a_tag_of_another_version_is_refused_as_kafka_does() -> None:
    data = FetchRequest().encode(12)
    with pytest.raises(wire.WireError, match="tag 1 is of other versions"):
        FetchRequest.decode(data[:-1] + b"\x01\x01\x01x", 12)


def test_strings_with_malformed_utf8_are_read_as_java_reads_them() -> None:
    for raw, text in (
        (b"\xff", "\ufffd"),
        (b"a\xed\xa0\x80b", "a\ufffdb"),
        (b"\xed\xa5k", "\ufffdk"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\x80\xc3\xa9", "\ufffd\ufffdé"),
    ):
        data = bytes([len(raw) + 1]) + raw + bytes.fromhex("0000 00000000 01 00")
        assert ProduceRequest.decode(data, 9).transactional_id == text


def test_names_seen_before_are_the_same_objects() -> None:
    data = produce().encode(9)
    names = [ProduceRequest.decode(data, 9).topic_data[0].name for _ in range(2)]
    assert names[0] is names[1]


def test_a_frame_has_size_header_and_body() -> None:
    body = answer(b"abc").encode(12)
    for flexible, header in ((True, b"\0\0\0\x07\0"), (False, b"\0\0\0\x07")):
        framed = wire.frame(answer(b"abc"), 12, 7, flexible)
        assert framed == (len(header) + len(body)).to_bytes(4, "big") + header + body


def test_file_ranges_stand_in_a_frame_for_their_bytes() -> None:
    ranges = [FileRange(300), FileRange(0), FileRange(5)]
    parts: Any = wire.frame(answer(*ranges), 12, 7, True)
    assert [part for part in parts if isinstance(part, FileRange)] == [ranges[0], ranges[2]]
    stored = {300: b"a" * 300, 5: b"bbbbb"}
    joined = b"".join(stored[part.size] if isinstance(part, FileRange) else part for part in parts)
    assert joined == wire.frame(answer(b"a" * 300, b"", b"bbbbb"), 12, 7, True)


@pytest.mark.parametrize("size", [-1, 2**31, None, "5", 2**80])
def test_a_range_of_an_impossible_size_is_refused(size: Any) -> None:
    with pytest.raises(wire.WireError):
        wire.frame(answer(FileRange(size)), 12, 7, True)


def test_a_frame_that_is_too_large_for_its_size_is_refused() -> None:
    with pytest.raises(wire.WireError, match="a frame of"):
        wire.frame(answer(FileRange(2**31 - 10), FileRange(100)), 12, 7, True)


def test_only_whole_messages_of_a_known_class_are_framed() -> None:
    with pytest.raises(TypeError):
        wire.frame(None, 12, 7, True)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        wire.Struct()


def test_a_failed_encoding_leaves_nothing_behind() -> None:
    good = produce().encode(9)
    for _ in range(3):
        with pytest.raises(wire.WireError):
            produce(acks="x").encode(9)
        assert produce().encode(9) == good


def test_a_large_message_is_encoded_whole() -> None:
    request = CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name=f"topic-{n}", num_partitions=n) for n in range(40000)]
    )
    decoded = CreateTopicsRequest.decode(request.encode(7), 7)
    assert decoded == request


def reader(*requests: Any, served: Any = (0, 99)) -> Any:
    return wire.RequestReader({each.api_key: wire.Route(each, served, None) for each in requests}.get)


def test_a_request_is_read_as_the_version_of_its_api_wants_it() -> None:
    read = reader(ProduceRequest, OffsetCommitRequest, served=(0, 13)).read
    for version in (3, 8, 9, 12):
        data = wire.request(produce(), version, 7, "me")
        exchange, request = read("peer", data, 4, len(data))
        assert (exchange.api_key, exchange.version, exchange.correlation_id) == (0, version, 7)
        assert (exchange.client_id, exchange.connection, exchange.route.name) == ("me", "peer", "Produce")
        assert bytes(request.topic_data[0].partition_data[0].records) == b"xyz"


def test_tagged_fields_of_a_header_are_passed_over() -> None:
    header = RequestHeader(request_api_key=0, request_api_version=9, client_id="é", unknown_tags={1: b"abc"})
    data = header.encode(2) + produce().encode(9)
    exchange, request = reader(ProduceRequest).read(None, memoryview(data), 0, len(data))
    assert (exchange.client_id, request) == ("é", produce())


def test_a_null_client_id_is_an_empty_one() -> None:
    data = bytes.fromhex("0000 0003 00000001 ffff") + produce().encode(3)
    assert reader(ProduceRequest).read(None, data, 0, len(data))[0].client_id == ""


def test_what_no_route_serves_is_not_decoded() -> None:
    read = reader(ProduceRequest, served=(4, 9)).read
    rest = bytes.fromhex("00000001 ffff 00")
    for key, version in ((999, 3), (-1, 3), (1, 3), (0, 3), (0, 10), (0, -1)):
        data = key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + rest
        exchange, request = read(None, data, 0, len(data))
        assert (exchange.api_key, exchange.version, exchange.correlation_id) == (key, version, 1)
        assert request is None
        assert (exchange.route is not None) == (key == 0)


def test_every_cut_of_a_header_is_refused() -> None:
    read = reader(ProduceRequest).read
    data = RequestHeader(request_api_version=9, client_id="me", unknown_tags={1: b"abc"}).encode(2)
    for end in range(len(data) + 1):
        with pytest.raises(wire.WireError):
            read(None, data, 0, end)
    with pytest.raises(wire.WireError, match="buffer of"):
        read(None, data, 0, len(data) + 1)


def test_a_route_is_asked_for_once() -> None:
    asked = []

    def route_of(key: Any) -> Any:
        asked.append(key)
        return wire.Route(ProduceRequest, (0, 9), None) if key == 0 else None

    read = wire.RequestReader(route_of).read
    for key in (0, 0, 1, 256, -1):
        data = key.to_bytes(2, signed=True) + bytes.fromhex("0003 00000001 ffff") + produce().encode(3)
        assert (read(None, data, 0, len(data))[1] is None) == (key != 0)
    assert asked == [0, 1]


def test_a_request_frame_is_what_a_client_sends() -> None:
    framed = wire.request(produce(), 9, 5, None)
    assert isinstance(framed, bytes)
    assert framed[:15].hex() == f"{len(framed) - 4:08x}" + "0000000900000005ffff00"
    assert ProduceRequest.decode(framed, 9, 15) == produce()
