"""Our own client on the loop: it asks our own broker on the same loop, and meets what can go wrong."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pykafkad.hot import wire
from pykafkad.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchResponse,
    MetadataRequest,
    ProduceResponse,
)
from pykafkad.net.peer import Peer, TooManyUnderWay
from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop
from tests.seam_kit import transport
from tests.unit.data_kit import Desk, batch, fetch, produce, values_of

Found = dict[str, str]


def look_up(hosts: Any, done: Callable[[Found], None]) -> None:
    done({host: "127.0.0.1" if host == "localhost" else host for host in hosts if host != "nowhere"})


class House:
    """A broker on a loop, and peers of it on the same loop."""

    def __init__(self, module: ModuleType, path: Path, kind: str = "plain") -> None:
        self.desk = Desk(path)
        self.loop = Loop(module, self.desk.dispatcher.on_frame, on_pass_end=self.desk._on_pass_end)
        self.kind = kind
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.connections: list[Any] = []
        self.loop.reactor.listen(self.sock, self.welcome, transport=transport(self.loop.reactor, kind))
        self.told: list[Any] = []
        self.lost: list[OSError] = []

    def welcome(self, connection: Any) -> bool:
        self.connections.append(connection)
        return True

    def peer(self, address: tuple[str, int] | None = None, **options: Any) -> Peer:
        travels = transport(self.loop.reactor, self.kind, client=True)
        options.setdefault("on_lost", self.lost.append)
        address = address or ("localhost", self.sock.getsockname()[1])
        return Peer(self.loop.reactor, address, "peer", look_up, transport=travels, **options)

    def silent(self) -> tuple[tuple[str, int], socket.socket]:
        """An address where somebody listens who never answers."""
        sock = socket.create_server(("127.0.0.1", 0))
        return sock.getsockname(), sock

    def until(self, there: Callable[[], bool]) -> None:
        self.loop.until(there)

    def come(self, count: int) -> list[Any]:
        self.until(lambda: len(self.told) >= count)
        told = self.told[:]
        self.told.clear()
        assert len(told) == count
        return told

    def close(self) -> None:
        self.loop.close()
        self.sock.close()
        assert not self.loop.errors, self.loop.errors


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield request.param
    gc.collect()


@pytest.fixture
def house(module: ModuleType, tmp_path: Path) -> Iterator[House]:
    made = House(module, tmp_path)
    yield made
    made.close()


def conversation(house: House) -> list[bytes]:
    """Produces and fetches, small and large, several at once; what came, as bytes."""
    house.desk.create("topic", 2)
    peer = house.peer()
    peer.connect()
    large = [batch(bytes([i]) * 200_000) for i in range(10)]
    for data in [batch(b"a", b"b"), batch(b"c")]:
        peer.ask(produce("topic", 0, data), 9, house.told.append)
    for data in large:
        peer.ask(produce("topic", 1, data), 9, house.told.append)
    produced = house.come(12)
    one = {"partition": 0, "fetch_offset": 0}
    two = {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 3 << 20}
    for _ in range(3):
        peer.ask(fetch("topic", one), 12, house.told.append)
        peer.ask(fetch("topic", two, max_bytes=3 << 20), 12, house.told.append)
    fetched = house.come(6)
    assert peer.under_way == 0 and peer.is_connected and not house.lost
    for small, whole in zip(fetched[::2], fetched[1::2], strict=True):
        assert values_of(small.responses[0].partitions[0]) == [b"a", b"b", b"c"]
        assert values_of(whole.responses[0].partitions[0]) == [bytes([i]) * 200_000 for i in range(10)]
    assert all(isinstance(answer, ProduceResponse) for answer in produced)
    assert all(isinstance(answer, FetchResponse) for answer in fetched)
    peer.close()
    return [answer.encode(9) for answer in produced] + [answer.encode(12) for answer in fetched]


@pytest.mark.parametrize("kind", ["veil", "records"])
def test_a_conversation_is_the_same_however_its_bytes_travel(
    module: ModuleType, kind: str, tmp_path: Path
) -> None:
    """Both ends are on this loop: produce and fetch, pipelined, small answers and large ranges of files."""
    heard = []
    for each in ("plain", kind):
        house = House(module, tmp_path / each, each)
        heard.append(conversation(house))
        house.close()
    assert heard[0] == heard[1]


def test_answers_come_in_the_order_of_the_requests(house: House) -> None:
    peer = house.peer(under_way_max=50)
    peer.connect()
    order: list[Any] = []
    for number in range(50):
        request, version = (ApiVersionsRequest(), 3) if number % 2 else (fetch("topic"), 12)
        peer.ask(
            request,
            version,
            lambda answer, number=number: order.append((number, type(answer).__name__)),  # type: ignore[misc]
        )
    assert peer.is_full and not order
    with pytest.raises(TooManyUnderWay):
        peer.ask(ApiVersionsRequest(), 3, order.append)
    house.until(lambda: len(order) == 50)
    names = ["FetchResponse", "ApiVersionsResponse"] * 25
    assert order == list(enumerate(names)) and not peer.is_full


def test_what_was_asked_before_it_was_connected_is_sent_then(house: House) -> None:
    peer = house.peer()
    peer.connect()
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    assert not peer.is_connected and peer.under_way == 1
    assert isinstance(house.come(1)[0], ApiVersionsResponse) and len(house.connections) == 1


def test_who_is_not_connected_is_told(house: House) -> None:
    peer = house.peer()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    assert not house.told, "nobody is told before ask() has returned"
    (error,) = house.come(1)
    assert isinstance(error, ConnectionError) and "not connected" in str(error)


def test_a_fetch_that_waits_holds_up_what_is_behind_it(house: House) -> None:
    """As the broker does one request of a connection after the other, in the end all are answered."""
    house.desk.create("topic")
    peer = house.peer()
    peer.connect()
    peer.ask(fetch("topic", {"partition": 0, "fetch_offset": 0}, max_wait_ms=500), 12, house.told.append)
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    house.until(lambda: bool(house.desk.timers))
    other = house.peer()
    other.connect()
    other.ask(produce("topic", 0, batch(b"new")), 9, lambda answer: None)
    waited, behind = house.come(2)
    assert values_of(waited.responses[0].partitions[0]) == [b"new"]
    assert isinstance(behind, ApiVersionsResponse)


def test_a_request_that_is_not_answered_in_time_ends_the_connection(house: House) -> None:
    address, sock = house.silent()
    peer = house.peer(address, request_timeout_ms=5_000)
    peer.connect()
    peer.ask(MetadataRequest(topics=[]), 9, house.told.append)
    peer.ask(ApiVersionsRequest(), 3, house.told.append, timeout_ms=60_000)
    house.until(lambda: peer.is_connected)
    house.loop.clock.advance(4_999)
    house.loop.turn(3)
    assert not house.told and peer.under_way == 2
    house.loop.clock.advance(1)
    first, second = house.come(2)
    assert isinstance(first, TimeoutError) and first is second
    assert str(first).endswith(f"Metadata was not answered by 127.0.0.1:{address[1]} in 5000 ms")
    house.until(lambda: house.lost == [first])
    assert not peer.is_connected and peer.under_way == 0 and not house.loop.reactor.connections
    sock.close()


def test_a_lost_connection_is_told_to_all_who_wait_and_a_new_one_serves(house: House) -> None:
    house.desk.create("topic")
    peer = house.peer()
    peer.connect()
    waits = fetch("topic", {"partition": 0, "fetch_offset": 0}, max_wait_ms=60_000)
    peer.ask(waits, 12, house.told.append)
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    house.until(lambda: bool(house.desk.timers))
    house.connections[0].close("as the test wants it")
    first, second = house.come(2)
    assert isinstance(first, ConnectionError) and first is second and not peer.is_connected
    house.until(lambda: len(house.lost) == 1)
    house.loop.turn(5)
    assert len(house.connections) == 1, "nobody told it to connect again"
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    assert isinstance(house.come(1)[0], ApiVersionsResponse) and len(house.connections) == 2


def test_nobody_listens(house: House) -> None:
    address, sock = house.silent()
    sock.close()
    watches = set(house.loop.reactor.watches)
    peer = house.peer(address)
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    (error,) = house.come(1)
    assert isinstance(error, ConnectionRefusedError) and f"127.0.0.1:{address[1]}" in str(error)
    house.until(lambda: len(house.lost) == 1)
    assert house.loop.reactor.watches == watches


def test_what_was_never_sent_is_not_sent_on_the_next_connection(house: House) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and nobody listens
        peer = house.peer(sock.getsockname())
        peer.connect()
        peer.ask(ApiVersionsRequest(), 3, house.told.append)
        assert isinstance(house.come(1)[0], ConnectionRefusedError)
        sock.listen()
        peer.connect()
        peer.ask(MetadataRequest(), 9, house.told.append)
        house.loop.turn(3)
        assert house.loop.join(sock.accept()[0]).bodies(1)[0][:2] == b"\0\3"


def test_once_it_is_answered_or_lost_a_request_is_late_no_more(house: House) -> None:
    peer = house.peer(request_timeout_ms=1_000)
    for _ in range(2):
        peer.connect()
        peer.ask(ApiVersionsRequest(), 3, house.told.append)
        assert isinstance(house.come(1)[0], ApiVersionsResponse)
        house.loop.clock.advance(900)
        house.loop.turn(3)
        assert peer.is_connected
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    peer.close()
    assert isinstance(house.come(1)[0], ConnectionError)
    peer.connect()
    house.until(lambda: peer.is_connected)
    house.loop.clock.advance(2_000)
    house.loop.turn(3)
    assert peer.is_connected and not house.lost


def test_each_request_has_a_number_of_its_own(house: House) -> None:
    address, sock = house.silent()
    peer = house.peer(address)
    peer.connect()
    for _ in range(4):
        peer.ask(ApiVersionsRequest(), 3, house.told.append)
    house.loop.turn(3)
    numbers = [int.from_bytes(body[4:8], "big") for body in house.loop.join(sock.accept()[0]).bodies(4)]
    assert numbers == [number % (1 << 31) for number in range(numbers[0], numbers[0] + 4)]
    sock.close()


def test_a_host_that_nobody_knows(house: House) -> None:
    peer = house.peer(("nowhere", 9092))
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    assert not house.told
    (error,) = house.come(1)
    assert isinstance(error, OSError) and "nowhere:9092" in str(error)


def test_who_does_not_take_the_connection_in_time(house: House) -> None:
    """A backlog that is full: the kernel leaves the attempt without an answer."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    crowd = [socket.socket() for _ in range(4)]
    for sock in crowd:
        sock.setblocking(False)
        sock.connect_ex(full.getsockname())
    peer = house.peer(full.getsockname(), connect_timeout_ms=1_000)
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    house.loop.turn(5)
    assert not peer.is_connected and not house.told
    house.loop.clock.advance(1_000)
    (error,) = house.come(1)
    assert isinstance(error, TimeoutError) and "in 1000 ms" in str(error)
    for sock in [*crowd, full]:
        sock.close()


