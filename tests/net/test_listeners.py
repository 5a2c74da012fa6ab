"""Listeners: the addresses they bind, the connections they accept, and those they close."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from pykafkad.config import BrokerConfig
from pykafkad.config_def import ConfigError
from pykafkad.errors import StartupError
from pykafkad.net.hosts import address_of
from pykafkad.net.listeners import Listeners
from pykafkad.net.sweep import Sweep
from pykafkad.slices import Work, finish
from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop, echo, frame

TWO = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


def all_at_once(work: Work, done: Callable[[Any], None]) -> None:
    done(finish(work))


class Door:
    """Listeners on a loop, and clients that connect."""

    module: ModuleType  # of the loop

    def __init__(self, config: dict[str, str]) -> None:
        self.loop = Loop(self.module, echo)
        self.clients: list[socket.socket] = []
        self.config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", **config})
        self.listeners = Listeners(self.config)
        self.loop.on_close = self.listeners.closed
        self.look_up: Callable[..., None] = look_up

    def open(self) -> Door:
        self.listeners.bind()
        self.listeners.listen(self.loop.reactor)
        Sweep(self.loop.reactor, self.config["connections.max.idle.ms"], all_at_once).begin()
        return self

    def knock(self, name: str = "PLAINTEXT", host: str = "127.0.0.1") -> socket.socket:
        port = next(e.port for e in self.listeners.endpoints if e.name == name)
        client = socket.create_connection((host, port))
        client.setblocking(False)
        self.clients.append(client)
        self.loop.turn(10)
        return client

    def leave(self, client: socket.socket) -> None:
        client.close()
        self.loop.turn(10)

    def is_shown_out(self, client: socket.socket) -> bool:
        try:
            return client.recv(1) == b""
        except BlockingIOError:
            return False

    @property
    def inside(self) -> int:
        assert sum(self.listeners.counts.values()) == len(self.loop.reactor.connections)
        return len(self.loop.reactor.connections)

    def shut(self) -> None:
        self.listeners.close()
        self.loop.close()
        for client in self.clients:
            client.close()


Opener = Callable[[dict[str, str]], Door]


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES, autouse=True)
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Door, "module", request.param, raising=False)


@pytest.fixture
def door() -> Iterator[Opener]:
    doors: list[Door] = []

    def opened(config: dict[str, str]) -> Door:
        doors.append(Door(config))
        return doors[-1].open()

    yield opened
    for each in doors:
        each.shut()


# -- what is bound


def test_a_port_of_the_systems_choice_is_filled_in_and_advertised(door: Opener) -> None:
    listeners = door({}).listeners
    assert listeners.endpoints[0].port > 0 and listeners.advertised == listeners.endpoints


def test_what_is_advertised_may_differ(door: Opener) -> None:
    listeners = door({"advertised.listeners": "PLAINTEXT://kafka.example:1234"}).listeners
    assert [str(endpoint) for endpoint in listeners.advertised] == ["PLAINTEXT://kafka.example:1234"]


def test_a_wildcard_listens_everywhere_and_advertises_this_machine(door: Opener) -> None:
    here = door({"listeners": "PLAINTEXT://:0"})
    assert here.listeners.advertised[0].host == socket.getfqdn()
    hosts = ["127.0.0.1", "::1"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
    for host in hosts:
        here.knock(host=host)
    assert here.inside == len(hosts)


@pytest.mark.parametrize("host", ["localhost", "127.1"])
def test_a_host_name_is_looked_up(door: Opener, host: str) -> None:
    here = door({"listeners": f"PLAINTEXT://{host}:0"})
    assert here.listeners.advertised[0].host == host
    here.knock(host=host)
    assert here.inside == 1


def test_nobody_can_connect_between_bind_and_listen() -> None:
    early = Door({})
    early.listeners.bind()
    with pytest.raises(ConnectionRefusedError):
        early.knock()
    early.listeners.listen(early.loop.reactor)
    early.knock()
    assert early.inside == 1
    early.shut()


def take(port: int) -> None:
    """OSError if somebody has it."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", port))


def test_a_taken_port_is_one_clear_line_and_frees_the_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port, other = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        listeners = f"CLIENTS://127.0.0.1:{other},BROKERS://127.0.0.1:{port}"
        refused = Door({**TWO, "listeners": listeners})
        line = rf"Listener BROKERS://127\.0\.0\.1:{port} cannot be bound: Address already in use"
        line += ": --port PORT names another port, --port 0 takes any free one"
        with pytest.raises(StartupError, match=f"^{line}$"):
            refused.listeners.bind()
        take(other)
        refused.shut()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "x" * 64])
