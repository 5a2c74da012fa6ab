"""Orders of Java's hash maps, and its names for errors: each as Kafka's own tools showed it."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.tools import failures
from pykafkad.tools.java import hash_order, partition_hash


def test_partitions_as_a_reset_lists_them() -> None:
    assert hash_order([("a", 0), ("a", 1), ("a", 2)], partition_hash) == [("a", 2), ("a", 1), ("a", 0)]


def test_names_that_share_a_place_stay_in_their_order() -> None:
    assert hash_order(["t1", "t2", "t5"], capacity=3) == ["t1", "t5", "t2"]
    assert hash_order(["t5", "t1", "t2"], capacity=3) == ["t5", "t1", "t2"]
    assert hash_order(["t1", "t2", "t5"], capacity=5) == ["t5", "t1", "t2"]


def test_quota_keys() -> None:
    keys = ["request_percentage", "producer_byte_rate", "consumer_byte_rate"]
    assert hash_order(keys, capacity=3) == ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]


def test_a_map_grows() -> None:
    names = [f"topic-{number}" for number in range(100)]
    assert sorted(hash_order(names)) == sorted(names)
    assert hash_order(names) != names


def test_class_names() -> None:
    shown = {code: failures.class_name(code) for code in errors.NAMES if code}
    assert shown[errors.GROUP_ID_NOT_FOUND] == "GroupIdNotFoundException"
    assert shown[errors.NON_EMPTY_GROUP] == "GroupNotEmptyException"
    assert shown[errors.REQUEST_TIMED_OUT] == "TimeoutException"
    assert shown[errors.OFFSET_METADATA_TOO_LARGE] == "OffsetMetadataTooLarge"
    assert len(set(shown.values())) == len(shown), "each code has a class of its own"


def test_what_is_said_of_a_fault() -> None:
    known = errors.KafkaError(errors.GROUP_ID_NOT_FOUND, "Group g not found.")
    assert failures.message_of(known) == "Group g not found."
    assert (
        failures.described(known)
        == "org.apache.kafka.common.errors.GroupIdNotFoundException: Group g not found."
    )
    assert failures.message_of(errors.KafkaError(errors.GROUP_ID_NOT_FOUND)) == "The group id does not exist."
    assert (
        failures.message_of(OSError(2, "No such file or directory", "x")) == "x (No such file or directory)"
    )
