"""Two brokers of ours in one process, over loopback: one follows the other, as the test, their controller, tells them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import UpdateMetadataRequest
from pykafkad.net.peers import Peers
from pykafkad.pure.java import as_int, hash_code
from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop
from tests.replication_kit import TOPIC, ReplicatingDesk, State
from tests.unit.cluster_kit import TOPIC_ID
from tests.unit.data_kit import batch, fetch, produce, values_of

TURNS_MAX = 20_000


class Node:
    """A broker with its loop and its listener."""

    def __init__(self, module: ModuleType, path: Path, node_id: int, town: Town) -> None:
        path.mkdir()
        self.node_id, self.town = node_id, town
        self.desk = ReplicatingDesk(path, node_id, **town.configs)
        self.loop = Loop(
            module,
            self.desk.dispatcher.on_frame,
            on_pass_end=self.desk._on_pass_end,
            clock=self.desk.clock,
        )
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener = self.loop.reactor.listen(self.sock, lambda connection: True)
        listener.owner = SimpleNamespace(name="PLAINTEXT")
        self.desk.connection.listener = SimpleNamespace(owner=listener.owner)  # type: ignore[attr-defined]
        self.peers = Peers(self.loop.reactor, look_up, town.endpoint_of)
        self.desk.replicate(self.loop.reactor, self.peers, town.protocol)

    def turn(self, delta_ms: int = 0) -> None:
        """A pass of the loop, in which the broker's timers run."""
        self.loop.reactor.call_soon(self.desk.advance, delta_ms)
        self.loop.turn()

    def close(self) -> None:
        self.desk.replication.close()
        self.peers.close()
        self.loop.turn(3)
        self.loop.close()
        self.sock.close()
        assert not self.loop.errors, self.loop.errors
        self.desk.storage.close()


def look_up(hosts: Any, done: Callable[[dict[str, str]], None]) -> None:
    done({host: host for host in hosts})


class Town:
    def __init__(self, module: ModuleType, path: Path, protocol: str = "3.9", **configs: str) -> None:
        self.module, self.path, self.protocol, self.configs = module, path, protocol, configs
        self.state = State([0, 1])
        self.nodes: dict[int, Node] = {}
        for node_id in (0, 1):
            self.nodes[node_id] = Node(module, path / str(node_id), node_id, self)

    @property
    def leader(self) -> ReplicatingDesk:
        return self.nodes[0].desk

    @property
    def follower(self) -> ReplicatingDesk:
        return self.nodes[1].desk

    def endpoint_of(self, node_id: int) -> tuple[str, int] | None:
        """None: the controller, of whom nothing comes in these tests."""
        return self.nodes[node_id].sock.getsockname() if node_id in self.nodes else None

    def port_of(self, node_id: int) -> int:
        return self.nodes[node_id].sock.getsockname()[1]

    def live(self) -> list[Any]:
        Request = UpdateMetadataRequest
        return [
            Request.UpdateMetadataBroker(
                id=node_id,
                endpoints=[
                    Request.UpdateMetadataEndpoint(
                        host="127.0.0.1", port=self.port_of(node_id), listener="PLAINTEXT"
                    )
                ],
                rack=f"rack{node_id}",
            )
            for node_id in self.nodes
        ]

    def tell(self, *node_ids: int) -> None:
        """LeaderAndIsr and UpdateMetadata."""
        for node_id in node_ids or (0, 1):
            desk = self.nodes[node_id].desk
            desk.hear(self.live())
            assert desk.lead_and_follow(self.state.for_replicas()) == {0: 0}
            desk.hear(self.live(), [self.state.for_metadata()])

    def until(self, there: Callable[[], bool]) -> None:
        for _ in range(TURNS_MAX):
            if there():
                return
            for node in self.nodes.values():
                node.turn()
        raise AssertionError("it never came to that")

    def pass_ms(self, delta_ms: int) -> None:
        """All clocks are moved, and what is due is done."""
        for node in self.nodes.values():
            node.turn(delta_ms)

    def are_same(self) -> bool:
        one, two = (node.desk.replica.log for node in self.nodes.values())
        return one.log_end_offset == two.log_end_offset and content(one) == content(two)

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def content(log: Any) -> list[tuple[str, bytes]]:
    log.commit()
    names = sorted(name for name in os.listdir(log.directory) if name.endswith(".log"))
    return [(name, Path(log.directory, name).read_bytes()) for name in names]


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def town(module: ModuleType, tmp_path: Path) -> Iterator[Town]:
    town = Town(module, tmp_path)
    yield town
    town.close()


def write(desk: ReplicatingDesk, *values: bytes, acks: int = 1) -> Any:
    return desk.ask(produce(TOPIC, 0, batch(*values), acks=acks), 9)


