"""`pykafkad configs` for users, clients and addresses: quotas, and users' SCRAM credentials (KIP-546, 554)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.config_def import show_double
from pykafkad.config_entities import QUOTA_IP, QUOTA_USER_CLIENT
from pykafkad.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)
from pykafkad.net.client import Cluster, check
from pykafkad.tools import failures, output
from pykafkad.tools.java import hash_order, string_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
EXACT, DEFAULT, ANY = 0, 1, 2  # how DescribeClientQuotas matches an entity
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_DEFAULT = ITERATIONS_MIN = 4096
SALT_BYTES = 16
QUOTAS = frozenset(str(row[0]) for row in QUOTA_USER_CLIENT)
IP_QUOTAS = frozenset(str(row[0]) for row in QUOTA_IP)


def is_address(text: str) -> bool:
    """Whether it is an address, or a host name that can be resolved."""
    from pykafkad.net.client import resolves

    return resolves(text)


# -- changing


def alter(
    cluster: Cluster,
    types: Sequence[str],
    names: Sequence[str],
    added: Mapping[str, str],
    deleted: Sequence[str],
) -> None:
    if types[0] == "ips":
        unknown = [key for key in (*added, *deleted) if key not in IP_QUOTAS]
        if unknown:
            raise ValueError(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected "
                f"config names: {','.join(unknown)}"
            )
        _alter_quotas(cluster, types, names, added, deleted)
        return
    _check_keys(types, names, added, deleted)
    if QUOTAS.intersection((*added, *deleted)):
        _alter_quotas(cluster, types, names, added, deleted)
    else:
        _alter_credentials(cluster, names[0], added, deleted)


def _check_keys(
    types: Sequence[str], names: Sequence[str], added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    with_scram = types[0] != "clients" and len(types) == 1
    kinds = "quota and SCRAM credential configs" if with_scram else "quota configs"
    for verb, keys in (("added", added), ("deleted", deleted)):
        unknown = [key for key in keys if key not in QUOTAS and not (with_scram and key in MECHANISMS)]
        if unknown:
            raise ValueError(
                f"Only {kinds} can be {verb} for '{'users' if with_scram else 'clients'}' using "
                f"--bootstrap-server. Unexpected config names: {_listed(unknown, verb)}"
            )
    if any(key in MECHANISMS for key in (*added, *deleted)):
        if "" in names:
            raise ValueError(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
                "using --bootstrap-server."
            )
        if QUOTAS.intersection((*added, *deleted)):
            raise ValueError(
                "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
                "--bootstrap-server."
            )


def _listed(keys: Sequence[str], verb: str) -> str:
    """Show a list as Scala shows the collections of Kafka's tool."""
    return f"{'Set' if verb == 'added' else 'ArrayBuffer'}({', '.join(keys)})"


def _alter_quotas(
    cluster: Cluster,
    types: Sequence[str],
    names: Sequence[str],
    added: Mapping[str, str],
    deleted: Sequence[str],
) -> None:
    known = next(iter(_quotas(cluster, types, names)), None)
    present = {row.key for row in known.values} if known is not None else set()
    missing = [key for key in deleted if key not in present]
    if missing:
        raise ValueError(f"Invalid config(s): {','.join(missing)}")
    operations = [_operation(key, text) for key, text in added.items()]
    operations += [AlterClientQuotasRequest.OpData(key=key, remove=True) for key in deleted]
    entity = [
        AlterClientQuotasRequest.EntityData(entity_type=ENTITIES[kind], entity_name=name or None)
        for kind, name in zip(types, names, strict=True)
    ]
    request = AlterClientQuotasRequest(
        entries=[AlterClientQuotasRequest.EntryData(entity=entity, ops=operations)]
    )
    for row in cluster.ask_any("alterClientQuotas", request).entries:
        check(row.error_code, row.error_message)


def _operation(key: str, text: str) -> Any:
    try:
        return AlterClientQuotasRequest.OpData(key=key, value=float(text), remove=False)
    except ValueError:
        raise ValueError(f"Cannot parse quota configuration value for {key}: {text}") from None


def _alter_credentials(cluster: Cluster, user: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    from hashlib import pbkdf2_hmac
    from os import urandom

    upsertions = []
    for mechanism, text in added.items():
        iterations, password = parse_credential(mechanism, text)
        salt = urandom(SALT_BYTES)
        upsertions.append(
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=user,
                mechanism=MECHANISMS[mechanism],
                iterations=iterations,
                salt=salt,
                salted_password=pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations),
            )
        )
    deletions = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=user, mechanism=MECHANISMS[mechanism])
        for mechanism in deleted
    ]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    for row in cluster.ask_any("alterUserScramCredentials", request).results:
        check(row.error_code, row.error_message)


