"""Both kinds of quorum (KIP-853), and the records with which a formatted directory begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad import messages as m
from pykafkad.clock import ManualClock
from pykafkad.cluster import handover, metadata_bootstrap, metadata_records
from pykafkad.cluster.metadata_files import DIRECTORY
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.handlers import add_raft_voter, remove_raft_voter
from pykafkad.hot import records
from pykafkad.uuids import to_text
from tests.unit.metadata_fakes import call, creatable, create, open_broker
from tests.unit.test_metadata_log import copied, opened, segment, tree

LEADER_CHANGE, HEADER, FOOTER, KRAFT_VERSION, VOTERS = 2, 3, 4, 5, 6
VOTERS_ONLY = "00000000000000000000-0000000000.checkpoint"
NOW_MS = 1_700_000_000_000


def controls(data: bytes) -> list[list[tuple[int | None, bytes]]]:
    """Type and value of the control records, by batch."""
    return [
        [(record.control_type, bytes(record.value or b"")) for record in read(data, batch)]
        for batch in records.scan(data)
        if batch.is_control
    ]


def read(data: bytes, batch: Any) -> list[Any]:
    return list(records.batch_records(data[batch.position : batch.position + batch.size]))


def quorum_of(data: bytes) -> list[tuple[int | None, bytes]]:
    return [row for rows in controls(data) for row in rows if row[0] in (KRAFT_VERSION, VOTERS)]


def test_a_dynamic_quorum_of_kafkas_stays_one(golden: Path, tmp_path: Path) -> None:
    directory = copied(golden / "metadata" / "dynamic", tmp_path)
    voters = quorum_of((directory / VOTERS_ONLY).read_bytes())
    assert [kind for kind, _ in voters] == [KRAFT_VERSION, VOTERS]
    before = segment(tmp_path).read_bytes()
    broker = open_broker(tmp_path, metadata_log_max_record_bytes_between_snapshots="1")
    assert broker.image.kraft_version == 1
    create(broker, creatable("orders"))
    broker.controller.stop()
    state = (directory / "quorum-state").read_text()
    theirs = (golden / "metadata" / "dynamic" / "quorum-state").read_text()
    assert state == theirs.replace('"leaderEpoch":1', '"leaderEpoch":2')
    ours = segment(tmp_path).read_bytes()[len(before) :]
    assert [[kind for kind, _ in rows] for rows in controls(ours)] == [[LEADER_CHANGE]]
    newest = max(directory.glob("*.checkpoint")).read_bytes()
    assert quorum_of(newest) == voters
    assert [[kind for kind, _ in rows] for rows in controls(newest)] == [
        [HEADER, KRAFT_VERSION, VOTERS],
        [FOOTER],
    ]


def test_the_voters_are_found_wherever_they_stand(golden: Path, tmp_path: Path) -> None:
    """In the snapshot at offset 0, in the log's first batch, or in a later snapshot: one place is enough."""
    whole = opened(copied(golden / "metadata" / "dynamic", tmp_path / "whole").parent)
    assert whole.contents.kraft_version == 1 and whole.contents.voters
    directory = copied(golden / "metadata" / "dynamic", tmp_path / "log")
    (directory / VOTERS_ONLY).unlink()
    assert opened(tmp_path / "log").contents.voters == whole.contents.voters
    made = open_broker(tmp_path / "whole", metadata_log_max_record_bytes_between_snapshots="1")
    create(made, creatable("orders"))
    made.log.close()
    directory = copied(tmp_path / "whole" / DIRECTORY, tmp_path / "snapshot")
    (directory / VOTERS_ONLY).unlink()
    (directory / segment(tmp_path).name).unlink()
    again = opened(tmp_path / "snapshot")
    assert (again.contents.voters, again.contents.kraft_version) == (whole.contents.voters, 1)
    assert again.image.kraft_version == 1


def test_a_directory_formatted_for_a_dynamic_quorum_begins_as_kafkas_does(
    golden: Path, tmp_path: Path
) -> None:
    """The first batch that Kafka wrote there, except for times and checksum."""
    (tmp_path / DIRECTORY).mkdir()
    checkpoint = (golden / "metadata" / "dynamic" / VOTERS_ONLY).read_bytes()
    (tmp_path / DIRECTORY / VOTERS_ONLY).write_bytes(checkpoint)
    open_broker(tmp_path).log.close()
    ours, theirs = (
        segment(tmp_path).read_bytes(),
        (golden / "metadata" / "dynamic" / segment(tmp_path).name).read_bytes(),
    )
    size = records.scan(theirs)[0].size
    assert ours[:17] + ours[21:27] + ours[43:size] == theirs[:17] + theirs[21:27] + theirs[43:size]
    assert '"data_version":1' in (tmp_path / DIRECTORY / "quorum-state").read_text()


def test_the_voters_that_we_write_are_kafkas_byte_for_byte(golden: Path, tmp_path: Path) -> None:
    voters = opened(copied(golden / "metadata" / "dynamic", tmp_path).parent).contents.voters
    (found,) = m.VotersRecord.decode(voters, 0).voters
    (point,) = found.endpoints
    log = MetadataLog(str(tmp_path / "new"), ManualClock())
    handover.make_dynamic(log, 1, found.voter_directory_id, point.name, point.host, point.port)
    assert log.contents.voters == voters


