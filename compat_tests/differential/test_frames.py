"""Frames that are not requests, bodies that are cut, stretched or damaged: an answer or a closed connection, as in
Kafka.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from compat_tests.differential.meant import APIS_LATER
from compat_tests.differential.offset_requests import group
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import batch, produce
from compat_tests.differential.samples import READING, SAMPLES, TOPIC
from compat_tests.differential.versions import API_KEYS, SERVED
from compat_tests.raw import Closed
from pykafkad import messages
from pykafkad.hot import wire
from pykafkad.messages import ApiVersionsRequest

MUTATIONS = 25
CUT_AT_EACH = 60  # bytes from the beginning; of the later ones some


def versions_of_note(api: str) -> list[int]:
    """The lowest and the highest version, and the first flexible one."""
    low, high = SERVED[api]
    flexible = getattr(messages, f"{api}Request").flexible_since
    return sorted({low, high, min(max(flexible, low), high)})


EVERY = [(api, version) for api in SAMPLES for version in versions_of_note(api)]


@pytest.fixture(scope="module", autouse=True)
def topic(pair: Pair) -> None:
    assert pair.topic("frames") == TOPIC
    pair.same(produce(TOPIC, {0: batch(b"a", b"b")}), 9)
    assert group(pair, "frames")


def test_there_is_a_sample_of_every_api() -> None:
    assert set(SAMPLES) == set(API_KEYS)
    assert set(READING) < set(SAMPLES)


def sample(pair: Pair, api: str, version: int) -> tuple[Any, bytes]:
    """A request and its frame without the size, the same for both."""
    made = SAMPLES[api](version)
    request = made(pair.theirs) if callable(made) else made
    frame = wire.request(request, version, 7, "raw")
    assert isinstance(frame, bytes)
    return request, frame[4:]


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.mark.parametrize(("api", "version"), EVERY)
def test_a_request_cut_anywhere(pair: Pair, api: str, version: int) -> None:
    request, data = sample(pair, api, version)
    chance = random.Random(f"{api} {version}")
    behind = range(CUT_AT_EACH, len(data))
    cuts = [*range(min(CUT_AT_EACH, len(data))), *sorted(chance.sample(behind, min(20, len(behind))))]
    for cut in cuts:
        pair.same_outcome(framed(data[:cut]), request, version)


@pytest.mark.parametrize(("api", "version"), EVERY)
@pytest.mark.parametrize("more", [b"\0", b"\x01\x02\x03\x04", b"\xff" * 9])
def test_bytes_behind_a_request(pair: Pair, api: str, version: int, more: bytes) -> None:
    request, data = sample(pair, api, version)
    pair.same_outcome(framed(data + more), request, version)


@pytest.mark.parametrize(("api", "version"), [row for row in EVERY if row[0] in READING])
def test_damaged_requests(pair: Pair, api: str, version: int) -> None:
    request, data = sample(pair, api, version)
    chance = random.Random(f"{api} {version}")
    for _ in range(MUTATIONS):
        damaged = bytearray(data)
        at = chance.randrange(8, len(damaged))
        value = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        damaged[at : at + chance.choice([1, 1, 2, 4])] = bytes([value]) * chance.choice([1, 1, 2, 4])
        pair.same_outcome(framed(bytes(damaged)), request, version)


@pytest.mark.parametrize("api", list(SAMPLES))
@pytest.mark.parametrize("beyond", [-1, 1, 2, 100, -100])
def test_versions_that_are_not_served(pair: Pair, api: str, beyond: int) -> None:
    low, high = SERVED[api]
    version = low + beyond if beyond < 0 else high + beyond
    request, data = sample(pair, api, high)
    pair.same_outcome(framed(data[:2] + struct.pack(">h", version) + data[4:]), request, 0)


@pytest.mark.parametrize(
    "api_key", [-1, 4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 93, 94, 999, 32767]
)
@pytest.mark.parametrize("version", [0, 1, 5])
def test_apis_that_are_not_served(pair: Pair, api_key: int, version: int) -> None:
    assert api_key not in API_KEYS.values() and api_key not in APIS_LATER
    head = struct.pack(">hhih", api_key, version, 7, 3) + b"raw"
    for body in (b"", b"\0", b"\0" * 40):
        pair.same_outcome(framed(head + body))


@pytest.mark.parametrize("size", [-1, -(2**31), 104857601, 2**31 - 1], ids=str)
def test_impossible_sizes(pair: Pair, size: int) -> None:
    assert pair.same_outcome(struct.pack(">i", size)).closed


@pytest.mark.parametrize("size", range(12))
@pytest.mark.parametrize("byte", [0, 1, 0x12, 0xFF])
def test_tiny_frames(pair: Pair, size: int, byte: int) -> None:
    pair.same_outcome(framed(bytes([byte]) * size))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /topics HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"\xff" * 100,
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
    ids=["GET", "POST", "TLS", "ones", "SSH"],
)
def test_other_protocols(pair: Pair, data: bytes) -> None:
    assert pair.same_outcome(data).closed


@pytest.mark.parametrize(
    "client_id", [b"\xff\xff", b"\x00\x00", b"\x00\x02\xff\xfe", b"\xff\xfe", b"\x7f\xffabc"]
)
def test_client_ids_in_headers(pair: Pair, client_id: bytes) -> None:
    body = b"\x04raw\x021\0"
    pair.same_outcome(
        framed(struct.pack(">hhi", 18, 3, 7) + client_id + b"\0" + body), ApiVersionsRequest(), 3
    )
    pair.same_outcome(framed(struct.pack(">hhi", 18, 2, 7) + client_id), ApiVersionsRequest(), 2)


@pytest.mark.parametrize(
    "tags", [b"\x01\x05\x03abc", b"\x02\x05\x00\x07\x01x", b"\x02\x07\x00\x05\x00", b"\x01\x05\x7f"]
)
def test_tags_in_headers(pair: Pair, tags: bytes) -> None:
    head = struct.pack(">hhih", 18, 3, 7, 3) + b"raw"
    pair.same_outcome(framed(head + tags + b"\x04raw\x021\0"), ApiVersionsRequest(), 3)


def test_pipelined_requests_are_answered_in_order(pair: Pair) -> None:
    for side in pair.sides:
        frames = b"".join(side.client.frame(ApiVersionsRequest(), 0) for _ in range(50))
        last = side.client.correlation_id
        outcome = side.outcome(frames)
        ids = [int.from_bytes(answer[:4], "big") for answer in outcome.answers]
        assert ids == list(range(last - 49, last + 1)), side.name


def test_a_frame_in_single_bytes(pair: Pair) -> None:
    def slowly(side: Side) -> bytes:
        frame = side.client.frame(ApiVersionsRequest(), 0)
        for byte in frame:
            side.client.send(bytes([byte]))
        return side.client.receive()[4:]

    assert len(slowly(pair.theirs)) > 100
    assert slowly(pair.ours)[:2] == b"\0\0"


def test_a_connection_ended_within_a_frame_troubles_nobody(pair: Pair) -> None:
    for side in pair.sides:
        side.client.send(struct.pack(">i", 1000) + b"abc")
        side.hang_up()
        assert side.ask(ApiVersionsRequest(), 0) is not None, side.name
        try:
            side.client.send(b"")
        except Closed:
            pytest.fail(f"{side.name} hung up on another connection")