def test_closing_it_ends_what_is_under_way(house: House) -> None:
    house.desk.create("topic")
    for is_connected in (False, True):
        peer = house.peer()
        peer.connect()
        peer.ask(
            fetch("topic", {"partition": 0, "fetch_offset": 0}, max_wait_ms=9_000), 12, house.told.append
        )
        if is_connected:
            house.until(lambda: bool(house.desk.timers))
        peer.close()
        assert isinstance(house.come(1)[0], ConnectionError) and not house.lost
        house.loop.turn(3)
        assert house.loop.reactor.connections <= set(house.connections), "its own is gone"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\0\0\0\5\0\0\0\7\0", "the answer to 7 came for request 0"),
        (b"\0\0\0\5\0\0\0\0\0", "cannot be read"),
        (b"\0\0\0\2\0\0", "cannot be read"),
        (b"\xff\xff\xff\xff", "Invalid receive (size = -1)"),
        (b"\0\x10\0\0", "Invalid receive (size = 1048576 larger than 100000)"),
    ],
)
def test_an_answer_that_is_none_ends_the_connection(house: House, answer: bytes, why: str) -> None:
    address, sock = house.silent()
    peer = house.peer(address, answer_bytes_max=100_000)
    peer.connect()
    peer.ask(MetadataRequest(topics=[]), 9, house.told.append)
    peer.ask(MetadataRequest(topics=[]), 9, house.told.append)
    taken, _ = sock.accept()
    house.until(lambda: peer.is_connected)
    taken.sendall(answer)
    first, second = house.come(2)
    assert first is second and isinstance(first, ConnectionError) and why in str(first)
    taken.close()
    sock.close()