def test_the_quorum_is_shown_as_the_log_has_it(golden: Path, tmp_path: Path) -> None:
    voters = opened(copied(golden / "metadata" / "dynamic", tmp_path).parent).contents.voters
    broker = open_broker(tmp_path)
    assert broker.image.finalized_features["kraft.version"] == 1
    assert (
        broker.controller.quorum.voter_directory_id
        == m.VotersRecord.decode(voters, 0).voters[0].voter_directory_id
    )
    static = open_broker(tmp_path / "static")
    assert "kraft.version" not in static.image.finalized_features
    assert static.controller.quorum.voter_directory_id == bytes(16)


# -- bootstrap.checkpoint


def test_bootstrap_checkpoint_is_kafkas_byte_for_byte(golden: Path, tmp_path: Path) -> None:
    handover.leave_bootstrap([str(tmp_path)], NOW_MS)
    ours = (tmp_path / "bootstrap.checkpoint").read_bytes()
    theirs = (golden / "metadata" / "bootstrap.checkpoint").read_bytes()
    assert len(ours) == len(theirs)
    for mine, _other in zip(records.scan(ours), records.scan(theirs), strict=True):
        at, end = mine.position, mine.position + mine.size
        assert ours[at : at + 17] + ours[at + 21 : at + 27] + ours[at + 43 : end] == (
            theirs[at : at + 17] + theirs[at + 21 : at + 27] + theirs[at + 43 : end]
        )


def test_one_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"theirs")
    handover.leave_bootstrap([str(tmp_path)], NOW_MS)
    assert (tmp_path / "bootstrap.checkpoint").read_bytes() == b"theirs"


def formatted(directory: Path, *levels: tuple[str, int]) -> None:
    rows = [(m.FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels]
    metadata_bootstrap.write([str(directory)], rows, NOW_MS)


def test_a_cluster_begins_with_what_it_was_formatted_with(tmp_path: Path) -> None:
    """An older metadata.version, no eligible leader replicas, and a user with a SCRAM credential."""
    user = m.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=20)
    metadata_bootstrap.write([str(tmp_path)], [(level, 0), (user, 0)], NOW_MS)
    broker = open_broker(tmp_path)
    assert broker.image.features == {"metadata.version": 20}
    assert [name for name, _ in broker.image.scram_users] == ["alice"]
    assert broker.image.broker_configs("") == {}


def test_metadata_transactions_are_not_written_for_a_version_that_has_none(tmp_path: Path) -> None:
    formatted(tmp_path, ("metadata.version", 12))
    open_broker(tmp_path).log.close()
    data = segment(tmp_path).read_bytes()
    kinds = [
        metadata_records.type_of(record.value or b"")
        for batch in records.scan(data)
        if not batch.is_control
        for record in read(data, batch)
    ]
    assert 12 in kinds and 23 not in kinds


@pytest.mark.parametrize(
    ("name", "level", "said"),
    [
        ("metadata.version", 31, "metadata.version 31 is newer than 30"),
        ("metadata.version", 6, "metadata.version 6 is older than 7"),
        ("group.version", 2, "group.version 2 is newer than 1"),
        ("comet.version", 1, "unknown feature comet.version"),
    ],
)
def test_a_level_that_is_not_known_is_refused_before_anything_is_written(
    tmp_path: Path, name: str, level: int, said: str
) -> None:
    formatted(tmp_path, (name, level))
    before = tree(tmp_path)
    with pytest.raises(MetadataError, match=said):
        handover.check_bootstrap(str(tmp_path))
    assert tree(tmp_path) == before and os.listdir(tmp_path) == ["bootstrap.checkpoint"]


def test_the_voters_of_a_dynamic_quorum_stay_as_they_are(golden: Path, tmp_path: Path) -> None:
    """Codes and texts are those of Kafka with one voter, which nobody else can be reached from."""
    copied(golden / "metadata" / "dynamic", tmp_path)
    broker = open_broker(tmp_path)
    own, other = broker.controller.quorum.voter_directory_id, bytes(range(16))
    me = f"ReplicaKey(id=1, directoryId={to_text(own)})"
    endpoint = m.AddRaftVoterRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=9999)

    def added(voter_id: int, directory_id: bytes) -> tuple[int, str]:
        asked = {"voter_id": voter_id, "voter_directory_id": directory_id, "listeners": [endpoint]}
        answer = call(broker, add_raft_voter, 1, cluster_id=None, **asked)
        return answer.error_code, answer.error_message

    def removed(voter_id: int, directory_id: bytes) -> tuple[int, str]:
        asked = {"voter_id": voter_id, "voter_directory_id": directory_id}
        answer = call(broker, remove_raft_voter, 0, cluster_id=None, **asked)
        return answer.error_code, answer.error_message

    for directory_id in (own, other):
        key = f"ReplicaKey(id=1, directoryId={to_text(directory_id)})"
        text = f"The voter id for {key} is already part of the set of voters [{me}]."
        assert added(1, directory_id) == (errors.DUPLICATE_VOTER, text)
    new = "ReplicaKey(id=2, directoryId=AAECAwQFBgcICQoLDA0ODw)"
    text = f"New voter {new} is not ready to receive requests"
    assert added(2, other) == (errors.REQUEST_TIMED_OUT, text)
    text = f"Cannot remove voter {new} from the set of voters [{me}]"
    assert removed(2, other) == (errors.VOTER_NOT_FOUND, text)
    text = f"Cannot remove voter {me} from the set of voters [{me}]"
    assert removed(1, own) == (errors.VOTER_NOT_FOUND, text)
