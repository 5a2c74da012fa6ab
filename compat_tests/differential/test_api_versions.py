"""ApiVersions: what is advertised. It is the one request that is answered at any version."""

from __future__ import annotations

import struct

import pytest

from compat_tests.differential.meant import APIS_LATER
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import ADVERTISED, API_KEYS, at_every_version
from pykafkad.messages import ApiVersionsRequest

NAMES = ["kafka-python", "a", "A9.-", "", "-a", "a-", ".a", "a b", "a_b", "é", "a" * 300, "9"]


def request(name: str = "differential", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@at_every_version("ApiVersions")
def test_what_is_advertised(pair: Pair, version: int) -> None:
    pair.same(request(), version)


def test_each_api_of_kafka_is_advertised_or_named_as_one_for_later(pair: Pair) -> None:
    ours, theirs = (
        {row.api_key: (row.min_version, row.max_version) for row in side.demand(request(), 4).api_keys}
        for side in pair.sides
    )
    later = APIS_LATER if pair.ours.is_pykafkad else {}
    assert not set(later) & set(ours), "these are advertised, and are no APIs for later"
    assert not set(later) - set(theirs), "Kafka does not advertise these"
    assert ours == {key: versions for key, versions in theirs.items() if key not in later}


def test_the_versions_that_are_compared_are_those_that_are_advertised(pair: Pair) -> None:
    rows = {
        row.api_key: (row.min_version, row.max_version) for row in pair.ours.demand(request(), 4).api_keys
    }
    table = {API_KEYS[name]: versions for name, versions in ADVERTISED.items()}
    assert {key: rows[key] for key in table} == table
    assert set(rows) == set(table) or not pair.ours.is_pykafkad


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
