"""ApiVersions: what is advertised, and the one request that is answered at any version."""

from __future__ import annotations

import struct

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import ADVERTISED, API_KEYS, at_every_version
from pykafkad.messages import ApiVersionsRequest

NAMES = ["kafka-python", "a", "A9.-", "", "-a", "a-", ".a", "a b", "a_b", "é", "a" * 300, "9"]


def request(name: str = "differential", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@at_every_version("ApiVersions")
def test_what_is_advertised(pair: Pair, version: int) -> None:
    pair.same(request(), version)


def test_the_table_of_versions_is_what_kafka_advertises(pair: Pair) -> None:
    answer = pair.same(request(), 4)
    rows = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert {name: rows[API_KEYS[name]] for name in ADVERTISED} == ADVERTISED


@at_every_version("ApiVersions", since=3)
@pytest.mark.parametrize("name", NAMES)
def test_software_names_are_checked(pair: Pair, version: int, name: str) -> None:
    pair.same(request(name), version)


@at_every_version("ApiVersions", since=3)
@pytest.mark.parametrize("software_version", NAMES)
def test_software_versions_are_checked(pair: Pair, version: int, software_version: str) -> None:
    pair.same(request(version=software_version), version)


@at_every_version("ApiVersions", since=3)
def test_unknown_tags_are_passed_over(pair: Pair, version: int) -> None:
    asked = request()
    asked.unknown_tags = {7: b"abc", 9000: b""}
    pair.same(asked, version)


@pytest.mark.parametrize("version", [5, 6, 99, 32767, -1, -32768])
@pytest.mark.parametrize("body", [b"", b"\0", b"\x02a\x021\0", b"\xff" * 20])
def test_a_version_too_new_is_answered_in_version_0(pair: Pair, version: int, body: bytes) -> None:
    frame = struct.pack(">hhih", 18, version, 5, 1) + b"x\0" + body
    pair.same_outcome(struct.pack(">i", len(frame)) + frame, request(), 0)


@pytest.mark.parametrize("client_id", [None, "", "c" * 1000, "ü"])
def test_any_client_id_will_do(pair: Pair, client_id: str | None) -> None:
    for side in pair.sides:
        side.client.client_id = client_id
    pair.same(request(), 4)
    for side in pair.sides:
        side.hang_up()
