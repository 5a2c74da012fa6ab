"""CreateAcls, DescribeAcls and DeleteAcls on a single node: what they answer, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster import acls as cluster_acls
from pykafkad.cluster.acls import KnownAcls, LocalAcls, record_of
from pykafkad.cluster.delta import Delta
from pykafkad.cluster.image import Image
from pykafkad.cluster.publishing import ACLS
from pykafkad.handlers import Unanswerable, create_acls, delete_acls, describe_acls
from pykafkad.pure.acl_rules import Rules
from pykafkad.pure.acls import ALLOW, DENY, Acl, Filter
from pykafkad.pure.authorization import ANONYMOUS, READ, TOPIC, WRITE
from pykafkad.slices import finish
from tests.unit.metadata_fakes import Later, call, open_broker

HOST = "127.0.0.1"
VERSIONS = [1, 2, 3]
Creation = messages.CreateAclsRequest.AclCreation
Row = tuple[int, str, int, str, str, int, int]


def with_acls(broker: Any) -> Any:
    rules = broker.authorizer = Rules()
    broker.acls = LocalAcls(broker.image, rules, broker.controller)
    broker.controller.publishers.add(ACLS, broker.acls.publish)
    finish(broker.acls.publish(Delta(is_whole=True)))
    return broker


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return with_acls(open_broker(tmp_path))


def creation(name: str = "t", operation: int = READ, permission: int = ALLOW, **other: Any) -> Any:
    fields = {"resource_type": TOPIC, "principal": "User:ANONYMOUS", "host": "*", **other}
    return Creation(resource_name=name, operation=operation, permission_type=permission, **fields)


def wanted(kind: Any = dict, **fields: Any) -> Any:
    everything = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return kind(**everything | fields)


def create(broker: Any, *creations: Any, version: int = 3) -> list[tuple[int, str | None]]:
    answer = call(broker, create_acls, version, creations=list(creations))
    return [(each.error_code, each.error_message) for each in answer.results]


def described(broker: Any, version: int = 3, **fields: Any) -> set[Row]:
    answer = call(broker, describe_acls, version, **wanted(**fields))
    assert answer.error_code == 0, answer
    rows = [
        (
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for each in answer.resources
        for one in each.acls
    ]
    assert len(rows) == len(set(rows)) and len(answer.resources) == len({row[:3] for row in rows})
    return set(rows)


def delete(broker: Any, *filters: dict[str, Any], version: int = 3) -> list[Any]:
    kind = messages.DeleteAclsRequest.DeleteAclsFilter
    answer = call(broker, delete_acls, version, filters=[wanted(kind, **each) for each in filters])
    return [
        (each.error_code, each.error_message)
        if each.error_code
        else sorted((one.resource_name, one.operation, one.permission_type) for one in each.matching_acls)
        for each in answer.filter_results
    ]


def may(broker: Any, operation: int, name: str = "t") -> bool:
    found: bool = broker.authorizer.allows(ANONYMOUS, HOST, operation, TOPIC, name)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_authorizer_there_are_none(tmp_path: Path, version: int) -> None:
    broker = open_broker(tmp_path)
    disabled = errors.SECURITY_DISABLED
    assert (
        create(broker, creation(), creation(), version=version)
        == [(disabled, "No Authorizer is configured.")] * 2
    )
    assert delete(broker, {}, {}, version=version) == [(disabled, "No Authorizer is configured.")] * 2
    answer = call(broker, describe_acls, version, **wanted())
    assert (answer.error_code, answer.error_message) == (
        disabled,
        "No Authorizer is configured on the broker",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_an_acl_counts_when_it_is_made_and_no_more_when_it_is_gone(broker: Any, version: int) -> None:
    assert not may(broker, READ)
    assert create(broker, creation(), creation("u", WRITE, DENY), version=version) == [(0, "")] * 2
    assert may(broker, READ) and not may(broker, WRITE)
    assert described(broker, version) == {
        (TOPIC, "t", 3, "User:ANONYMOUS", "*", READ, ALLOW),
        (TOPIC, "u", 3, "User:ANONYMOUS", "*", WRITE, DENY),
    }
    assert delete(broker, {"resource_name_filter": "t"}, version=version) == [[("t", READ, ALLOW)]]
    assert not may(broker, READ) and {row[1] for row in described(broker)} == {"u"}


def test_acls_outlive_a_restart(broker: Any, tmp_path: Path) -> None:
    create(broker, creation(), creation("u"), creation("v"))
    delete(broker, {"resource_name_filter": "u"})
    before = described(broker)
    broker.controller.stop()
    again = with_acls(open_broker(tmp_path))
    assert described(again) == before and len(before) == 2 and may(again, READ)


def test_what_is_there_already_is_no_error_and_is_not_made_again(broker: Any) -> None:
    assert create(broker, creation(), creation()) == [(0, "")] * 2
    assert create(broker, creation()) == [(0, "")]
    assert len(broker.image.acls) == 1
    assert delete(broker, {}) == [[("t", READ, ALLOW)]] and not broker.image.acls


def test_each_is_taken_or_refused_for_itself(broker: Any) -> None:
    found = create(broker, creation(""), creation(), creation(resource_type=4), creation("u"))
    assert [code for code, _ in found] == [errors.INVALID_REQUEST, 0, errors.INVALID_REQUEST, 0]
    assert {row[1] for row in described(broker)} == {"t", "u"}


def test_what_is_only_for_filters_makes_no_acl(broker: Any) -> None:
    unknown = errors.UNKNOWN_SERVER_ERROR
    for changed in ({"resource_type": 1}, {"operation": 1}, {"permission": 1}, {"resource_pattern_type": 2}):
        assert create(broker, creation(), creation("u", **changed)) == [(unknown, None)] * 2
    assert described(broker) == set()


@pytest.mark.parametrize("changed", [{"resource_type": 0}, {"operation": 0}, {"permission": 0}])
def test_an_unknown_element_ends_the_connection(broker: Any, changed: dict[str, int]) -> None:
    with pytest.raises(Unanswerable, match="unknown elements"):
        create(broker, creation(), creation("u", **changed))
    for fields in ({"resource_type_filter": 0}, {"pattern_type_filter": 0}, {"operation": 0}):
        with pytest.raises(Unanswerable, match="UNKNOWN elements"):
            described(broker, **fields)
        with pytest.raises(Unanswerable, match="UNKNOWN elements"):
            delete(broker, fields)


def test_an_acl_that_two_filters_mean_is_told_to_both_and_goes_once(broker: Any) -> None:
    create(broker, creation(), creation("u"))
    found = delete(broker, {"resource_name_filter": "t"}, {}, {"resource_name_filter": "x"})
    assert found == [[("t", READ, ALLOW)], [("t", READ, ALLOW), ("u", READ, ALLOW)], []]
    assert described(broker) == set()


def test_a_filter_of_unknown_codes_is_refused_and_the_others_count(broker: Any) -> None:
    create(broker, creation())
    found = delete(broker, {"resource_type_filter": 99}, {"operation": 99}, {})
    refused = errors.INVALID_REQUEST
    assert found == [
        (refused, "Unknown patternFilter."),
        (refused, "Unknown entryFilter."),
        [("t", READ, ALLOW)],
    ]
    create(broker, creation())
    assert described(broker, resource_type_filter=99) == set()


def test_more_than_a_request_may_make_is_refused_as_a_whole(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_acls, "MAX_RECORDS", 2)
    too_many = (errors.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    found = create(broker, creation("a"), creation(""), creation("b"), creation("c"))
    assert [found[0], found[2], found[3]] == [too_many] * 3 and found[1][0] == errors.INVALID_REQUEST
    assert described(broker) == set()
    create(broker, creation("a"), creation("b"))
    create(broker, creation("c"))
    too_many = (errors.INVALID_REQUEST, "Cannot remove more than 10000 acls in a single delete operation.")
    assert delete(broker, {"resource_name_filter": "a"}, {}, {"operation": 99}) == [too_many] * 3
    assert len(described(broker)) == 3


def test_a_text_that_is_too_long_for_an_answer_is_everybodys_error(broker: Any) -> None:
    """Kafka cannot write the answer, though what is good came to be."""
    unknown = (errors.UNKNOWN_SERVER_ERROR, None)
    assert create(broker, creation(), creation(principal="x" * 32_700)) == [unknown] * 2
    assert len(described(broker)) == 1


def test_the_answer_waits_until_the_acl_is_durable_and_counts(tmp_path: Path) -> None:
    later = Later()
    broker = with_acls(open_broker(tmp_path, later))
    told: list[Any] = []
    broker.acls.create([Acl(TOPIC, "t", 3, "User:ANONYMOUS", "*", READ, ALLOW)], told.append)
    assert not may(broker, READ) and not told
    later.all()
    assert may(broker, READ) and told == [[None]]


def test_a_log_that_cannot_be_written_is_everybodys_error(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(data: bytes) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(broker.log, "write", fail)
    assert create(broker, creation(), creation(""))[0][0] == errors.KAFKA_STORAGE_ERROR
    assert not may(broker, READ)


# -- following the image


def known_of(*acls: Acl) -> tuple[Image, KnownAcls]:
    image = Image()
    known = KnownAcls(image, Rules())
    for number, acl in enumerate(acls):
        image.apply(record_of(number.to_bytes(16), acl))
    finish(known.publish(image.take_delta()))
    return image, known


def test_rights_are_taken_before_others_are_given() -> None:
    """Seen in between two slices, nobody may do what he may neither before nor after."""
    old, denial = (
        Acl(TOPIC, "t", 3, "User:*", "*", READ, ALLOW),
        Acl(TOPIC, "t", 3, "User:*", "*", WRITE, DENY),
    )
    image, known = known_of(old, denial)
    image.apply(messages.RemoveAccessControlEntryRecord(id=(0).to_bytes(16)))
    image.apply(messages.RemoveAccessControlEntryRecord(id=(1).to_bytes(16)))
    image.apply(record_of((2).to_bytes(16), old._replace(operation=WRITE)))
    image.apply(record_of((3).to_bytes(16), old._replace(name="u", permission=DENY)))
    seen = []
    for _ in known.publish(image.take_delta()):
        some = {known.rules.allows(ANONYMOUS, HOST, operation, TOPIC, "t") for operation in (READ,)}
        seen.append(
            (known.rules.count, some == {True}, known.rules.allows(ANONYMOUS, HOST, WRITE, TOPIC, "t"))
        )
    assert (False, True) not in {(is_read, is_write) for _, is_read, is_write in seen[:-2]}
    assert not known.rules.allows(ANONYMOUS, HOST, READ, TOPIC, "t")
    assert known.rules.allows(ANONYMOUS, HOST, WRITE, TOPIC, "t") and known.rules.count == 2


def test_denials_count_first_and_end_last() -> None:
    """In each slice somebody may do less rather than more."""
    allowed = Acl(TOPIC, "t", 3, "User:*", "*", READ, ALLOW)
    denied = allowed._replace(principal="User:ann", permission=DENY)
    image, known = known_of(allowed, denied)
    for number, acl in enumerate((allowed._replace(name="u"), denied._replace(name="u")), start=2):
        image.apply(record_of(number.to_bytes(16), acl))
    for number in range(2):
        image.apply(messages.RemoveAccessControlEntryRecord(id=number.to_bytes(16)))
    steps = known.publish(image.take_delta())
    held: list[Acl] = [allowed, denied]
    seen: list[list[Acl]] = []
    for _ in steps:
        now = [
            each for each in (*held, *(each._replace(name="u") for each in held)) if known.rules.holds(each)
        ]
        seen += [now] if not seen or seen[-1] != now else []
    new_allowed, new_denied = (each._replace(name="u") for each in held)
    assert seen == [
        [allowed, denied],
        [allowed, denied, new_denied],
        [denied, new_denied],
        [denied, new_allowed, new_denied],
        [new_allowed, new_denied],
    ]


def test_an_acl_that_a_log_has_twice_goes_with_the_last_of_them() -> None:
    one = Acl(TOPIC, "t", 3, "User:*", "*", READ, ALLOW)
    image, known = known_of(one, one)
    assert known.rules.count == 1 and len(known.ids_of(one)) == 2
    for number in range(2):
        assert known.rules.holds(one)
        image.apply(messages.RemoveAccessControlEntryRecord(id=number.to_bytes(16)))
        finish(known.publish(image.take_delta()))
    assert not known.rules.holds(one) and not known.ids_of(one)


def test_an_acl_of_codes_that_mean_nothing_counts_for_nobody() -> None:
    """A newer Kafka may have written it."""
    _, known = known_of(
        Acl(TOPIC, "t", 3, "User:*", "*", READ, 9), Acl(99, "t", 3, "User:*", "*", READ, ALLOW)
    )
    assert known.rules.count == 0


def test_an_acl_that_becomes_another_is_followed() -> None:
    one = Acl(TOPIC, "t", 3, "User:*", "*", READ, ALLOW)
    image, known = known_of(one)
    image.apply(record_of((0).to_bytes(16), one._replace(operation=WRITE)))
    finish(known.publish(image.take_delta()))
    assert not known.rules.holds(one) and known.rules.holds(one._replace(operation=WRITE))


def test_filters_that_are_refused_are_looked_at_in_slices(broker: Any) -> None:
    everything = Filter(1, None, 1, None, None, 1, 1)
    for wanted in (everything, everything._replace(operation=99)):
        assert sum(1 for _ in broker.acls._deleting([wanted] * 1_000, [])) >= 1_000


def test_many_are_described_in_slices() -> None:
    rules = Rules()
    for number in range(1_000):
        rules.add(Acl(TOPIC, f"t{number}", 3, "User:*", "*", READ, ALLOW))
    broker = cast("Any", SimpleNamespace(acls=SimpleNamespace(matching=rules.matching)))
    request = wanted(messages.DescribeAclsRequest, resource_name_filter=None)
    assert sum(1 for _ in describe_acls.handle(broker, request, cast("Any", None))) >= 1_000
