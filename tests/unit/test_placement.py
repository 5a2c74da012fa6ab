"""Log directories in the metadata: the directory of each partition, and what is shown when a directory is offline."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.cluster.features import METADATA_VERSION
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.config import BrokerConfig
from pykafkad.handlers import metadata as metadata_handler
from pykafkad.messages import MetadataRequest
from tests.unit.metadata_fakes import ENDPOINT, FakeStorage, Stored, call, creatable, create

A, B, C = (bytes([number]) * 16 for number in (10, 11, 12))


class Disks(FakeStorage):
    """Log directories, some of them online, and the logs in all of them."""

    def __init__(self, disks: dict[tuple[str, int], bytes], *online: bytes) -> None:
        super().__init__()
        self.disks = disks
        self.ids = list(online)

    @property
    def online(self) -> list[Any]:
        return [SimpleNamespace(directory_id=each) for each in self.ids]

    def open_all(
        self, known: dict[tuple[str, int], bytes], config_of: Any, placement: Any = None
    ) -> list[tuple[str, int]]:
        found = {key: self.disks[key] for key in known if self.disks.get(key) in self.ids}
        self.partitions = {key: Stored(known[key], -1, directory) for key, directory in found.items()}
        return [key for key in known if key not in found]

    def place(self, count: int) -> list[bytes]:
        return [self.ids[number % len(self.ids)] for number in range(count)]

    def create(
        self, topic: str, index: int, topic_id: bytes, config: Any, epoch: int, directory: bytes, members: Any
    ) -> None:
        found = self.partitions.get((topic, index))
        if found is not None:
            self.partitions[topic, index] = found._replace(leader_epoch=epoch)
            return
        if directory not in self.ids:
            raise OSError("the log directory is offline")
        super().create(topic, index, topic_id, config, epoch, directory, members)
        self.disks[topic, index] = directory

    def fail(self, directory: bytes) -> None:
        self.ids.remove(directory)
        self.partitions = {key: found for key, found in self.partitions.items() if found[2] != directory}


class Node:
    """A node with several log directories, after a start."""

    def __init__(self, directory: Path, storage: Any, *, some_offline: bool = False) -> None:
        paths = ",".join(f"{directory}/{name}" for name in "abc")
        self.config = BrokerConfig.from_sources({"log.dirs": paths, "metadata.log.dir": f"{directory}/a"})
        self.storage = storage
        self.log = MetadataLog(f"{directory}/a", ManualClock())
        self.log.open()
        self.image = self.log.image
        self.node_id = 1
        self.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk"
        self.controller = LocalController(self.config, self.log, storage, 1)
        self.controller.take_over([ENDPOINT], list(storage.ids), None, some_offline=some_offline)
        self.controller.load_logs()

    def told(self, name: str = "t") -> list[tuple[int, list[int], list[bytes]]]:
        """The (leader, in-sync replicas, directories) of each partition."""
        partitions = self.image.topics[name].partitions
        return [(each.leader, each.isr, each.directories) for each in partitions]

    def seen(self) -> list[tuple[int, int, list[int]]]:
        """The (error, leader, offline replicas) that clients see."""
        topic = MetadataRequest.MetadataRequestTopic(name="t")
        answer = call(self, metadata_handler, 12, topics=[topic])
        found = answer.topics[0].partitions
        return [(each.error_code, each.leader_id, each.offline_replicas) for each in found]


HERE: tuple[int, int, list[int]] = errors.NONE, 1, []
GONE = errors.LEADER_NOT_AVAILABLE, -1, [1]


def made(directory: Path) -> tuple[Node, Disks]:
    """Topic `t` with one partition in each of the directories a, b and c."""
    storage = Disks({}, A, B, C)
    node = Node(directory, storage)
    create(node, creatable("t", 3))
    assert [found[2] for found in node.told()] == [[A], [B], [C]]
    assert node.seen() == [HERE] * 3
    return node, storage


def test_nobody_leads_what_lies_in_a_directory_that_failed(tmp_path: Path) -> None:
    node, storage = made(tmp_path)
    storage.fail(B)
    node.controller.placement.directory_failed()
    assert node.told() == [(1, [1], [A]), (-1, [], [B]), (1, [1], [C])]
    failed = node.image.topics["t"].partitions[1]
    assert failed.eligible_leader_replicas == failed.last_known_elr == [1]
    assert node.image.brokers[1].directories == [A, C]
    assert node.seen() == [HERE, GONE, HERE]
    storage.fail(C)
    node.controller.placement.directory_failed()
    assert node.seen() == [HERE, GONE, GONE]
    end = node.log.end_offset
    node.controller.placement.directory_failed()
    assert node.log.end_offset == end, "what is said already is not said again"


def test_what_is_made_meanwhile_lies_in_what_is_left(tmp_path: Path) -> None:
    node, storage = made(tmp_path)
    storage.fail(B)
    node.controller.placement.directory_failed()
    create(node, creatable("u", 2))
    assert node.told("u") == [(1, [1], [A]), (1, [1], [C])]


def test_a_start_without_a_directory_makes_nothing_of_it_anew(tmp_path: Path) -> None:
    _, storage = made(tmp_path)  # the broker is killed, so that the metadata still calls it the leader
    for offline in ([B], [B, C]):
        left = [each for each in (A, B, C) if each not in offline]
        node = Node(tmp_path, Disks(storage.disks, *left), some_offline=True)
        assert [found[2] for found in node.told()] == [[A], [B], [C]]
        assert node.seen() == [HERE if each in left else GONE for each in (A, B, C)]
        assert not node.storage.events or node.storage.events == ["resume moves"]
        assert storage.disks == {("t", 0): A, ("t", 1): B, ("t", 2): C}


def test_a_start_with_it_leads_again(tmp_path: Path) -> None:
    node, storage = made(tmp_path)
    storage.fail(B)
    node.controller.placement.directory_failed()
    epoch = node.image.topics["t"].partitions[1].leader_epoch
    again = Node(tmp_path, Disks(storage.disks, A, B, C))
    assert again.told() == [(1, [1], [A]), (1, [1], [B]), (1, [1], [C])]
    assert again.seen() == [HERE] * 3
    back = again.image.topics["t"].partitions[1]
    assert back.leader_epoch == epoch + 1
    assert not back.eligible_leader_replicas and not back.last_known_elr


def test_a_log_that_lies_elsewhere_than_it_was_thought_is_led(tmp_path: Path) -> None:
    _, storage = made(tmp_path)
    storage.disks["t", 1] = C  # it was moved by hand, and b is broken
    node = Node(tmp_path, Disks(storage.disks, A, C), some_offline=True)
    assert node.told()[1] == (1, [1], [C])
    assert node.seen() == [HERE] * 3
    epochs = [partition.leader_epoch for partition in node.image.topics["t"].partitions]
    assert [found.leader_epoch for _, found in sorted(node.storage.partitions.items())] == epochs


def test_a_log_that_was_moved_by_hand_between_good_directories_keeps_its_leader_epoch(tmp_path: Path) -> None:
    _, storage = made(tmp_path)
    storage.disks["t", 1] = C
    node = Node(tmp_path, Disks(storage.disks, A, B, C))
    assert node.told()[1] == (1, [1], [C])
    assert len({partition.leader_epoch for partition in node.image.topics["t"].partitions}) == 1


def test_a_directory_that_fails_while_it_is_loaded(tmp_path: Path) -> None:
    _, storage = made(tmp_path)

    class Failing(Disks):
        def open_all(
            self, known: dict[tuple[str, int], bytes], config_of: Any, placement: Any = None
        ) -> list[tuple[str, int]]:
            self.fail(B)
            return super().open_all(known, config_of)

    node = Node(tmp_path, Failing(storage.disks, A, B, C))
    assert node.seen() == [HERE, GONE, HERE]
    assert node.image.brokers[1].directories == [A, C]


def test_a_log_that_was_never_made_is_made_where_its_directory_is_online(tmp_path: Path) -> None:
    _, storage = made(tmp_path)
    del storage.disks["t", 0]  # the crash came before its directory was created
    node = Node(tmp_path, Disks(storage.disks, A, C), some_offline=True)
    assert "create t-0" in node.storage.events
    assert node.seen() == [HERE, GONE, HERE]


def test_metadata_that_does_not_know_of_directories_is_left_alone(tmp_path: Path) -> None:
    node, storage = made(tmp_path)
    node.image.features[METADATA_VERSION] = 16
    node.image.brokers[1].directories = []
    end = node.log.end_offset
    node.storage.partitions["t", 1] = node.storage.partitions["t", 1]._replace(directory_id=C)
    assert (("t", 1), C) in list(node.storage.placed())
    node.controller.placement.correct(node.log)
    storage.fail(B)
    node.controller.placement.directory_failed()
    assert node.log.end_offset == end


def test_the_first_metadata_that_knows_of_directories_is_told(tmp_path: Path) -> None:
    node, _ = made(tmp_path)
    node.image.features[METADATA_VERSION] = 17
    node.storage.partitions["t", 1] = node.storage.partitions["t", 1]._replace(directory_id=C)
    node.controller.placement.correct(node.log)
    assert node.image.topics["t"].partitions[1].directories == [C]


def test_a_topic_that_is_being_deleted_is_not_spoken_of_any_more(tmp_path: Path) -> None:
    node, storage = made(tmp_path)
    waiting: list[tuple[Any, Any]] = []
    node.controller._commits._submit = lambda work, done: waiting.append((work, done))
    node.controller.delete_topics([node.image.topics["t"].id], lambda error: None)
    storage.fail(B)
    told: list[Any] = []
    moving: Any = SimpleNamespace(topic_id=node.image.topics["t"].id, index=0)
    node.controller.placement.moved(moving, SimpleNamespace(directory_id=C), told.append)  # type: ignore[arg-type]
    moving.topic_id = bytes(16)
    node.controller.placement.moved(moving, SimpleNamespace(directory_id=C), told.append)  # type: ignore[arg-type]
    assert [error.code for error in told] == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 2
    node.controller.placement.directory_failed()
    while waiting:
        work, done = waiting.pop(0)
        done(work())
    assert "t" not in node.image.topics
    assert node.image.brokers[1].directories == [A, C]
    assert node.controller.idle


def test_a_topic_made_anew_is_not_taken_for_the_one_that_was_lost(tmp_path: Path) -> None:
    _, storage = made(tmp_path)
    node = Node(tmp_path, Disks(storage.disks, A, C), some_offline=True)
    node.controller.delete_topics([node.image.topics["t"].id], lambda error: None)
    create(node, creatable("t", 3))
    assert node.seen() == [HERE] * 3 and len(node.storage.partitions) == 3
