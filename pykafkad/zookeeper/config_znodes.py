"""The znodes of configs, quotas, SCRAM users, ACLs and delegation tokens, as Kafka 3.9.2 writes them.

    /config/TYPE/NAME                        key -> value: of topics, brokers ("<default>": all), ips, clients, users
    /config/users/U/clients/C                of both together; what is above it has no data of its own, perhaps
    /config/changes/config_change_0000000000 what changed, as the path below /config
    /kafka-acl/TYPE/NAME                     ACLs of one resource;  /kafka-acl-extended/prefixed/TYPE/NAME  of a prefix
    /kafka-acl-changes/acl_changes_...       TYPE:NAME;  /kafka-acl-extended-changes/acl_changes_...  the same, as JSON
    /delegation_token/tokens/ID              a token, without its HMAC, which brokers derive from their secret
    /delegation_token/token_changes/token_change_...  its id
Quotas and SCRAM credentials of a user are keys of one znode. Names of users and clients are sanitized in paths.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import NamedTuple
from urllib.parse import quote, unquote

from pykafkad.zookeeper.znodes import SHOWN, MalformedZnode, number, reading, text, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
DEFAULT = "<default>"
ACLS = "/kafka-acl"
ACL_CHANGES = "/kafka-acl-changes"
PREFIXED_ACLS = "/kafka-acl-extended/prefixed"
PREFIXED_ACL_CHANGES = "/kafka-acl-extended-changes"
TOKENS = "/delegation_token/tokens"
TOKEN_CHANGES = "/delegation_token/token_changes"

LITERAL, PREFIXED = 3, 4  # pattern types
DENY, ALLOW = 2, 3
RESOURCE_TYPES = {  # code -> its name in paths
    2: "Topic",
    3: "Group",
    4: "Cluster",
    5: "TransactionalId",
    6: "DelegationToken",
    7: "User",
}
OPERATIONS = {
    2: "All",
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
}
PERMISSIONS = {DENY: "Deny", ALLOW: "Allow"}
SCRAM_MECHANISMS = {
    1: "SCRAM-SHA-256",
    2: "SCRAM-SHA-512",
}  # also what keys of /config/users/U are credentials

ACL_ROOTS = {LITERAL: (ACLS, ACL_CHANGES), PREFIXED: (PREFIXED_ACLS, PREFIXED_ACL_CHANGES)}

# Every broker with an authorizer makes these at its start.
ACL_PATHS = tuple(
    path
    for root, changes in ACL_ROOTS.values()
    for path in (*(f"{root}/{name}" for name in RESOURCE_TYPES.values()), changes)
)
TOKEN_PATHS = (TOKENS, TOKEN_CHANGES)  # and these, one with delegation tokens


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class Pattern(NamedTuple):
    """What ACLs are about."""

    resource_type: int
    name: str
    pattern_type: int


class Acl(NamedTuple):
    principal: str
    permission: int
    host: str
    operation: int


class Token(NamedTuple):
    token_id: str
    owner: str  # principals, as "User:alice"
    requester: str
    renewers: Sequence[str]
    issue_ms: int
    max_ms: int
    expiry_ms: int


# -- names and paths


def sanitized(name: str | None) -> str:
    """Of a user or client, as its znode is named; None: the default one."""
    return DEFAULT if name is None else quote(name, safe="").replace("~", "%7E")


def desanitized(name: str) -> str | None:
    return None if name == DEFAULT else unquote(name)


def config(kind: str, name: str) -> str:
    return f"{CONFIG}/{kind}/{name}"


def config_change(suffix: str = "") -> str:
    return f"{CONFIG_CHANGES}/config_change_{suffix}"


def acl(pattern: Pattern) -> str:
    root, _ = ACL_ROOTS[pattern.pattern_type]
    return f"{root}/{RESOURCE_TYPES[pattern.resource_type]}/{pattern.name}"


def acl_change(pattern: Pattern) -> str:
    """The beginning of its path."""
    _, changes = ACL_ROOTS[pattern.pattern_type]
    return f"{changes}/acl_changes_"


def token(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def token_change() -> str:
    return f"{TOKEN_CHANGES}/token_change_"


# -- configs


def write_config(configs: Mapping[str, str]) -> bytes:
    return to_json({"version": 1, "config": dict(configs)})


def read_config(data: bytes | None) -> dict[str, str]:
    if not data:
        return {}
    return reading(
        "configs", data, lambda value: {text(key): text(each) for key, each in value["config"].items()}
    )


def write_config_change(entity_path: str) -> bytes:
    return to_json({"version": 2, "entity_path": entity_path})


def read_config_change(data: bytes | None) -> str:
    """The path below /config of what changed."""

    def read(value: Any) -> str:
        if value["version"] == 1:
            return f"{text(value['entity_type'])}/{text(value['entity_name'])}"
        if value["version"] != 2:
            raise ValueError(f"version {value['version']}")
        return text(value["entity_path"])

    return reading("a change of configs", data, read)


def scram_text(credential: ScramCredential) -> str:
    return ",".join(
        (
            f"salt={base64_text(credential.salt)}",
            f"stored_key={base64_text(credential.stored_key)}",
            f"server_key={base64_text(credential.server_key)}",
            f"iterations={credential.iterations}",
        )
    )


def read_scram(text: str) -> ScramCredential:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        salt, stored, server = (
            b64decode(parts[key], validate=True) for key in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored, server, number(parts["iterations"]))
    except (KeyError, ValueError) as error:
        raise MalformedZnode(f"a SCRAM credential cannot be read ({error!r})"[: 2 * SHOWN]) from None


def base64_text(data: bytes) -> str:
    return b64encode(data).decode()


# -- ACLs


def write_acls(acls: Iterable[Acl]) -> bytes:
    listed = [
        {
            "principal": each.principal,
            "permissionType": PERMISSIONS[each.permission],
            "host": each.host,
            "operation": OPERATIONS[each.operation],
        }
        for each in acls
    ]
    return to_json({"acls": listed, "version": 1})


def read_acls(data: bytes | None) -> list[Acl]:
    if not data:
        return []
    return reading(
        "ACLs",
        data,
        lambda value: [
            Acl(
                text(each["principal"]),
                code(PERMISSIONS, each["permissionType"]),
                text(each["host"]),
                code(OPERATIONS, each["operation"]),
            )
            for each in value["acls"]
        ],
    )


def write_acl_change(pattern: Pattern) -> bytes:
    kind = constant(RESOURCE_TYPES[pattern.resource_type])
    if pattern.pattern_type == LITERAL:
        return f"{kind}:{pattern.name}".encode()
    return to_json({"version": 1, "resourceType": kind, "name": pattern.name, "patternType": "PREFIXED"})


def read_acl_change(data: bytes | None, pattern_type: int) -> Pattern:
    """Literal ones have a form of their own."""
    if pattern_type == LITERAL:
        kind, separator, name = (data or b"").decode(errors="replace").partition(":")
        if not separator:
            raise MalformedZnode(f"no change of ACLs: {(data or b'')[:SHOWN]!r}")
        return Pattern(resource_type_of(kind), name, LITERAL)
    return reading(
        "a change of ACLs",
        data,
        lambda value: Pattern(resource_type_of(value["resourceType"]), text(value["name"]), PREFIXED),
    )


def resource_type_of(name: str) -> int:
    """TRANSACTIONAL_ID or TransactionalId."""
    for found, each in RESOURCE_TYPES.items():
        if name in (each, constant(each)):
            return found
    raise MalformedZnode(f"there is no resource type {name[:SHOWN]!r}")


def code(names: Mapping[int, str], name: str) -> int:
    for found, each in names.items():
        if each.upper() == name.upper().replace("_", ""):
            return found
    raise ValueError(f"unknown: {name}")


def constant(name: str) -> str:
    """TransactionalId -> TRANSACTIONAL_ID"""
    return "".join(f"_{each}" if each.isupper() and at else each for at, each in enumerate(name)).upper()


# -- delegation tokens


def write_token(token: Token) -> bytes:
    return to_json(
        {
            "version": 3,
            "owner": sanitized(token.owner),
            "tokenRequester": sanitized(token.requester),
            "renewers": [sanitized(each) for each in token.renewers],
            "issueTimestamp": token.issue_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expiry_ms,
            "tokenId": token.token_id,
        }
    )


def read_token(data: bytes | None) -> Token:
    def read(value: Any) -> Token:
        version = number(value["version"])
        if not 1 <= version <= 3:
            raise ValueError(f"version {version}")
        owner = unquote(value["owner"])
        return Token(
            text(value["tokenId"]),
            owner,
            unquote(value["tokenRequester"]) if version >= 3 else owner,
            [unquote(each) for each in value["renewers"]],
            number(value["issueTimestamp"], 64),
            number(value["maxTimestamp"], 64),
            number(value["expiryTimestamp"], 64),
        )

    return reading("a delegation token", data, read)
