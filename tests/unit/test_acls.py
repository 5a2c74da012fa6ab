"""Which ACLs there may be, and which of them a filter means."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.acls import Acl, Filter, Pattern, check, check_filter

GOOD = Acl(2, "t", 3, "User:ann", "*", 3, 3)
EVERYTHING = Filter(1, None, 1, None, None, 1, 1)
OF_TOPICS = EVERYTHING._replace(resource_type=2)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": 9}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission": 9}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "ann"},
            "Could not parse principal from `ann` (no colon is present separating the principal type from the"
            " principal name)",
        ),
        ({"principal": "ann", "operation": 99}, "Invalid operation UNKNOWN"),
    ],
)
def test_what_there_may_not_be(changed: dict[str, Any], text: str) -> None:
    with pytest.raises(KafkaError) as refused:
        check(GOOD._replace(**changed))
    assert (refused.value.code, refused.value.text) == (errors.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    "acl",
    [GOOD, GOOD._replace(resource_type=3, name="a/b"), GOOD._replace(resource_type=4, name="kafka-cluster")],
)
def test_what_there_may_be(acl: Acl) -> None:
    check(acl)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"resource_type": 9}, "Unknown patternFilter."),
        ({"pattern_type": 9}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission": 9}, "Unknown entryFilter."),
    ],
)
def test_a_filter_of_codes_that_mean_nothing(changed: dict[str, Any], text: str) -> None:
    check_filter(EVERYTHING)
    with pytest.raises(KafkaError) as refused:
        check_filter(EVERYTHING._replace(**changed))
    assert (refused.value.code, refused.value.text) == (errors.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("name", "pattern_type", "taken"),
    [
        (None, 1, "t t* * x*"),
        ("t", 1, "t t*"),
        ("t", 3, "t"),
        ("t", 4, "t*"),
        (None, 3, "t *"),
        ("tx", 2, "t* *"),
        ("t", 2, "t t* *"),
        ("*", 2, "*"),
        ("x", 3, ""),
    ],
)
def test_patterns_that_a_filter_takes(name: str | None, pattern_type: int, taken: str) -> None:
    patterns = {
        "t": Pattern(2, "t", 3),
        "t*": Pattern(2, "t", 4),
        "*": Pattern(2, "*", 3),
        "x*": Pattern(2, "x", 4),
    }
    wanted = EVERYTHING._replace(name=name, pattern_type=pattern_type)
    assert " ".join(key for key, pattern in patterns.items() if wanted.takes(pattern)) == taken


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (EVERYTHING, None),
        (OF_TOPICS, None),
        (EVERYTHING._replace(name="t", pattern_type=3), [Pattern(kind, "t", 3) for kind in range(2, 8)]),
        (OF_TOPICS._replace(name="t", pattern_type=4), [Pattern(2, "t", 4)]),
        (OF_TOPICS._replace(name="t"), [Pattern(2, "t", 3), Pattern(2, "t", 4)]),
        (
            OF_TOPICS._replace(name="tx", pattern_type=2),
            [Pattern(2, "tx", 3), Pattern(2, "*", 3), Pattern(2, "t", 4), Pattern(2, "tx", 4)],
        ),
        (OF_TOPICS._replace(name="*", pattern_type=2), [Pattern(2, "*", 3), Pattern(2, "*", 4)]),
        (OF_TOPICS._replace(name="t", pattern_type=99), []),
        (OF_TOPICS._replace(name="t" * 250, pattern_type=2), None),
    ],
)
def test_patterns_that_a_filter_names(wanted: Filter, named: list[Pattern] | None) -> None:
    assert wanted.patterns == named
    assert all(wanted.takes(pattern) for pattern in named or ())


@pytest.mark.parametrize(
    ("changed", "matches"),
    [
        ({}, True),
        ({"principal": "User:ann", "host": "*", "operation": 3, "permission": 3}, True),
        ({"principal": "User:bob"}, False),
        ({"host": "10.0.0.1"}, False),
        ({"operation": 4}, False),
        ({"permission": 2}, False),
        ({"resource_type": 3}, False),
    ],
)
def test_entries_that_a_filter_takes(changed: dict[str, Any], matches: bool) -> None:
    assert EVERYTHING._replace(**changed).matches(GOOD) == matches
