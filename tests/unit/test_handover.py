"""Taking a directory over and handing it back: which partitions are led again, and which directories are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad import messages as m
from pykafkad.clock import ManualClock
from pykafkad.cluster import handover, metadata_records
from pykafkad.cluster.commits import at_once
from pykafkad.cluster.image import Image
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_files import DIRECTORY
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.config import BrokerConfig
from pykafkad.config_listeners import Endpoint
from pykafkad.errors import StartupError
from pykafkad.hot import records
from pykafkad.slices import Slices
from pykafkad.uuids import ZERO
from pykafkad.workers import submit_inline
from tests.unit.metadata_fakes import DIRECTORY_ID, ENDPOINT, FakeStorage, creatable, create, open_broker
from tests.unit.test_image import TOPIC_ID, image_with, topic
from tests.unit.test_metadata_log import copied, opened, tree

HERE, THERE, LOST = b"\5" * 16, b"\6" * 16, b"\7" * 16
ELR = "eligible.leader.replicas.version"


def image_of(level: int, *partitions: dict[str, Any], elr: int = 1) -> Image:
    levels = [
        m.FeatureLevelRecord(name=name, feature_level=each)
        for name, each in (("metadata.version", level), (ELR, elr))
    ]
    rows = [
        m.PartitionRecord(
            partition_id=index, topic_id=TOPIC_ID, **{"replicas": [1], "isr": [1], "leader": 1, **each}
        )
        for index, each in enumerate(partitions)
    ]
    return image_with(*levels, topic(), *rows)


def led(image: Image, *directories: bytes, some_offline: bool = False) -> list[tuple[Any, int]]:
    return list(
        handover.lead_again(image, image.topics["orders"], 1, list(directories), some_offline=some_offline)
    )


def change(index: int = 0, **fields: Any) -> Any:
    return m.PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, **fields)


@pytest.mark.parametrize(
    ("level", "partition", "also", "version"),
    [
        (30, {"directories": [HERE]}, {}, 2),
        (23, {"directories": [HERE]}, {}, 2),
        (22, {"directories": [HERE]}, {}, 1),
        (17, {"directories": [THERE]}, {"directories": [HERE]}, 1),
        (16, {}, {}, 0),
        (30, {"directories": [ZERO]}, {"directories": [HERE]}, 2),
        (
            30,
            {"directories": [HERE], "eligible_leader_replicas": [1]},
            {"eligible_leader_replicas": [], "last_known_elr": []},
            2,
        ),
        (
            30,
            {"directories": [HERE], "last_known_elr": [1]},
            {"eligible_leader_replicas": [], "last_known_elr": []},
            2,
        ),
        (22, {"directories": [HERE], "last_known_elr": [1]}, {}, 1),
        (
            30,
            {"directories": [HERE], "leader_recovery_state": 1},
            {"leader_recovery_state": 0},
            2,
        ),
        (30, {"directories": [HERE], "leader": -1, "isr": []}, {}, 2),
    ],
)
def test_a_partition_is_led_again(
    level: int, partition: dict[str, Any], also: dict[str, Any], version: int
) -> None:
    image = image_of(level, partition)
    assert led(image, HERE) == [(change(isr=[1], leader=1, **also), version)]


def test_with_several_directories_it_stays_where_it_is_said_to_be() -> None:
    image = image_of(30, {"directories": [LOST]}, {"directories": [HERE]})
    expected = [(change(index, isr=[1], leader=1), 2) for index in (0, 1)]
    assert led(image, HERE, THERE) == expected


def test_what_may_lie_in_a_directory_that_is_offline_has_no_leader() -> None:
    lost = {"directories": [LOST]}
    image = image_of(30, lost, {**lost, "leader": -1}, {"directories": [HERE]}, {"directories": [ZERO]})
    assert led(image, HERE, some_offline=True) == [
        (change(0, leader=-1, isr=[], eligible_leader_replicas=[1], last_known_elr=[1]), 2),
        (change(2, isr=[1], leader=1), 2),
        (change(3, isr=[1], leader=1), 2),
    ]
    assert led(image_of(30, lost, elr=0), HERE, some_offline=True) == [(change(0, leader=-1), 2)]


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (17, 3), (30, 4)])
def test_a_broker_is_registered_fenced_as_far_as_the_level_says(level: int, version: int) -> None:
    point = Endpoint("EXT", "SASL_SSL", "kafka.example", 9094)
    record, of_version = handover.registration(image_of(level, elr=0), 1, 44, [point], [HERE], "rack")
    assert (of_version, record.fenced, record.broker_epoch, record.rack) == (version, True, 44, "rack")
    (shown,) = record.end_points
    assert (shown.name, shown.host, shown.port, shown.security_protocol) == ("EXT", "kafka.example", 9094, 3)
    assert record.log_dirs == ([HERE] if version >= 3 else [])
    assert record.cordoned_log_dirs == ([] if version >= 4 else None)
    levels = {each.name: (each.min_supported_version, each.max_supported_version) for each in record.features}
    assert levels["metadata.version"] == (7, 30) and levels["transaction.version"] == (0, 2)
    again, _ = handover.registration(image_of(level, elr=0), 1, 44, [point], [HERE], "rack")
    assert again.incarnation_id != record.incarnation_id


def test_the_features_of_a_registration_are_those_of_kafkas(golden: Path, tmp_path: Path) -> None:
    copied(golden / "metadata" / "plain", tmp_path)
    ours, _ = handover.registration(image_of(30), 1, 44, [], [HERE], None)
    kafkas = opened(tmp_path).image.brokers[1].features

    def shown(features: Any) -> dict[str, tuple[int, int]]:
        return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}

    assert shown(ours.features) == shown(kafkas)


def controller_of(directory: Path, storage: FakeStorage, node_id: int = 1, *more: Path) -> LocalController:
    """Of a start on that directory, before anything is changed; `more` log directories have no metadata."""
    log = MetadataLog(str(directory), ManualClock())
    log.open()
    config = BrokerConfig.from_sources({"log.dirs": ",".join(map(str, (directory, *more)))})
    run = Slices(at_once, log.clock).run
    return LocalController(config, log, cast(Any, storage), node_id, submit_inline, at_once, run)


def test_a_start_refuses_a_directory_that_is_not_its_own(tmp_path: Path) -> None:
    more = tmp_path / "more"
    (more / "orders-0").mkdir(parents=True)
    controller_of(tmp_path, FakeStorage(), 1, more).check()
    (more / "orders-0" / "partition.metadata").touch()
    with pytest.raises(StartupError, match="holds orders-0"):
        controller_of(tmp_path, FakeStorage(), 1, more).check()
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    broker.controller.stop()
    controller_of(tmp_path, FakeStorage()).check()
    with pytest.raises(StartupError, match=r"node\.id is 2"):
        controller_of(tmp_path, FakeStorage(), node_id=2).check()


def test_moves_of_partitions_go_on_when_their_logs_are_loaded(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    broker.controller.stop()
    storage = FakeStorage()
    controller = controller_of(tmp_path, storage)
    controller.take_over([ENDPOINT], [DIRECTORY_ID], None)
    controller.load_logs()
    assert storage.events == ["create orders-0", "resume moves"]


def test_a_log_whose_directory_failed_is_left_as_it_is(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    broker.controller.abandon_log()
    before = tree(tmp_path)
    broker.controller.stop()
    assert tree(tmp_path) == before


def test_a_stop_writes_what_every_level_of_the_metadata_knows(tmp_path: Path) -> None:
    """The first version of a change of a registration has no log directories, which 3.3 does not know."""
    broker = open_broker(tmp_path)
    end = broker.log.end_offset
    broker.controller.stop()
    data = (tmp_path / DIRECTORY / f"{0:020d}.log").read_bytes()
    written = [
        (metadata_records.type_of(record.value or b""), metadata_records.version_of(record.value or b""))
        for batch in records.scan(data)
        if batch.base_offset >= end
        for record in records.batch_records(data[batch.position : batch.position + batch.size])
    ]
    assert written == [(17, 1), (17, 0)]


def test_no_batch_has_more_than_ten_thousand_records() -> None:
    rows: Any = list(range(20_001))
    assert [len(batch) for batch in handover.in_batches(rows)] == [10_000, 10_000, 1]
    assert [each for batch in handover.in_batches(rows) for each in batch] == rows
    assert handover.in_batches([]) == []


@pytest.mark.parametrize(
    ("name", "file", "refused"),
    [
        ("orders-0", "partition.metadata", True),
        ("a-b-12", "partition.metadata", True),
        ("orders-0", "00000000000000000000.log", False),
        ("orders", "partition.metadata", False),
        ("-0", "partition.metadata", False),
        ("orders-x", "partition.metadata", False),
        ("__cluster_metadata-0", "partition.metadata", False),
    ],
)
def test_partitions_that_no_metadata_knows_are_not_begun_over(
    tmp_path: Path, name: str, file: str, refused: bool
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / file).touch()
    directories = [str(tmp_path / "nosuch"), str(tmp_path)]
    if refused:
        with pytest.raises(StartupError, match=f"{tmp_path} holds {name} but there is no metadata log"):
            handover.check_not_orphaned(directories)
    else:
        handover.check_not_orphaned(directories)