def test_an_unknown_host_is_one_clear_line(host: str) -> None:
    refused = Door({"listeners": f"PLAINTEXT://{host}:0"})
    with pytest.raises(StartupError, match=f"^Listener PLAINTEXT://{host}:0 cannot be bound: ") as told:
        refused.listeners.bind()
    assert "--port" not in str(told.value), "another port would not help"
    refused.shut()


def test_a_port_that_another_took_since_is_one_clear_line() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        late = Door({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        late.listeners.bind()
        other.listen()
        line = f"Listener PLAINTEXT://127.0.0.1:{port} cannot listen: Address already in use"
        with pytest.raises(StartupError, match=f"^{line}$"):
            late.listeners.listen(late.loop.reactor)
        late.shut()


def test_a_port_can_be_taken_again_while_connections_of_the_broker_before_linger(door: Opener) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        texts = {"listeners": f"PLAINTEXT://127.0.0.1:{free.getsockname()[1]}"}
    first = door(texts)
    first.knock()
    first.loop.close()
    first.listeners.close()
    again = door(texts)
    again.knock()
    assert again.inside == 1


def test_a_port_of_the_systems_choice_is_nobody_elses() -> None:
    chosen = Door({})
    chosen.listeners.bind()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="already in use"):
            other.bind(("127.0.0.1", chosen.listeners.endpoints[0].port))
    chosen.shut()


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_host_that_is_left_open_is_advertised_as_this_machine(door: Opener, host: str) -> None:
    listeners = {"listeners": f"PLAINTEXT://{host}:0"}
    ours = door(listeners).listeners
    assert ours.advertised[0].host == socket.getfqdn() and ours.advertised[0].port > 0


def test_of_two_families_each_takes_its_own_address(door: Opener) -> None:
    four = door({"listeners": "PLAINTEXT://0.0.0.0:0"})
    port = four.listeners.endpoints[0].port
    if socket.has_ipv6:
        six = door({"listeners": f"PLAINTEXT://[::1]:{port}"})
        six.knock(host="::1")
        assert six.inside == 1
    four.knock()
    assert four.inside == 1


@pytest.mark.parametrize("host", ["no.such.host.invalid", "x" * 64])
def test_overrides_of_an_unknown_host_are_one_clear_line_and_take_no_port(host: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    overrides = f"127.0.0.1:1,{host}:5"
    refused = Door(
        {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "max.connections.per.ip.overrides": overrides}
    )
    with pytest.raises(StartupError, match=rf"^max\.connections\.per\.ip\.overrides: host {host}: \w"):
        refused.listeners.bind()
    take(port)
    refused.shut()


def test_closing_frees_the_port_and_keeps_connections(door: Opener) -> None:
    here = door({})
    peer = here.loop.join(here.knock())
    here.listeners.close()
    with pytest.raises(ConnectionRefusedError):
        here.knock()
    peer.send(b"still here")
    assert peer.bodies(1) == [b"still here"]


# -- limits of connections


def test_at_max_connections_others_wait_until_one_leaves(door: Opener) -> None:
    here = door({"max.connections": "2"})
    clients = [here.knock() for _ in range(4)]
    assert here.inside == 2 and not any(map(here.is_shown_out, clients))
    here.leave(clients[0])
    assert here.inside == 2
    clients[3].send(frame(b"waiting"))
    here.leave(clients[1])
    here.leave(clients[2])
    assert here.inside == 1
    here.loop.turn(3)
    assert clients[3].recv(100) == frame(b"waiting")


def test_max_connections_of_one_listener(door: Opener) -> None:
    here = door({**TWO, "listener.name.clients.max.connections": "1"})
    for _ in range(3):
        here.knock("CLIENTS")
        here.knock("BROKERS")
    assert here.listeners.counts == {"CLIENTS": 1, "BROKERS": 3} and here.inside == 4


def test_a_nonsensical_bound_of_one_listener_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        Door({"listener.name.plaintext.max.connections": "many"})


def test_the_inter_broker_listener_goes_on_and_the_longest_idle_client_gives_way(door: Opener) -> None:
    here = door({**TWO, "max.connections": "2"})
    here.knock("CLIENTS")
    here.leave(here.knock("BROKERS"))
    assert here.inside == 1, "there was room for both"
    here.leave(here.clients[0])
    first = here.knock("CLIENTS")
    here.loop.clock.advance(10)
    second = here.knock("CLIENTS")
    here.loop.clock.advance(10)
    first.send(frame(b"active"))
    here.loop.turn(3)
    broker = here.knock("BROKERS")
    assert here.is_shown_out(second) and not here.is_shown_out(broker)
    assert here.listeners.counts == {"CLIENTS": 1, "BROKERS": 1} and here.inside == 2


def test_without_clients_the_inter_broker_listener_goes_on_up_to_its_own_bound(door: Opener) -> None:
    here = door({**TWO, "max.connections": "1", "listener.name.brokers.max.connections": "3"})
    for _ in range(4):
        here.knock("BROKERS")
    assert here.listeners.counts == {"CLIENTS": 0, "BROKERS": 3}
    assert not any(map(here.is_shown_out, here.clients))


def test_the_inter_broker_listener_is_named_by_its_protocol_or_is_the_only_one(door: Opener) -> None:
    two = "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0"
    names = {"listeners": two, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT"}
    here = door({**names, "max.connections": "1"})
    for _ in range(2):
        here.knock("PLAINTEXT")
        here.knock("CLIENTS")
    assert here.listeners.counts == {"PLAINTEXT": 2, "CLIENTS": 0}
    only = door({"max.connections": "1"})
    for _ in range(2):
        only.knock()
    assert only.inside == 1


def test_there_are_no_more_connections_than_descriptors(door: Opener, said: io.StringIO) -> None:
    here = door({})
    here.listeners.limit(2)
    here.knock()
    assert "descriptors" not in said.getvalue()
    for _ in range(2):
        here.knock()
    assert here.inside == 2 and not any(map(here.is_shown_out, here.clients)), "it waits in the backlog"
    told = "WARN [net] There are 2 connections, as many as the process has descriptors for (ulimit -n)"
    assert said.getvalue().count(told) == 1
    here.leave(here.clients[0])
    assert here.inside == 2


def test_whoever_is_turned_away_is_told_of_as_often_as_is_allowed(door: Opener, said: io.StringIO) -> None:
    here = Door({"max.connections.per.ip": "1"})
    asked: list[tuple[str, str]] = []

    def allows(log: object, kind: str, address: str) -> bool:
        asked.append((kind, address))
        return len(asked) == 1

    here.listeners.bind()
    here.listeners.listen(here.loop.reactor, allows)
    for _ in range(3):
        here.knock()
    assert asked == [("Rejected connections", "127.0.0.1")] * 2
    line = "Rejected connection from 127.0.0.1, address already has the configured maximum of 1 connections."
    assert said.getvalue().count(line) == 1
    here.shut()
    always = door({"max.connections.per.ip": "1"})
    for _ in range(3):
        always.knock()
    assert said.getvalue().count(line) == 3


def test_one_address_has_its_share_only(door: Opener) -> None:
    here = door({"listeners": "PLAINTEXT://0.0.0.0:0", "max.connections.per.ip": "2"})
    clients = [here.knock() for _ in range(3)]
    assert here.inside == 2 and [here.is_shown_out(c) for c in clients] == [False, False, True]
    here.leave(clients[0])
    here.knock()
    assert here.inside == 2
    assert not here.loop.closed[1:], "one that was never admitted is never told to have left"


def test_whose_connections_have_all_ended_has_the_whole_share_again(door: Opener) -> None:
    here = door({"max.connections.per.ip": "1"})
    for _ in range(3):
        client = here.knock()
        assert here.inside == 1
        here.leave(client)


def test_shares_of_single_addresses_and_hosts(door: Opener) -> None:
    here = door({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "localhost:3,10.0.0.1:7"})
    for _ in range(5):
        here.knock()
    assert here.inside in (0, 3)  # 0 if localhost is ::1 first
    there = door({"max.connections.per.ip.overrides": "127.0.0.1:1"})
    there.knock()
    there.knock()
    assert there.inside == 1


# -- idle connections


def idle(here: Door, ms: int) -> None:
    here.loop.clock.advance(ms)
    here.loop.turn(3)


def test_who_idles_too_long_is_closed_and_who_does_not_is_not(door: Opener) -> None:
    here = door({"connections.max.idle.ms": "60000"})
    quiet, busy = here.knock(), here.loop.join(here.knock())
    for _ in range(11):
        idle(here, 5000)
        busy.send(b"x")
        busy.bodies(1)
    assert here.inside == 2
    idle(here, 6000)
    idle(here, 3000)
    assert here.inside == 1 and here.is_shown_out(quiet)
    assert here.loop.reasons == ["idle for 61000 ms (connections.max.idle.ms)"]
    idle(here, 64_000)
    assert here.inside == 0


def test_a_peer_that_takes_nothing_of_its_answers_idles(door: Opener) -> None:
    here = door({"connections.max.idle.ms": "60000"})
    client = here.knock()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = frame(bytes(1_000_000))
    for _ in range(40):
        try:
            while request:
                request = request[client.send(request) :]
            request = frame(bytes(1_000_000))
        except BlockingIOError:
            here.loop.turn()
    here.loop.turn(50)
    idle(here, 65_000)
    idle(here, 5_000)
    assert here.inside == 0


def test_without_a_bound_nobody_idles_too_long(door: Opener) -> None:
    here = door({"connections.max.idle.ms": "-1"})
    here.knock()
    idle(here, 2**40)
    assert here.inside == 1


@pytest.mark.parametrize("idle_ms", [2**63 - 1, 2**53 + 1])
def test_idling_for_ever_can_be_allowed(door: Opener, idle_ms: int) -> None:
    here = door({"connections.max.idle.ms": str(idle_ms)})
    here.knock()
    idle(here, 2**40)
    assert here.inside == 1


@pytest.mark.parametrize("idle_ms", [0, 1])
def test_where_hardly_any_idling_is_allowed_the_loop_does_not_spin(door: Opener, idle_ms: int) -> None:
    texts = {"connection.failed.authentication.delay.ms": "0", "connections.max.idle.ms": "1"}
    here = door(texts)
    Sweep(here.loop.reactor, idle_ms, all_at_once).begin()
    here.knock()
    idle(here, 1000)
    assert here.inside == 0
    here.knock()
    here.loop.turn(20)
    assert here.inside == 1, "the next look comes a second later"
    idle(here, 1000)
    assert here.inside == 0


@pytest.mark.parametrize("text", ["0", "-1", "-2147483648", "2147483647"])
def test_extreme_sizes_of_buffers_are_what_the_system_makes_of_them(door: Opener, text: str) -> None:
    texts = {"socket.receive.buffer.bytes": text, "socket.send.buffer.bytes": text}
    here = door({**texts, "socket.listen.backlog.size": "2147483647"})
    peer = here.loop.join(here.knock())
    peer.send(b"x" * 100_000)
    assert peer.bodies(1) == [b"x" * 100_000]


def test_extreme_bounds_on_connections(door: Opener) -> None:
    most = "2147483647"
    here = door(
        {
            "max.connections": most,
            "max.connections.per.ip": most,
            "max.connections.per.ip.overrides": f"127.0.0.1:{most}",
        }
    )
    here.knock()
    assert here.inside == 1
    nobody = door({"max.connections": "0"})
    client = nobody.knock()
    assert nobody.inside == 0 and not nobody.is_shown_out(client), "it waits in the backlog"


# -- incomplete frames


def drips(here: Door, client: socket.socket, size: int, seconds: int) -> None:
    for _ in range(seconds):
        try:
            client.send(bytes(size))
        except OSError:
            return
        idle(here, 1000)


def test_a_byte_a_second_is_not_held_for_ever(door: Opener) -> None:
    here = door({})
    client = here.knock()
    client.send(b"\0\0\1\0")
    drips(here, client, 1, 100)
    assert here.inside == 0
    assert here.loop.reasons == ["only 60 bytes of its frame came in 60000 ms"]


def test_half_a_head_is_not_held_either(door: Opener) -> None:
    here = door({})
    here.knock().send(b"\0\0")
    quiet = here.knock()
    for _ in range(10):
        idle(here, 10_000)
    assert here.inside == 1 and not here.is_shown_out(quiet), "idling is another matter"


def test_a_large_frame_on_a_slow_line_becomes_whole(door: Opener) -> None:
    here = door({})
    client = here.knock()
    size = 8 * 1024
    client.send((size * 300).to_bytes(4, "big"))
    drips(here, client, size, 299)
    assert here.inside == 1 and here.loop.reactor.frames == 0
    client.send(bytes(size))
    here.loop.turn(3)
    assert here.loop.reactor.frames == 1


def test_many_small_frames_each_of_them_cut_are_no_slow_frame(door: Opener) -> None:
    here = door({})
    client = here.knock()
    cut = frame(b"12345")
    client.send(cut[:6])
    for _ in range(100):
        client.send(cut[6:] + cut[:6])
        idle(here, 1000)
    assert here.inside == 1 and here.loop.reactor.frames == 100


def test_who_is_not_read_from_is_not_asked_for_more(door: Opener) -> None:
    """Its answers wait, since it does not read them: only connections.max.idle.ms applies to it."""
    here = door({})
    client = here.knock()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = frame(bytes(1_000_000))
    connection = next(iter(here.loop.reactor.connections))
    for _ in range(2000):
        try:
            request = request[client.send(request) :] or frame(bytes(1_000_000))
        except BlockingIOError:
            if connection.throttled:
                break
        here.loop.turn()
    assert connection.throttled
    for _ in range(12):
        idle(here, 10_000)
    assert here.inside == 1


@pytest.mark.parametrize("module", LOOPS[:1], indirect=True)  # the other takes ten seconds
def test_while_frames_wait_for_memory_who_sends_nothing_gives_way_soon(door: Opener) -> None:
    here = door({})
    for _ in range(8):
        here.loop.join(here.knock()).send_bytes((100 << 20).to_bytes(4, "big") + bytes(40 << 20))
    here.loop.until(lambda: here.loop.reactor.crowded)
    other = here.loop.join(here.knock())
    while here.inside > 1:
        assert here.loop.clock.monotonic_ms() < 240_000
        other.send(bytes(1 << 20))
        other.bodies(1)
        here.loop.turn(30)
        here.loop.clock.advance(5_000)
        assert here.loop.reactor.unfinished_bytes <= 356 << 20
    assert [reason for reason in here.loop.reasons if not (reason or "").startswith("only ")] == []


def test_options_of_the_sockets(door: Opener) -> None:
    here = door({"socket.receive.buffer.bytes": "20000", "socket.send.buffer.bytes": "30000"})
    here.knock()
    connection: Any = next(iter(here.loop.reactor.connections))
    with socket.socket(fileno=connection.fd) as sock:
        try:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (20_000, 40_000)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (30_000, 60_000)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        finally:
            sock.detach()


def test_unless_somebody_says_so_buffers_are_the_systems(door: Opener) -> None:
    here = door({"socket.send.buffer.bytes": "-1"})
    here.knock()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        usual, _ = server.accept()
        connection: Any = next(iter(here.loop.reactor.connections))
        accepted = socket.socket(fileno=connection.fd)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            assert accepted.getsockopt(socket.SOL_SOCKET, option) == usual.getsockopt(
                socket.SOL_SOCKET, option
            )
        accepted.detach()
        usual.close()


# -- a change of the config while it runs


def look_up(hosts: Iterable[str], done: Callable[[Mapping[str, str]], None]) -> None:
    found = {host: address_of(host) for host in hosts}
    done({host: address for host, address in found.items() if address is not None})


def change(here: Door, **texts: str) -> None:
    config = here.config
    config.adopt(config.with_dynamic({key.replace("_", "."): text for key, text in texts.items()}))
    here.listeners.reconfigure(here.look_up)


def test_new_bounds_count_for_connections_to_come(door: Opener) -> None:
    here = door({})
    for _ in range(3):
        here.knock()
    change(here, max_connections_per_ip="3")
    assert here.is_shown_out(here.knock()) and here.inside == 3
    change(here, max_connections_per_ip="3", max_connections_per_ip_overrides="localhost:4")
    here.knock()
    assert here.inside == 4
    change(here, max_connections="4")
    here.knock()
    assert here.inside == 4, "it waits in the backlog"
    change(here)
    here.loop.turn(10)
    assert here.inside == 5


def test_a_listener_has_a_bound_of_its_own(door: Opener) -> None:
    here = door({})
    change(here, **{"listener.name.plaintext.max.connections": "1"})
    here.knock()
    here.knock()
    assert here.inside == 1
    change(here)
    here.loop.turn(10)
    assert here.inside == 2


def test_a_host_that_nobody_knows_leaves_the_overrides_as_they_were(door: Opener) -> None:
    here = door({})
    change(here, max_connections_per_ip_overrides="127.0.0.1:1")
    change(here, max_connections_per_ip_overrides="no.such.host.invalid:5")
    here.knock()
    assert here.is_shown_out(here.knock())


EXTRA = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT"}


def with_extra(host: str, port: int = 0) -> dict[str, str]:
    return {"listeners": f"PLAINTEXT://127.0.0.1:0,EXTRA://{host}:{port}", **EXTRA}


def test_only_the_latest_change_counts_whenever_its_hosts_are_known(door: Opener, said: io.StringIO) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1", "max.connections": "1"})
    for _ in range(2):
        here.knock()
    waiting: list[Callable[[], None]] = []
    here.look_up = lambda hosts, done: waiting.append(lambda: look_up(hosts, done))
    change(here, max_connections="9", **with_extra("localhost"))
    here.loop.turn(10)
    assert here.inside == 2, "bounds need no host"
    here.look_up = look_up
    change(here, max_connections="9", max_connections_per_ip_overrides="127.0.0.1:3")
    waiting[0]()
    assert here.listeners.counts == {"PLAINTEXT": 2} and "ERROR" not in said.getvalue()
    here.knock()
    assert here.is_shown_out(here.knock())


def test_a_listener_that_came_has_its_bound_and_one_of_an_unknown_host_does_not_come(
    door: Opener, said: io.StringIO
) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"})
    change(here, **with_extra("no.such.host.invalid"))
    assert here.listeners.counts == {"PLAINTEXT": 0}
    line = "ERROR [net] Listener EXTRA://no.such.host.invalid:0 cannot be bound: Name or service not known"
    assert line in said.getvalue()
    change(here, **with_extra(""), listener_name_extra_max_connections="1")
    for _ in range(2):
        here.knock("EXTRA")
    assert here.listeners.counts == {"PLAINTEXT": 0, "EXTRA": 1}
    here.leave(here.clients[0])
    assert here.inside == 1, "who waited in the backlog"


def test_a_listener_that_comes_when_there_are_enough_connections_waits(door: Opener) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"})
    here.knock()
    change(here, max_connections="1", **with_extra("127.0.0.1"))
    extra = here.knock("EXTRA")
    assert here.inside == 1 and not here.is_shown_out(extra)


def test_a_removed_listener_makes_room_for_those_that_wait(door: Opener, said: io.StringIO) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"})
    change(here, max_connections="1", **with_extra("127.0.0.1"))
    goes = here.knock("EXTRA")
    here.knock()
    assert here.listeners.counts == {"PLAINTEXT": 0, "EXTRA": 1}
    change(here, max_connections="1")
    here.loop.turn(10)
    assert here.is_shown_out(goes) and here.listeners.counts == {"PLAINTEXT": 1}
    assert here.loop.reasons == ["listener EXTRA was removed"]


def test_listeners_come_and_go(door: Opener) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"})
    change(here, **with_extra("127.0.0.1"))
    assert here.listeners.counts == {"PLAINTEXT": 0, "EXTRA": 0}
    stays, goes = here.knock(), here.knock("EXTRA")
    port = goes.getpeername()[1]
    change(here)
    here.loop.turn(10)
    assert here.listeners.counts == {"PLAINTEXT": 1}
    assert here.is_shown_out(goes) and not here.is_shown_out(stays)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_listener_whose_port_is_taken_does_not_come(door: Opener) -> None:
    here = door({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        change(here, **with_extra("127.0.0.1", taken.getsockname()[1]))
    assert here.listeners.counts == {"PLAINTEXT": 0}
    here.knock()
    assert here.inside == 1


def test_a_listener_that_is_cut_off_shows_all_out_until_that_is_mended(door: Opener) -> None:
    opened = door(TWO)
    client, broker = opened.knock("CLIENTS"), opened.knock("BROKERS")
    opened.listeners.cut("BROKERS")
    opened.loop.turn(3)
    assert opened.is_shown_out(broker) and not opened.is_shown_out(client)
    assert opened.is_shown_out(opened.knock("BROKERS")) and not opened.is_shown_out(opened.knock("CLIENTS"))
    opened.listeners.mend()
    assert not opened.is_shown_out(opened.knock("BROKERS"))
    assert opened.inside == 3
