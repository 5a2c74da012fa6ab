"""How ACLs decide who may do what: the rules of Kafka's StandardAuthorizer, and of 3.9's AclAuthorizer.

    1. A super user may do everything.
    2. The ACLs that count are those of the name, of every name (LITERAL `*`), and of each prefix of the name. One that
       denies beats all that allow. An ACL of an operation, or of ALL, applies to a principal, or to all, from a host,
       or from all; one that allows to read, write, delete or alter allows to describe, too, and one that allows to
       alter configs to describe them. What denies implies nothing.
    3. A resource without any ACL is nobody's, unless allow.everyone.if.no.acl.found. One with ACLs of others is not.

Owns the ACLs, as a set. For a pattern it keeps, of each pair of principal and host, the operations that are denied and
allowed to it, as bits: so a decision looks up four pairs in a handful of patterns, however many ACLs there are.
Decisions are remembered until an ACL changes. Invariant: no pattern and no pair is kept without an ACL.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafkad.pure.acls import (
    ALL,
    ALLOW,
    DENY,
    EVERY,
    EVERYBODY,
    LITERAL,
    OPERATIONS,
    PREFIXED,
    Acl,
    Pattern,
)
from pykafkad.pure.authorization import (
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    WRITE,
)
from pykafkad.pure.hosts import java_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pykafkad.pure.acls import Filter
    from pykafkad.pure.authorization import Principal

    Pair = tuple[str, str]  # a principal, a host

DECISIONS_MAX = 10_000  # that are remembered
SOME_NAME = "hardcode"  # Kafka asks for it to find out whether any name will do


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


# What an ACL must be of to deny an operation, and to allow it.
DENIES = {operation: bits(operation) | bits(ALL) for operation in OPERATIONS}
ALLOWS = {
    **DENIES,
    DESCRIBE: bits(ALL, DESCRIBE, READ, WRITE, DELETE, ALTER),
    DESCRIBE_CONFIGS: bits(ALL, DESCRIBE_CONFIGS, ALTER_CONFIGS),
}


def nothing(*denied: object) -> None:
    """Nobody is told."""


class Entries:
    """The ACLs of one pattern: the operations of each pair."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.denied: dict[Pair, int] = {}
        self.allowed: dict[Pair, int] = {}

    def of(self, permission: int) -> dict[Pair, int]:
        return self.denied if permission == DENY else self.allowed

    def __iter__(self) -> Iterator[tuple[Pair, int, int]]:
        """Pairs, permissions, and operations."""
        for permission in (DENY, ALLOW):
            for pair, operations in list(self.of(permission).items()):
                yield pair, permission, operations