def test_an_answer_that_nobody_waits_for_ends_the_connection(house: House) -> None:
    address, sock = house.silent()
    peer = house.peer(address)
    peer.connect()
    taken, _ = sock.accept()
    house.until(lambda: peer.is_connected)
    taken.sendall(b"\0\0\0\4\0\0\0\0")
    house.until(lambda: len(house.lost) == 1)
    assert "nobody waits for" in str(house.lost[0])
    taken.close()
    sock.close()


def test_whoever_fails_with_an_answer_is_reported_and_others_have_theirs(house: House) -> None:
    def fails(answer: Any) -> None:
        raise ZeroDivisionError

    peer = house.peer()
    peer.connect()
    peer.ask(ApiVersionsRequest(), 3, fails)
    peer.ask(ApiVersionsRequest(), 3, house.told.append)
    house.come(1)
    house.until(lambda: bool(house.loop.errors))
    assert [type(error) for _, error in house.loop.errors] == [ZeroDivisionError] and peer.is_connected
    house.loop.errors.clear()


def test_who_asks_much_still_reads_the_answers(house: House) -> None:
    """The other side takes no more requests before its answers are taken: whoever stopped reading, too, would wait
    for ever."""
    address, sock = house.silent()
    peer = house.peer(address)
    peer.connect()
    taken, _ = sock.accept()
    request = produce("topic", 0, batch(bytes(200_000)))
    for _ in range(80):
        peer.ask(request, 9, house.told.append)
    house.until(lambda: peer.is_connected)
    house.loop.turn(20)
    (connection,) = house.loop.reactor.connections
    assert connection.queued_bytes > 1 << 20 and connection.receiving
    answer = wire.frame(ProduceResponse(), 9, 0, True)
    assert isinstance(answer, bytes)
    taken.sendall(answer)
    house.come(1)
    peer.close()
    house.come(79)
    taken.close()
    sock.close()
