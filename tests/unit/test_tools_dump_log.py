"""`dump-log` prints what kafka-dump-log printed for each file of the golden logs, and for damaged ones."""

from __future__ import annotations

import json
import re
import struct
import tarfile
from pathlib import Path

import pytest

from pykafkad import messages, tools, uuids
from pykafkad.cluster import metadata_records
from pykafkad.hot import records
from pykafkad.tools import dump_decoders

GOLDEN = Path(__file__).parents[1] / "golden" / "logs.tar.gz"
DIRECTORIES = [
    "codecs",
    "compacted",
    "deleted",
    "epochs",
    "groups",
    "idempotent",
    "plain",
    "transactions",
    "unclean-after-recovery",
    "unclean-before-recovery",
]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(directory, filter="data")
    return directory / "logs"


def dump(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tools.main("dump-log", arguments)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def decoder_of(partition: str) -> list[str]:
    if partition.startswith("__consumer_offsets"):
        return ["--offsets-decoder"]
    if partition.startswith("__transaction_state"):
        return ["--transaction-log-decoder"]
    return ["--cluster-metadata-decoder", "--skip-record-metadata"]


@pytest.mark.parametrize("name", DIRECTORIES)
def test_golden_logs(
    name: str, golden: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden / name / "data")
    compared = 0
    for known in sorted((golden / name / "dump").iterdir()):
        partition, _, decoded = known.name.removesuffix(".txt").partition(".")
        how = decoder_of(partition) if decoded else ["--print-data-log", "--deep-iteration"]
        text = known.read_bytes().decode()
        for block in re.split(r"(?m)^(?=Dumping )", text)[1:]:
            file = block.partition("\n")[0].removeprefix("Dumping ")
            code, out, err = dump(capsys, "--files", file, *how)
            assert (code, out + err.replace(f"{golden}/", "")) == (0, block), file
            compared += 1
    assert compared > 0


TRANSACTION_STATE = GOLDEN.parent / "transaction_state"


def test_transactions_of_each_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that Kafka wrote while transaction.version was 0, 1 and 2: committed, aborted, prepared, open, fenced."""
    monkeypatch.chdir(TRANSACTION_STATE)
    known = (TRANSACTION_STATE / "dump.txt").read_text()
    assert {f'"version":"{version}"' in known for version in (0, 1)} == {True}
    file = "00000000000000000000.log"
    assert dump(capsys, "--files", file, "--transaction-log-decoder") == (0, known, "")


def test_what_is_no_transaction_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Kafka's words, with our reason in the place of its exception's message, which is null."""
    key = bytes(2) + messages.TransactionLogKey(transactional_id="id").encode(0)
    value = messages.TransactionLogValue(producer_id=5).encode(1)
    rows = {
        (key, None): 'key: {"type":"0","data":{"transactionalId":"id"}} payload: <DELETE>',
        (b"\0\1", b""): "key: Unknown record type 1 at offset 1, skipping.",
        (b"\0", b""): "key: Error at offset 2, skipping. Could not read version from key's buffer.",
        (key, b"\0"): "key: Error at offset 3, skipping. Could not read version from value's buffer.",
        (key, b"\0\7"): "key: Error at offset 4, skipping. Found an unknown record version 7 for 0 type",
        (key, b"\0\1" + value[:-1]): "Could not read record with version 1 from value's buffer due to: ",
        (key, b"\0\1" + value + b"more"): '"producerId":5,"producerEpoch":0',
    }
    batches = [records.build([(*row, [], 0)], base_offset=at) for at, row in enumerate(rows)]
    log = write_log(tmp_path / "00000000000000000000.log", *batches)
    code, out, _ = dump(capsys, "--files", str(log), "--transaction-log-decoder")
    shown = [line for line in out.splitlines() if line.startswith("|")]
    assert (code, len(shown)) == (0, len(rows))
    assert [said for line, said in zip(shown, rows.values(), strict=True) if said not in line] == []


def write_log(path: Path, *batches: bytes | bytearray) -> Path:
    path.write_bytes(b"".join(batches))
    return path


BATCH = records.build([(b"k", b"v", [], 1_700_000_000_000)] * 2)
NEXT = records.build([(b"k", b"w", [], 1_700_000_000_000)], base_offset=2)


def test_a_torn_end_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "00000000000000000000.log", BATCH, NEXT[:-3])
    code, out, _ = dump(capsys, "--files", str(log))
    assert code == 0 and out.endswith(f"Found {len(NEXT) - 3} invalid bytes at the end of {log.name}\n")
    _, out, _ = dump(capsys, "--files", str(log), "--max-bytes", str(len(BATCH)))
    assert "invalid bytes" not in out and out.count("baseOffset") == 1


def test_a_wrong_checksum_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = bytearray(BATCH)
    broken[-1] ^= 1
    _, out, _ = dump(capsys, "--files", str(write_log(tmp_path / "00000000000000000000.log", broken)))
    assert "isvalid: false" in out


def test_a_size_that_makes_no_sense_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "00000000000000000000.log", BATCH, bytes(100))
    code, _, err = dump(capsys, "--files", str(log))
    assert code == 1
    assert err == f"Found record size 0 smaller than minimum record overhead (14) in file {log}.\n"


def test_gaps_are_told_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = records.build([(None, b"x", [], 0)], base_offset=9)
    log = write_log(tmp_path / "00000000000000000000.log", BATCH, late)
    _, _, err = dump(capsys, "--files", str(log), "--deep-iteration")
    assert err == f"Non-consecutive offsets in {log}\n  1 is followed by 9\n"