class Rules:
    def __init__(
        self,
        super_users: Collection[str] = (),
        *,
        everyone_if_no_acl: bool = False,
        note_denied: Callable[[Principal, str, int, int, str], None] = nothing,
    ) -> None:
        self.note_denied = note_denied
        self._super_users = frozenset(super_users)
        self._everyone_if_no_acl = everyone_if_no_acl
        self._patterns: dict[tuple[int, int, str], Entries] = {}
        self._lengths: dict[
            int, dict[int, int]
        ] = {}  # of prefixes, by type of resource, and how many there are
        # By type of resource, permission and pair: the patterns that say something of it.
        self._of_pair: dict[tuple[int, int, Pair], dict[tuple[int, str], Entries]] = {}
        self._decisions: dict[tuple[Principal, str, int, int, str | None], bool] = {}
        self.count = 0

    # -- the ACLs

    def add(self, acl: Acl) -> None:
        """It may be there already."""
        if self.holds(acl):
            return
        kind, name, pattern_type, principal, host, operation, permission = acl
        pair = principal, host
        entries = self._patterns.get((kind, pattern_type, name))
        if entries is None:
            entries = self._patterns[kind, pattern_type, name] = Entries()
            if pattern_type == PREFIXED:
                self._count_prefix(kind, len(name), 1)
        of_pairs = entries.of(permission)
        if pair not in of_pairs:
            self._of_pair.setdefault((kind, permission, pair), {})[pattern_type, name] = entries
        of_pairs[pair] = of_pairs.get(pair, 0) | bits(operation)
        self.count += 1
        self._decisions.clear()

    def remove(self, acl: Acl) -> None:
        """It may be gone already."""
        if not self.holds(acl):
            return
        kind, name, pattern_type, principal, host, operation, permission = acl
        pair = principal, host
        entries = self._patterns[kind, pattern_type, name]
        of_pairs = entries.of(permission)
        of_pairs[pair] &= ~bits(operation)
        if not of_pairs[pair]:
            del of_pairs[pair]
            patterns = self._of_pair[kind, permission, pair]
            del patterns[pattern_type, name]
            if not patterns:
                del self._of_pair[kind, permission, pair]
        if not entries.denied and not entries.allowed:
            del self._patterns[kind, pattern_type, name]
            if pattern_type == PREFIXED:
                self._count_prefix(kind, len(name), -1)
        self.count -= 1
        self._decisions.clear()

    def _count_prefix(self, kind: int, length: int, more: int) -> None:
        lengths = self._lengths.setdefault(kind, {})
        lengths[length] = lengths.get(length, 0) + more
        if not lengths[length]:
            del lengths[length]

    def holds(self, acl: Acl) -> bool:
        entries = self._patterns.get((acl.resource_type, acl.pattern_type, acl.name))
        if entries is None:
            return False
        return bool(entries.of(acl.permission).get((acl.principal, acl.host), 0) & bits(acl.operation))

    def has(self, pattern: Pattern) -> bool:
        """Any ACL about it."""
        kind, name, pattern_type = pattern
        return (kind, pattern_type, name) in self._patterns

    @property
    def patterns(self) -> list[Pattern]:
        return [Pattern(kind, name, pattern_type) for kind, pattern_type, name in self._patterns]

    def of(self, pattern: Pattern) -> list[Acl]:
        return [acl for acl in self._of(pattern, None) if acl is not None]

    def matching(self, wanted: Filter) -> Iterator[Acl | None]:
        """Those that a filter means; None in between, where others were looked at. ACLs may change meanwhile."""
        listed = wanted.patterns
        for pattern in self.patterns if listed is None else listed:
            if listed is not None or wanted.takes(pattern):
                yield from self._of(pattern, wanted)
            yield None

    def _of(self, pattern: Pattern, wanted: Filter | None) -> Iterator[Acl | None]:
        kind, name, pattern_type = pattern
        for (who, host), permission, operations in self._patterns.get((kind, pattern_type, name), ()):
            for operation in OPERATIONS:
                if not operations & bits(operation):
                    continue
                taken = wanted is None or wanted.takes_entry(who, host, operation, permission)
                yield Acl(*pattern, who, host, operation, permission) if taken else None

    # -- deciding

    def allows(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> bool:
        asked = principal, host, operation, resource, name
        known = self._decisions.get(asked)
        return self._remember(asked, self._decide(*asked)) if known is None else known

    def allows_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
        asked = principal, host, operation, resource, None
        known = self._decisions.get(asked)
        return self._remember(asked, self._decide_some(*asked[:4])) if known is None else known

    def _remember(self, asked: tuple[Principal, str, int, int, str | None], decision: bool) -> bool:
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[asked] = decision
        return decision

    def _decide(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> bool:
        who = str(principal)
        if who in self._super_users:
            return True
        pairs = pairs_of(who, host)
        denies, allows = DENIES[operation], ALLOWS[operation]
        is_allowed = False
        is_anybodys = self._everyone_if_no_acl
        for entries in self._about(resource, name):
            is_anybodys = False
            for pair in pairs:
                if entries.denied.get(pair, 0) & denies:
                    return False
                if entries.allowed.get(pair, 0) & allows:
                    is_allowed = True
        return is_allowed or is_anybodys

    def _about(self, resource: int, name: str) -> Iterator[Entries]:
        """Those of the patterns that are about this resource."""
        patterns = self._patterns
        for each in (EVERY, name):
            if (entries := patterns.get((resource, LITERAL, each))) is not None:
                yield entries
        for length in self._lengths.get(resource, ()):
            if (
                length <= len(name)
                and (entries := patterns.get((resource, PREFIXED, name[:length]))) is not None
            ):
                yield entries

    def _decide_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
        """As KIP-679 has it: that an operation is implied by others counts for SOME_NAME alone."""
        if self.allows(principal, host, operation, resource, SOME_NAME):
            return True
        denied = self._named(DENY, principal, host, operation, resource)
        return (LITERAL, EVERY) not in denied and self._some_is_left(
            denied, principal, host, operation, resource
        )

    def _some_is_left(
        self, denied: set[tuple[int, str]], principal: Principal, host: str, operation: int, resource: int
    ) -> bool:
        """Whether something is allowed that is not denied, or lies within a prefix that is."""
        lengths = {len(name) for pattern_type, name in denied if pattern_type == PREFIXED}
        for pattern_type, name in self._named(ALLOW, principal, host, operation, resource):
            if (pattern_type, name) == (LITERAL, EVERY):
                return True
            if pattern_type == LITERAL and (LITERAL, name) in denied:
                continue
            if not any(length <= len(name) and (PREFIXED, name[:length]) in denied for length in lengths):
                return True
        return False

    def _named(
        self, permission: int, principal: Principal, host: str, operation: int, resource: int
    ) -> set[tuple[int, str]]:
        """The patterns on which this operation is denied, or allowed, by its name."""
        return {
            pattern
            for pair in pairs_of(str(principal), host)
            for pattern, entries in self._of_pair.get((resource, permission, pair), {}).items()
            if entries.of(permission)[pair] & DENIES[operation]
        }


class RulesOfZooKeeper(Rules):
    """AclAuthorizer's: whether everybody may do what has no ACL counts for all names, even if some have ACLs."""

    def _decide_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
        if str(principal) in self._super_users:
            return True
        denied = self._named(DENY, principal, host, operation, resource)
        if (LITERAL, EVERY) in denied:
            return False
        return self._everyone_if_no_acl or self._some_is_left(denied, principal, host, operation, resource)


def pairs_of(who: str, host: str) -> Sequence[Pair]:
    """Whom ACLs name that apply to him."""
    address = java_text(host)
    return (who, address), (who, EVERY), (EVERYBODY, address), (EVERYBODY, EVERY)
