"""ACLs: what one says, which there may be, and which of them a filter means.

An ACL is about the resources of a type that have a name (LITERAL; `*` is every name) or whose names begin with one
(PREFIXED), and gives or takes an operation to a principal that comes from a host. Names, principals and hosts are
compared as texts, as Kafka does: no address is resolved, and no name is looked up.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.authorization import CLUSTER, THE_CLUSTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

UNKNOWN, ANY = 0, 1  # of every kind of code; ANY is only for filters
TYPE_NAMES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token", 7: "user"}
TYPES = TYPE_NAMES.keys()  # of resources
ALL = 2  # an operation
OPERATION_NAMES = {
    ALL: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
OPERATIONS = OPERATION_NAMES.keys()
DENY, ALLOW = PERMISSIONS = 2, 3
MATCH, LITERAL, PREFIXED = 2, 3, 4  # of patterns; MATCH is only for filters
PATTERNS = LITERAL, PREFIXED

LISTED_MAX = 249  # characters of a name whose prefixes are listed: as many as a topic's may have

EVERY = "*"  # a name, or a host
EVERYBODY = "User:*"

ONE_CLUSTER = f"The only valid name for the CLUSTER resource is {THE_CLUSTER}"
NO_NAME = "Invalid empty resource name"


class Acl(NamedTuple):
    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class Pattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: int
    name: str
    pattern_type: int


def pattern_of(acl: Acl) -> Pattern:
    return Pattern(*acl[:3])


class Filter(NamedTuple):
    """As in the requests: None and ANY take everything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def patterns(self) -> list[Pattern] | None:
        """All that it takes, whether there are such or not; None: they are not listed, since it takes every name, or the
        prefixes of a long one."""
        if self.name is None or (self.pattern_type == MATCH and len(self.name) > LISTED_MAX):
            return None
        named: list[tuple[str, int]] = []
        if self.pattern_type in (ANY, MATCH, LITERAL):
            named.append((self.name, LITERAL))
        if self.pattern_type in (ANY, PREFIXED):
            named.append((self.name, PREFIXED))
        if self.pattern_type == MATCH:
            named.append((EVERY, LITERAL))
            named += [(self.name[:length], PREFIXED) for length in range(1, len(self.name) + 1)]
        types = TYPES if self.resource_type == ANY else (self.resource_type,)
        return [Pattern(kind, *each) for kind in types for each in dict.fromkeys(named)]

    @property
    def names_its_patterns(self) -> bool:
        """Kafka: it matches at most one, or two, if of any pattern type."""
        return self.name is not None and self.resource_type in TYPES and self.pattern_type in (ANY, *PATTERNS)

    def takes(self, pattern: Pattern) -> bool:
        if self.resource_type not in (ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (ANY, MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type != MATCH:
            return False
        if pattern.pattern_type == PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == EVERY

    def takes_entry(self, principal: str, host: str, operation: int, permission: int) -> bool:
        return (
            self.principal in (None, principal)
            and self.host in (None, host)
            and self.operation in (ANY, operation)
            and self.permission in (ANY, permission)
        )

    def matches(self, acl: Acl) -> bool:
        return self.takes(pattern_of(acl)) and self.takes_entry(*acl[3:])


def filter_of(asked: Any) -> Filter:
    """Of a DescribeAclsRequest, or of one filter of a DeleteAclsRequest."""
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


# -- what may be


def check(acl: Acl) -> None:
    """KafkaError where there can be no such ACL. Whether the operation makes sense for that type is not asked."""
    if acl.resource_type == CLUSTER and acl.name != THE_CLUSTER:
        raise refused(ONE_CLUSTER)
    if not acl.name:
        raise refused(NO_NAME)
    check_codes(acl)
    if ":" not in acl.principal:
        why = "no colon is present separating the principal type from the principal name"
        raise refused(f"Could not parse principal from `{acl.principal}` ({why})")


def check_codes(acl: Acl) -> None:
    """KafkaError where one means nothing."""
    check_code("resourceType", acl.resource_type, TYPES)
    check_code("patternType", acl.pattern_type, PATTERNS)
    check_code("operation", acl.operation, OPERATIONS)
    check_code("permissionType", acl.permission, PERMISSIONS)


def check_code(what: str, code: int, known: Container[int]) -> None:
    if code not in known:
        raise refused(f"Invalid {what} UNKNOWN")


def check_filter(wanted: Filter) -> None:
    """KafkaError where it has codes that mean nothing."""
    if wanted.resource_type not in (ANY, *TYPES) or wanted.pattern_type not in (ANY, MATCH, *PATTERNS):
        raise refused("Unknown patternFilter.")
    if wanted.operation not in (ANY, *OPERATIONS) or wanted.permission not in (ANY, *PERMISSIONS):
        raise refused("Unknown entryFilter.")


def refused(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_REQUEST, text)