def parse_credential(mechanism: str, text: str) -> tuple[int, str]:
    """`iterations=8192,password=secret`, the first part optional."""
    import re

    found = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if found is None:
        raise ValueError(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = ITERATIONS_DEFAULT if found[1] in (None, "-1") else int(found[1])
    if iterations < ITERATIONS_MIN:
        raise ValueError(
            f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for {mechanism}"
        )
    return iterations, found[2]


# -- showing


def describe(cluster: Cluster, types: Sequence[str], names: Sequence[str]) -> None:
    for row in _quotas(cluster, types, names):
        entity = {part.entity_type: part.entity_name for part in row.entity}
        shown = [
            f"the default {label}" if entity[kind] is None else f"{label} '{entity[kind]}'"
            for kind, label in SHOWN.items()
            if kind in entity
        ]
        values = {value.key: value.value for value in row.values}
        texts = [f"{key}={show_double(values[key])}" for key in hash_order(values, capacity=len(values))]
        output.line(f"Quota configs for {', '.join(shown)} are {', '.join(texts)}")
    if types[0] == "users" and "clients" not in types and "" not in names:
        _describe_credentials(cluster, names)


def _quotas(cluster: Cluster, types: Sequence[str], names: Sequence[str]) -> list[Any]:
    """The quotas of exactly these entity types."""
    if len(names) > len(types):
        raise ValueError("More entity names specified than entity types")
    components = []
    for at, kind in enumerate(types):
        name = names[at] if at < len(names) else None
        how = ANY if name is None else EXACT if name else DEFAULT
        components.append(
            DescribeClientQuotasRequest.ComponentData(
                entity_type=ENTITIES[kind], match_type=how, match=name if how == EXACT else None
            )
        )
    request = DescribeClientQuotasRequest(components=components, strict=True)
    response = cluster.ask_any("describeClientQuotas", request)
    check(response.error_code, response.error_message)
    rows = {
        tuple((part.entity_type, part.entity_name) for part in row.entity): row
        for row in response.entries or []
    }
    return [rows[key] for key in hash_order(rows, _entity_hash, capacity=len(rows))]


def _entity_hash(entity: tuple[tuple[str, str | None], ...]) -> int:
    """ClientQuotaEntity.hashCode: that of a map in a list of one."""
    parts = (string_hash(kind) ^ (string_hash(name) if name is not None else 0) for kind, name in entity)
    return (31 + sum(parts)) & 0xFFFFFFFF


def _describe_credentials(cluster: Cluster, names: Sequence[str]) -> None:
    for row in _credentials(cluster, names):
        if row.error_code:
            output.line(
                f"Error retrieving SCRAM credential configs for user-principal '{row.user}': "
                f"{failures.class_name(row.error_code)}: {row.error_message}"
            )
            continue
        texts = [f"{name}={value}" for name, value in _mechanisms(row)]
        output.line(f"SCRAM credential configs for user-principal '{row.user}' are {', '.join(texts)}")


def _credentials(cluster: Cluster, names: Sequence[str]) -> list[Any]:
    """The users that have some, or whose cannot be told."""
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=users or None)
    response = cluster.ask_any("describeUserScramCredentials", request)
    check(response.error_code, response.error_message)
    return [row for row in response.results if row.error_code != errors.RESOURCE_NOT_FOUND]


def _mechanisms(row: Any) -> list[tuple[str, str]]:
    known = {number: name for name, number in MECHANISMS.items()}
    return [
        (known.get(info.mechanism, "UNKNOWN"), f"iterations={info.iterations}")
        for info in row.credential_infos
    ]


# -- as JSON


def fields(cluster: Cluster, types: Sequence[str], names: Sequence[str]) -> list[dict[str, object]]:
    kinds = {component: kind for kind, component in ENTITIES.items()}
    found: list[dict[str, object]] = [
        {
            "entity": {kinds[part.entity_type]: part.entity_name for part in row.entity},
            "entries": [
                _entry_fields(value.key, show_double(value.value), "QUOTA")
                for value in sorted(row.values, key=lambda value: str(value.key))
            ],
        }
        for row in _quotas(cluster, types, names)
    ]
    if types[0] == "users" and "clients" not in types and "" not in names:
        for row in _credentials(cluster, names):
            check(row.error_code, row.error_message)
            entries = [_entry_fields(*pair, "SCRAM_CREDENTIAL") for pair in _mechanisms(row)]
            found.append({"entity": {"users": row.user}, "entries": entries})
    return found


def _entry_fields(name: str, value: str, source: str) -> dict[str, object]:
    return {"name": name, "value": value, "source": source, "sensitive": False, "synonyms": []}
