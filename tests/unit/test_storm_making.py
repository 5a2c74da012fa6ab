"""The storm's requests: of every API and version, the same from the same seed, and written to files and read again."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from pykafkad import handlers, messages
from pykafkad.config import BROKER_KEYS
from pykafkad.hot import records, wire
from tests.storm import batches, configs, filled, plans, starts, values
from tests.storm.asked import Request, from_json, plain, to_json
from tests.storm.lines import MANNERS
from tests.storm.making import Making, versions_of
from tests.storm.names import NEIGHBOUR, Names
from tests.storm.sane import AGREE, SANE
from tests.storm.values import INTEGERS

MANY = 1000


def made(count: int, seed: int = 1, only: str | None = None) -> Iterator[Request]:
    """One after the other: some take many megabytes."""
    return (
        Making(Names(), random.Random(f"{seed} {number}")).request(number, only) for number in range(count)
    )


def test_every_api_is_reached_in_all_its_versions() -> None:
    assert {request.api for request in made(MANY)} == {api.name for api in handlers.APIS.values()}
    for api in handlers.APIS.values():
        first, last = versions_of(api)
        reached = {request.version for request in made(20 * (last - first + 1), only=api.name)}
        assert reached == set(range(first, last + 1)), api.name


def test_the_same_seed_makes_the_same() -> None:
    assert marks(made(200)) == marks(made(200))
    assert marks(made(200, seed=2)) != marks(made(200))


def marks(requests: Iterable[Request]) -> list[int]:
    return [hash(request.frame()) for request in requests]


def test_what_the_broker_has_answered_changes_no_other_choice() -> None:
    """Otherwise a seed would not repeat what it found."""
    knows = Names()
    knows.topic_ids = {"storm-1": b"\x55" * 16}
    knows.members = {"group-1": [("somebody", 7)]}
    knows.producers, knows.sessions = [(4711, 2)], [99]
    for number in range(300):
        some = Making(Names(), random.Random(number)).request(number)
        other = Making(knows, random.Random(number)).request(number)
        assert (some.api, some.version, some.client) == (other.api, other.version, other.client)


def test_requests_are_read_by_the_classes_of_their_api() -> None:
    for request in made(500):
        if not request.patches:
            frame = request.frame()
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4
            kind = getattr(messages, f"{request.api}Request")
            body = request.message.encode(request.version)
            assert frame.endswith(body)
            kind.decode(body, request.version)


def test_a_file_keeps_a_request() -> None:
    for request in made(500):
        row = json.loads(json.dumps(to_json(request, Names())))
        assert from_json(row, Names()).frame() == request.frame()


def test_a_file_keeps_ids_as_what_they_stand_for() -> None:
    """Another broker chooses other ids."""
    here, there = Names(), Names()
    here.topic_ids, there.topic_ids = {"storm-1": b"\x01" * 16}, {"storm-1": b"\x02" * 16}
    here.members, there.members = {"group-1": [("a-member", 1)]}, {"group-1": [("b-member", 1)]}
    topic = messages.FetchRequest.FetchTopic(topic_id=b"\x01" * 16)
    fetch = Request(1, "Fetch", 17, messages.FetchRequest(topics=[topic]), None)
    moved = from_json(to_json(fetch, here), there)
    assert moved.message.topics[0].topic_id == b"\x02" * 16
    beat = Request(
        1, "Heartbeat", 4, messages.HeartbeatRequest(group_id="group-1", member_id="a-member"), None
    )
    assert from_json(to_json(beat, here), there).message.member_id == "b-member"


def test_repeated_elements_stand_once_in_a_file() -> None:
    request = messages.DescribeGroupsRequest(groups=["a"] * 5000 + ["b"])
    assert plain(request, Names())["groups"] == {"array": [[5000, "a"], [1, "b"]]}


def test_text_that_is_none_gets_into_frames() -> None:
    request = Request(
        1, "DeleteGroups", 0, messages.DeleteGroupsRequest(groups_names=["a" + values.NO_TEXT]), "x"
    )
    making = Making(Names(), random.Random(1))
    request.patches = making.patches(request.frame())
    with pytest.raises(UnicodeDecodeError):
        request.frame()[4:].decode()


def test_wild_requests_reach_extremes() -> None:
    """Numbers at the ends of their types, repeated elements, malformed batches."""
    offsets = set()
    repeated = 0
    for request in made(400, only="ListOffsets"):
        for topic in request.message.topics:
            offsets |= {part.timestamp for part in topic.partitions}
            repeated += len(topic.partitions) > 1 and all(
                part is topic.partitions[0] for part in topic.partitions
            )
    assert {(1 << 63) - 1, -(1 << 63), 0} <= offsets
    assert repeated


def test_batches_are_good_and_bad() -> None:
    fates: Counter[bool] = Counter()
    for number in range(400):
        batch = batches.some(random.Random(number))
        try:
            records.check_produce(batch, 9)
            for _ in records.read(batch or b""):
                pass
            fates[True] += 1
        except (records.RecordsError, TypeError):
            fates[False] += 1
    assert fates[True] > 100 and fates[False] > 50


def test_a_changed_header_has_its_checksum() -> None:
    """So that the checks after the checksum are reached."""
    good = records.build([(b"k", b"v", [], 0)])
    changed = [batches.with_header_field(random.Random(number), good) for number in range(50)]
    assert sum(len(records.scan(batch)) == 1 and batch != good for batch in map(scannable, changed)) > 20


def scannable(batch: bytes) -> bytes:
    try:
        records.scan(batch)
    except records.RecordsError:
        return b""
    return batch


def test_sane_values_name_fields_that_there_are() -> None:
    """A renamed field would get wild values only, without anybody noticing."""
    fields: set[object] = set()
    structs = set()
    for api in handlers.APIS.values():
        for owner, field in all_fields(getattr(messages, f"{api.name}Request")):
            fields |= {field.name, (owner.__name__, field.name), field.entity}
            structs.add(owner.__name__)
    assert set(SANE) - fields == set()
    assert set(AGREE) - structs == set()


def all_fields(kind: type[wire.Struct]) -> list[tuple[type[wire.Struct], wire.Field]]:
    found = []
    for field in wire.fields(kind):
        found.append((kind, field))
        if field.struct is not None:
            found += all_fields(field.struct)
    return found


def test_bursts_are_in_all_manners_and_numbered() -> None:
    manners = set()
    for number in range(30):
        lines = plans.burst(Names(), 1, number)
        numbers = [request.number for line in lines for request in line.requests]
        assert numbers == list(range(number * plans.NUMBERS, number * plans.NUMBERS + len(numbers)))
        manners |= {line.manner for line in lines}
    assert manners == set(MANNERS)


def test_the_neighbour_is_left_alone() -> None:
    for request in made(500):
        assert NEIGHBOUR.encode() not in request.frame()


# -- filled


def test_every_array_of_every_api_is_filled() -> None:
    wanted = set()
    for api in handlers.APIS.values():
        version = versions_of(api)[1]
        kind = getattr(messages, f"{api.name}Request")
        for _, field in all_fields(kind):
            if field.type.startswith("[]") and field.versions[0] <= version <= field.versions[1]:
                wanted.add((api.name, field.attribute))
    every = list(filled.all_of_them(both_versions=False))
    for how in (filled.EQUAL, filled.DIFFERENT):
        assert {(each.api, each.path[-1]) for each in every if each.how == how} == wanted


@pytest.mark.parametrize("how", [filled.EQUAL, filled.DIFFERENT])
def test_filled_requests_have_the_size_and_the_elements(how: str) -> None:
    size = 50_000
    for each in filled.all_of_them(both_versions=True):
        if each.how != how:
            continue
        request = filled.request(each, Names(), 1, size)
        assert 0.7 * size < len(request.frame()) < 1.6 * size, each
        elements = request.message
        for attribute in each.path:
            elements = getattr(elements[0] if isinstance(elements, list) else elements, attribute)
        rows = [str(plain(element, Names())) for element in elements[:100]]
        assert len(set(rows)) == (1 if how == filled.EQUAL else len(rows)), each


# -- configs


def test_every_config_has_its_extremes() -> None:
    by_key: dict[str, set[str]] = {}
    for start in starts.all_of_them():
        by_key.setdefault(start.key, set()).add(start.value)
    assert BROKER_KEYS.keys() - by_key.keys() == starts.LEFT_OUT & BROKER_KEYS.keys()
    for name, texts in by_key.items():
        if BROKER_KEYS[name].type in ("INT", "LONG"):
            assert {"0", "-1", "2147483647", "9223372036854775807"} <= texts
    assert {each.kind for each in configs.all_of_them()} == set(configs.NAMED)


def test_integers_are_in_their_type() -> None:
    for kind, bits in INTEGERS.items():
        seen = {values.integer(random.Random(number), kind) for number in range(500)}
        least = 0 if kind.startswith("u") else -(1 << (bits - 1))
        assert min(seen) == least and max(seen) == least + (1 << bits) - 1