def test_indexes_that_do_not_fit_their_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "00000000000000000000.log", BATCH, NEXT)
    index, times = log.with_suffix(".index"), log.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">iiii", 1, 0, 5, len(BATCH)) + bytes(16))
    times.write_bytes(struct.pack(">qiqi", 5, 1, 4, 2))
    code, out, err = dump(capsys, "--files", f"{index},{times}")
    assert code == 0
    assert f"offset: 1 position: 0\noffset: 5 position: {len(BATCH)}\nDumping" in out, "zeros end the index"
    assert "  Index offset: 5, log offset: 2\n" in err
    assert "  Index timestamp: 5, log timestamp: 1700000000000\n" in err
    assert "  Index timestamp: 4, Previously indexed timestamp: 5\n" in err
    _, out, _ = dump(capsys, "--files", str(index), "--verify-index-only")
    assert out == f"Dumping {index}\n"


def test_the_sanity_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "00000000000000000000.log", BATCH)
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 1, 0))
    assert dump(capsys, "--files", str(index), "--index-sanity-check")[1].endswith("passed sanity check.\n")
    index.write_bytes(struct.pack(">ii", 1, 0) + b"odd")
    code, _, err = dump(capsys, "--files", str(index), "--index-sanity-check")
    assert code == 1 and "found 11 bytes which is neither positive nor a multiple of 8" in err


def test_snapshots_that_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = tmp_path / "00000000000000000005.snapshot"
    snapshot.write_bytes(b"\0\7" + bytes(8))
    assert dump(capsys, "--files", str(snapshot))[2] == "Snapshot contained an unknown file version 7\n"
    snapshot.write_bytes(b"\0\1\0\0\0\1" + bytes(4))
    assert (
        "Snapshot is corrupt (CRC is no longer valid). Stored crc: 1."
        in dump(capsys, "--files", str(snapshot))[2]
    )


def test_files_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dump(capsys, "--files", "a.txt,b") == (
        0,
        "Dumping a.txt\nDumping b\n",
        "Ignoring unknown file a.txt\nIgnoring unknown file b\n",
    )
    code, _, err = dump(capsys, "--files", "x.log")
    assert (
        code == 1
        and err == "x.log: these files are called by their first offset, as in 00000000000000000000.log\n"
    )
    code, _, err = dump(capsys, "--files", str(tmp_path))
    assert code == 1 and err == f"{tmp_path} is a directory: --files takes the files in it, with commas\n"
    assert dump(capsys, "--print-data-log")[2].startswith('Missing required argument "[files]"\n')


def test_decoders_of_plain_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batch = records.build([(b"\0\0\0\5", (77).to_bytes(8, "big"), [], 0)])
    log = str(write_log(tmp_path / "00000000000000000000.log", batch))
    package = "org.apache.kafka.tools.api."
    how = [
        "--key-decoder-class",
        package + "IntegerDecoder",
        "--value-decoder-class",
        package + "LongDecoder",
    ]
    assert dump(capsys, "--files", log, *how)[1].endswith("headerKeys: [] key: 5 payload: 77\n")
    code, out, err = dump(capsys, "--files", log, "--value-decoder-class", "nope")
    assert code == 1 and out == f"Dumping {log}\n" and "nope" in err


def test_records_that_a_decoder_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(b"\x03\xe7", b"v"), (b"\0\1\0", b"v"), (b"\0\1" + bytes(8), b"\0\x63")]
    log = write_log(
        tmp_path / "00000000000000000000.log", records.build([(key, value, [], 0) for key, value in rows])
    )
    out = dump(capsys, "--files", str(log), "--offsets-decoder")[1]
    assert "key: Unknown record type 999 at offset 0, skipping.\n" in out
    assert (
        "key: Error at offset 1, skipping. Could not read record with version 0 from key's buffer due to:"
        in out
    )
    assert "key: Error at offset 2, skipping. Found an unknown record version 99 for 1 type\n" in out
    no_key = write_log(tmp_path / "00000000000000000000.log", records.build([(None, b"v", [], 0)]))
    code, _, err = dump(capsys, "--files", str(no_key), "--offsets-decoder")
    assert code == 1 and "using the specified decoder (message had a missing key)" in err


def test_remote_storage_records() -> None:
    record = messages.RemoteLogSegmentMetadataRecord
    message = record(
        remote_log_segment_id=record.RemoteLogSegmentIdEntry(
            topic_id_partition=record.TopicIdPartitionEntry(name="t", id=uuids.ONE, partition=3), id=uuids.ONE
        ),
        start_offset=1,
        end_offset=9,
        broker_id=1,
        max_timestamp_ms=7,
        event_timestamp_ms=8,
        segment_leader_epochs=[record.SegmentLeaderEpochEntry(leader_epoch=0, offset=1)],
        segment_size_in_bytes=100,
        custom_metadata=b"abc",
        remote_log_segment_state=1,
    )
    one = uuids.to_text(uuids.ONE)
    assert dump_decoders.remote_text("RemoteLogSegmentMetadataRecord", message) == (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={one}:t-3, id={one}}}, "
        "startOffset=1, endOffset=9, brokerId=1, maxTimestampMs=7, eventTimestampMs=8, segmentLeaderEpochs={0=1}, "
        "segmentSizeInBytes=100, customMetadata=Optional[CustomMetadata{3 bytes}], state=COPY_SEGMENT_FINISHED, "
        "txnIdxEmpty=false}"
    )


def test_every_metadata_record_is_shown_under_its_own_name() -> None:
    for name in metadata_records.NAMES.values():
        message = getattr(messages, name)()
        value = metadata_records.encode(message, message.min_version)
        (record,) = records.read(records.build([(None, value, [], 0)]))
        _, shown = dump_decoders.metadata_decoder(record)
        assert shown is not None
        constant = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        assert json.loads(shown)["type"] == constant, shown
