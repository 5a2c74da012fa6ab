"""Every verdict in tests/golden/batches, which Apache Kafka 4.3.1 gave, is ours as well.

`decode` is what a consumer reads, `validator` the log validator alone, `produceRequestCheck` the check of a Produce
request, `broker` what a broker answered. tests/golden/batches comes from Kafka itself.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError, Rules

GOLDEN = Path(__file__).parents[1] / "golden" / "batches"
NOW_MS = 1700000100000
FIRST_OFFSET, LEADER_EPOCH = 1000, 7

CODES = {
    "CorruptRecordException": errors.CORRUPT_MESSAGE,
    "InvalidRecordException": errors.INVALID_RECORD,
    "InvalidTimestampException": errors.INVALID_TIMESTAMP,
    "KafkaException": errors.UNKNOWN_SERVER_ERROR,
    "IllegalArgumentException": errors.UNKNOWN_SERVER_ERROR,
    "UnsupportedOperationException": errors.UNKNOWN_SERVER_ERROR,
    "IndexOutOfBoundsException": errors.UNKNOWN_SERVER_ERROR,
    # Kafka's reader asked for 2 GiB for a record that is not there; our message says what is wrong with the record.
    "OutOfMemoryError": errors.INVALID_RECORD,
}
CONTROL_TYPES = {"ABORT": 0, "COMMIT": 1, "LEADER_CHANGE": 2, "SNAPSHOT_HEADER": 3, "SNAPSHOT_FOOTER": 4}


def load(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


ENTRIES = {entry["name"]: entry for name in ("valid", "corrupt") for entry in load(name)}
every_entry = pytest.mark.parametrize("name", ENTRIES)


def bytes_of(entry: dict[str, Any]) -> bytearray:
    return bytearray.fromhex(entry["hex"])


# -- decode


def shown(prefix: str, data: bytes | None) -> dict[str, Any]:
    """A key or value in the form of the golden files."""
    if data is None or len(data) <= 600:
        return {prefix: None if data is None else data.hex()}
    return {f"{prefix}Length": len(data), f"{prefix}Sha256": hashlib.sha256(data).hexdigest()}


def record_fields(record: records.Record, like: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    found |= shown("key", record.key) | shown("value", record.value)
    if "headers" in like:
        found["headers"] = [[key, None if value is None else value.hex()] for key, value in record.headers]
    if "controlType" in like:
        assert record.control_type == CONTROL_TYPES[like["controlType"]]
    if "coordinatorEpoch" in like:
        assert record.value is not None
        found["coordinatorEpoch"] = int.from_bytes(record.value[2:6], "big")
    return found


def batch_fields(batch: records.Batch, crc_valid: bool) -> dict[str, Any]:
    time_type = "LogAppendTime" if batch.is_log_append_time else "CreateTime"
    found = {
        "magic": batch.magic,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.last_offset + 1,
        "sizeInBytes": batch.size,
        "crc": batch.crc,
        "crcValid": crc_valid,
        "compression": batch.codec,
        "timestampType": time_type if batch.magic else "NoTimestampType",
        "maxTimestamp": batch.max_timestamp,
    }
    if batch.magic == 2:
        found |= {
            "baseTimestamp": batch.base_timestamp,
            "partitionLeaderEpoch": batch.leader_epoch,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
            "count": batch.count,
        }
    return found


def assert_same_records(data: bytes | bytearray, expected: list[dict[str, Any]]) -> None:
    found = list(records.read(data))
    assert len(found) == len(expected)
    ignored = {"size", "sequence", "controlType"}
    for record, like in zip(found, expected, strict=True):
        assert record_fields(record, like) == {
            key: value for key, value in like.items() if key not in ignored
        }


def assert_same_batch(batch: records.Batch, expected: dict[str, Any], data: bytes | bytearray) -> None:
    expected = dict(expected)
    expected_records = expected.pop("records", None)
    assert batch_fields(batch, True) == expected
    if expected_records is not None:
        assert_same_records(data[batch.position : batch.position + batch.size], expected_records)


@every_entry
def test_a_consumer_reads_the_same(name: str) -> None:
    data = bytes_of(ENTRIES[name])
    expected = ENTRIES[name]["decode"]
    good = expected["batches"]
    if expected["result"] == "ok":
        found = records.scan(data)
        assert sum(batch.size for batch in found) == expected["bytesUsed"]
        assert len(found) == len(good)
        for batch, like in zip(found, good, strict=True):
            assert_same_batch(batch, like, data)
        return
    with pytest.raises(RecordsError) as raised:
        list(records.read(data))
    assert raised.value.code == CODES[expected["exception"]]
    if expected["stage"] in ("framing", "ensureValid"):
        with pytest.raises(RecordsError) as scanned:
            records.scan(data)
        assert scanned.value.code == raised.value.code
        start = scanned.value.position
        found = records.scan(data[:start])
        assert len(found) == len(good)
        for batch, like in zip(found, good, strict=True):
            assert_same_batch(batch, like, data)


# -- validator


def rules_of(verdict: dict[str, Any], entry: dict[str, Any]) -> Rules:
    target = verdict["targetCompression"]
    bounds = validator_bounds(entry)
    return Rules(
        max_message_bytes=1 << 30,
        compression="producer" if target == "as sent" else target,
        log_append_time=verdict["timestampType"] == "LogAppendTime",
        compacted=verdict["compacted"],
        timestamp_before_max_ms=bounds[0],
        timestamp_after_max_ms=bounds[1],
    )


NO_BOUND = 2**63 - 1


def validator_bounds(entry: dict[str, Any]) -> tuple[int, int]:
    """The bounds with which the validator ran for the golden files; they are set only where they matter."""
    before = 1000 if entry.get("topicKind") == "tsbound" else NO_BOUND
    after = 3600000 if "-future-" in entry["name"] else NO_BOUND
    return before, after


VALIDATIONS = [(name, place) for name, entry in ENTRIES.items() for place in range(len(entry["validator"]))]


@pytest.mark.parametrize(("name", "place"), VALIDATIONS)
def test_the_validator_says_the_same(name: str, place: int) -> None:
    entry = ENTRIES[name]
    verdict = entry["validator"][place]
    rules = rules_of(verdict, entry)
    if verdict["result"] == "error":
        with pytest.raises(RecordsError) as raised:
            records.validate_records(bytes_of(entry), rules, NOW_MS)
        assert raised.value.code == CODES[verdict["exception"]]
        assert [index for index, _ in raised.value.record_errors] == verdict.get("recordErrors", [])
        return
    found = records.validate_records(bytes_of(entry), rules, NOW_MS)
    assert found.assign(FIRST_OFFSET, LEADER_EPOCH) == verdict["nextOffset"] - 1
    assert found.max_timestamp == verdict["maxTimestamp"]
    assert found.log_append_time == (verdict["logAppendTime"] if rules.log_append_time else -1)
    assert_same_result(bytes(found.data), verdict)
    if not verdict["sizeMaybeChanged"]:
        assert not found.converted


def assert_same_result(data: bytes, verdict: dict[str, Any]) -> None:
    """The same bytes (Kafka's validator alone keeps a torn batch at the end; its append does not)."""
    (batch,) = records.scan(data, check_crc=False)
    assert batch.size == len(data)
    if "hex" not in verdict:
        (expected,) = verdict["batches"]
        assert batch_fields(batch, expected["crcValid"]) == expected
    elif verdict["sizeMaybeChanged"] and batch.codec != "none":
        assert_same_but_for_compression(data, bytes.fromhex(verdict["hex"]))
    else:
        assert data.hex() == verdict["hex"][: 2 * len(data)]


def assert_same_but_for_compression(data: bytes, expected: bytes) -> None:
    """Compressed again by another compressor: the same header and records."""
    ours, theirs = records.scan(data)[0], records.scan(expected)[0]
    own = {"crc": ours.crc, "sizeInBytes": ours.size}
    assert batch_fields(ours, True) == batch_fields(theirs, True) | own
    assert list(records.read(data)) == list(records.read(expected))


# -- Produce


@every_entry
def test_a_produce_request_is_checked_the_same(name: str) -> None:
    entry = ENTRIES[name]
    expected = entry["produceRequestCheck"]
    if expected == "ok":
        records.check_produce(bytes_of(entry), 9)
        return
    with pytest.raises(RecordsError) as raised:
        records.check_produce(bytes_of(entry), 9)
    assert raised.value.code == CODES[expected]


# -- broker

TOPICS: dict[str, dict[str, Any]] = {
    "default": {},
    "compact": {"compacted": True},
    "small": {"max_message_bytes": 1000},
    "append": {"log_append_time": True},
    "gzip": {"compression": "gzip"},
    "uncompressed": {"compression": "uncompressed"},
    "tsbound": {"timestamp_before_max_ms": 1000},
    "future": {},
}
# The batch with a timestamp two hours ahead was made when it was sent.
SENT_MS = int.from_bytes(bytes_of(ENTRIES["timestamp-future-2h"])[27:35], "big") - 2 * 3600000
# Refused because of the producer's state, which is not looked at here.
PRODUCER_STATE = {errors.INVALID_PRODUCER_EPOCH}


def stored(entry: dict[str, Any]) -> bytes:
    data = bytes_of(entry)
    records.check_produce(data, 9)
    found = records.validate(data, Rules(**TOPICS[entry["broker"]["topic"]]), SENT_MS)
    found.assign(0, 0)
    return bytes(found.data)


@every_entry
def test_a_broker_answers_the_same(name: str) -> None:
    entry = ENTRIES[name]
    expected = entry["broker"]
    if expected["errorCode"] == 0 or expected["errorCode"] in PRODUCER_STATE:
        data = stored(entry)
        if "storedHex" in expected:
            assert_same_stored(data, bytes.fromhex(expected["storedHex"]), bytes_of(entry))
        elif "storedLength" in expected:
            assert len(data) == expected["storedLength"]
        return
    with pytest.raises(RecordsError) as raised:
        stored(entry)
    assert raised.value.code == expected["errorCode"]
    assert [index for index, _ in raised.value.record_errors] == expected["recordErrors"]
    assert (raised.value.message is not None) == expected["hasErrorMessage"]


def assert_same_stored(data: bytes, expected: bytes, sent: bytearray) -> None:
    if expected[22] & 7 not in (0, sent[22] & 7):
        assert_same_but_for_compression(data, expected)
    else:
        assert data.hex() == expected.hex()