def test_a_follower_gets_the_log_byte_for_byte(town: Town) -> None:
    town.tell()
    for number in range(20):
        write(town.leader, b"%d" % number * 1000)
    town.leader.ask(produce(TOPIC, 0, batch(*[b"zip"] * 100, codec="gzip")), 9)
    town.until(town.are_same)
    assert town.follower.replica.log_end_offset == 120
    # What the follower has the leader hears with its next fetch, and the follower that with the answer to it.
    town.until(lambda: town.leader.replica.high_watermark == 120)
    write(town.leader, b"more")
    town.until(lambda: town.follower.replica.high_watermark >= 120)


def test_a_produce_to_all_is_answered_when_the_follower_has_it(town: Town) -> None:
    town.tell()
    given = town.leader.send(produce(TOPIC, 0, batch(b"x"), acks=-1), 9)
    town.leader.end_pass()
    assert town.leader.answer_of(given, "ProduceRequest", 9) is None
    town.until(lambda: town.leader.replica.high_watermark == 1)
    town.leader.end_pass()
    answer = town.leader.answer_of(given, "ProduceRequest", 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_log_that_parts_from_the_new_leaders_is_cut(town: Town) -> None:
    town.tell()
    write(town.leader, b"both")
    town.until(town.are_same)
    town.follower.replication.stop(town.follower.replica)
    write(town.leader, b"lost", b"lost")
    town.state.elect(1, [1])
    town.tell(1)
    write(town.follower, b"kept")
    town.tell(0)
    town.until(town.are_same)
    assert read_all(town.leader) == [b"both", b"kept"]
    assert list(town.leader.replica.log.epochs.entries) == [(0, 0), (1, 1)]


def read_all(desk: ReplicatingDesk) -> list[bytes]:
    log = desk.replica.log
    part = log.read(log.log_start_offset, 1 << 20, limit_offset=log.log_end_offset, at_least_one=True)
    return [record.value or b"" for record in records.read(part.read())] if part is not None else []


@pytest.mark.parametrize("protocol", ["2.6", "3.0", "3.4", "3.9-IV0"])
def test_older_protocols_come_to_the_same(module: ModuleType, tmp_path: Path, protocol: str) -> None:
    town = Town(module, tmp_path, protocol)
    town.tell()
    write(town.leader, b"both")
    town.until(town.are_same)
    town.follower.replication.stop(town.follower.replica)
    write(town.leader, b"lost", b"lost")
    town.state.elect(1, [1])
    town.tell(1)
    write(town.follower, b"kept")
    town.tell(0)
    town.until(town.are_same)
    assert read_all(town.leader) == [b"both", b"kept"]
    town.close()


def test_a_follower_behind_the_leaders_start_begins_anew_there(town: Town) -> None:
    town.state.isr = [0]
    town.tell(0)
    write(town.leader, *[b"gone"] * 10)
    assert town.leader.replica.delete_records(10) == 10
    town.leader.replica.log.roll(town.leader.clock.now_ms())
    town.leader.storage.check_retention()
    assert town.leader.replica.log.bases == [10]
    town.tell(1)
    write(town.leader, b"new")
    town.until(lambda: town.follower.replica.log_end_offset == 11)
    assert read_all(town.follower) == [b"new"] and town.follower.replica.log_start_offset == 10


def test_who_waits_is_told_when_the_epoch_changes(town: Town) -> None:
    """As Kafka: the follower knows of the next leader before the controller tells it."""
    town.tell()
    asked = fetch(
        "",
        {"partition": 0, "fetch_offset": 0, "current_leader_epoch": 0},
        topic_id=TOPIC_ID,
        max_wait_ms=60_000,
    )
    asked.replica_state.replica_id = 1
    given = town.leader.send(asked, 17)
    town.leader.end_pass()
    assert town.leader.answer_of(given, "FetchRequest", 17) is None
    town.state.elect(1, [1])
    town.tell(0)
    answer = town.leader.answer_of(given, "FetchRequest", 17)
    (row,) = answer.responses[0].partitions
    assert row.error_code == errors.FENCED_LEADER_EPOCH
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (1, 1)
    (point,) = answer.node_endpoints
    assert (point.node_id, point.host, point.port) == (1, "127.0.0.1", town.port_of(1))


def test_a_lost_connection_is_made_again_after_a_while(town: Town) -> None:
    town.tell()
    write(town.leader, b"one")
    town.until(town.are_same)
    for connection in list(town.nodes[0].loop.reactor.connections):
        connection.close("lost")
    for _ in range(50):
        town.pass_ms(0)
        for node in town.nodes.values():
            node.turn()
    write(town.leader, b"two")
    assert not town.are_same()
    town.pass_ms(1000)
    town.until(town.are_same)


def test_consumers_read_from_a_follower_what_is_committed(town: Town) -> None:
    town.tell()
    write(town.leader, b"one")
    town.until(lambda: town.leader.replica.high_watermark == 1)
    write(town.leader, b"two")
    town.until(
        lambda: town.follower.replica.high_watermark == 1 and town.follower.replica.log_end_offset == 2
    )
    asked = fetch("", {"partition": 0, "fetch_offset": 0}, topic_id=TOPIC_ID)
    (row,) = town.follower.ask(asked, 17).responses[0].partitions
    assert (row.error_code, row.high_watermark, values_of(row)) == (0, 1, [b"one"])
    old = fetch(TOPIC, {"partition": 0, "fetch_offset": 0})
    assert town.follower.ask(old, 10).responses[0].partitions[0].error_code == errors.NOT_LEADER_OR_FOLLOWER
    waiting = fetch("", {"partition": 0, "fetch_offset": 1}, topic_id=TOPIC_ID, max_wait_ms=60_000)
    given = town.follower.send(waiting, 17)
    write(town.leader, b"three")
    town.until(lambda: town.leader.replica.high_watermark == 3)
    town.pass_ms(500)
    town.until(lambda: town.follower.replica.high_watermark == 3)
    town.follower.end_pass()
    (row,) = town.follower.answer_of(given, "FetchRequest", 17).responses[0].partitions
    assert values_of(row) == [b"two", b"three"]


RACKS = {"replica_selector_class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def test_a_leader_sends_consumers_to_the_replica_in_their_rack(module: ModuleType, tmp_path: Path) -> None:
    town = Town(module, tmp_path, **RACKS)
    town.tell()
    write(town.leader, b"one")
    town.until(lambda: town.leader.replica.high_watermark == 1)

    def preferred(rack: str, offset: int = 0, desk: ReplicatingDesk = town.leader) -> tuple[int, list[bytes]]:
        asked = fetch("", {"partition": 0, "fetch_offset": offset}, topic_id=TOPIC_ID, rack_id=rack)
        (row,) = desk.ask(asked, 17).responses[0].partitions
        assert row.error_code == 0 and row.high_watermark == desk.replica.high_watermark
        return row.preferred_read_replica, values_of(row)

    assert preferred("rack1") == (1, [])
    assert preferred("rack0") == preferred("elsewhere") == preferred("") == (-1, [b"one"])
    assert preferred("rack0", desk=town.follower)[0] == -1, "a follower sends nobody anywhere"
    town.follower.replication.stop(town.follower.replica)
    for _ in range(3):
        town.pass_ms(500)
    write(town.leader, b"two")
    town.leader.replica.isr_confirmed(0, [0], 1)
    assert preferred("rack1", offset=2) == (-1, []), "the other has not come that far"
    town.close()


def test_flush_messages_has_a_follower_say_only_what_is_on_the_disk(
    module: ModuleType, tmp_path: Path
) -> None:
    town = Town(module, tmp_path, log_flush_interval_messages="1")
    town.tell()
    write(town.leader, b"one")
    town.until(lambda: town.leader.replica.high_watermark == 1)
    assert town.follower.replica.log.flushed_offset == 1
    town.close()


def test_the_leaders_log_start_moves_the_followers(town: Town) -> None:
    town.tell()
    write(town.leader, *[b"v"] * 5)
    town.until(lambda: town.leader.replica.high_watermark == 5)
    write(town.leader, b"more")
    town.until(lambda: town.follower.replica.high_watermark >= 5)
    town.leader.replica.delete_records(3)
    write(town.leader, b"more")
    town.until(lambda: town.follower.replica.log_start_offset == 3)


def test_quotas_hold_back_who_is_not_in_sync(module: ModuleType, tmp_path: Path) -> None:
    town = Town(module, tmp_path, replica_fetch_max_bytes="50000")
    town.state.isr = [0]
    town.tell(0)
    for _ in range(40):
        write(town.leader, b"x" * 10_000)
    for desk in (town.leader, town.follower):
        desk.cluster_image.configs[4, ""] = {
            "leader.replication.throttled.rate": "50000",
            "follower.replication.throttled.rate": "100000000",
        }
    town.leader.image.topics[TOPIC].configs = {"leader.replication.throttled.replicas": "0:0"}
    town.tell(1)
    town.until(lambda: town.follower.replica.log_end_offset > 0)
    came: list[int] = []
    for _ in range(100):
        for _ in range(10):
            for node in town.nodes.values():
                node.turn()
        came.append(town.follower.replica.log_end_offset)
        town.pass_ms(250)
    assert came[0] < 40 and came[-1] == 40, came
    assert came.index(40) > 12, "400 kB at 50 kB a second take more than 3 seconds"
    town.close()


def test_more_fetchers_take_over_their_partitions(town: Town) -> None:
    town.tell()
    write(town.leader, b"one")
    town.until(town.are_same)
    config, replication = town.follower.config, town.follower.replication
    assert list(replication._connections) == [(0, 0)]
    config.adopt(config.with_dynamic({"num.replica.fetchers": "5"}))
    ((_, look_after),) = replication.jobs
    look_after()
    number = abs(as_int(31 * hash_code(TOPIC))) % 5
    assert number, "another one than before"
    write(town.leader, b"two")
    town.until(lambda: town.are_same() and list(replication._connections) == [(0, number)])
