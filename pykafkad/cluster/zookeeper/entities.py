"""Configs, quotas and SCRAM credentials: records of the metadata, and keys of the znodes below /config.

Pure. A znode is named by its path below /config, and is a mapping of keys to texts:

    topics/T, brokers/N, brokers/<default>     configs
    users/U                                    quotas of a user, and its SCRAM credentials
    clients/C, users/U/clients/C, ips/I        quotas
`changes_of` says which keys of which znodes records set and remove; `records_of` which records make the image say what
a znode says. Keys that mean nothing to the image are left where they are, and so are brokers' passwords, which are
encrypted by a secret that is not known here.
"""

from __future__ import annotations

import math

from pykafkad import errors
from pykafkad.cluster.client_quotas import CLIENT_ID, IP, OF_ADDRESSES, OF_CLIENTS, USER, record_of
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.cluster.metadata_records import config_record
from pykafkad.config_keys import OF_3_9
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from pykafkad.zookeeper.config_znodes import (
    DEFAULT,
    SCRAM_MECHANISMS,
    ScramCredential,
    desanitized,
    read_scram,
    sanitized,
    scram_text,
)
from pykafkad.zookeeper.znodes import SHOWN, MalformedZnode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.messages import ClientQuotaRecord, ConfigRecord

    EntityRecord = (
        ConfigRecord | ClientQuotaRecord | UserScramCredentialRecord | RemoveUserScramCredentialRecord
    )

    Changes = dict[str, dict[str, str | None]]  # entity path -> key -> value; None: removed

CONFIG, SCRAM, REMOVED_SCRAM, QUOTA = 4, 11, 22, 14  # API keys of records
TOPICS, BROKERS, CLIENTS, USERS, IPS = "topics", "brokers", "clients", "users", "ips"
PASSWORDS = tuple(
    name for name, key in OF_3_9.dynamic.items() if key.type == "PASSWORD"
)  # of listeners: with their names
RESOURCES = {TOPIC_RESOURCE: TOPICS, BROKER_RESOURCE: BROKERS}

log = logger("zookeeper")


# -- records to znodes


def is_entity(record: Any) -> bool:
    return record.api_key in (CONFIG, SCRAM, REMOVED_SCRAM, QUOTA)


def changes_of(records: Iterable[Record]) -> Changes:
    found: Changes = {}
    for record, _ in records:
        path, key, value = change_of(record)
        found.setdefault(path, {})[key] = value
    return found


def change_of(record: Any) -> tuple[str, str, str | None]:
    """Of one key: the znode, the key, and its value."""
    if record.api_key == CONFIG:
        check_no_password(record)
        return config_path(record.resource_type, record.resource_name), record.name, record.value
    if record.api_key == QUOTA:
        names = {part.entity_type: part.entity_name for part in record.entity}
        return quota_path(names), record.key, None if record.remove else quota_text(record.key, record.value)
    path = f"{USERS}/{sanitized(record.name)}"
    credential = None
    if record.api_key == SCRAM:
        credential = scram_text(
            ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        )
    return path, SCRAM_MECHANISMS[record.mechanism], credential


def check_no_password(record: ConfigRecord) -> None:
    """Kafka writes a broker's passwords encrypted by password.encoder.secret, and refuses them without one."""
    if (
        record.resource_type == BROKER_RESOURCE
        and record.value is not None
        and record.name.endswith(PASSWORDS)
    ):
        why = f"{record.name}: Password encoder secret not configured"
        raise KafkaError(errors.INVALID_REQUEST, why)


def config_path(resource_type: int, name: str) -> str:
    if resource_type not in RESOURCES:
        why = f"AlterConfigs is only supported for topics and brokers, but resource type is {resource_type}"
        raise KafkaError(errors.INVALID_REQUEST, why)
    return f"{RESOURCES[resource_type]}/{name or DEFAULT}"


def quota_path(names: Mapping[str, str | None]) -> str:
    parts = {kind: sanitized(name) for kind, name in names.items()}
    if IP in parts:
        return f"{IPS}/{parts[IP]}"
    if USER not in parts:
        return f"{CLIENTS}/{parts[CLIENT_ID]}"
    return f"{USERS}/{parts[USER]}" + (f"/{CLIENTS}/{parts[CLIENT_ID]}" if CLIENT_ID in parts else "")


def quota_text(key: str, value: float) -> str:
    row = OF_CLIENTS.get(key) or OF_ADDRESSES.get(key)
    if row is not None and row.type != "DOUBLE":
        return "0" if math.isnan(value) else str(int(value))  # Java's cast
    return {"inf": "Infinity", "nan": "NaN"}.get(repr(value), repr(value))  # as Java reads it


# -- znodes to records


def records_of(image: Image, path: str, configs: Mapping[str, str]) -> list[EntityRecord]:
    """What makes the image say of this znode what it holds; none: the image says so already."""
    kind, _, name = path.partition("/")
    if kind in (TOPICS, BROKERS):
        return config_records(image, kind, name, configs)
    if kind not in (CLIENTS, USERS, IPS):
        return []
    try:
        entity = entity_of(kind, name)
    except ValueError:
        log.error(f"/config/{path} is no user, client or address")
        return []
    records = quota_records(image, entity, configs)
    user = entity.get(USER)
    if user is not None and len(entity) == 1:
        records += scram_records(image, user, configs)
    return records


def config_records(image: Image, kind: str, name: str, configs: Mapping[str, str]) -> list[EntityRecord]:
    resource_type = TOPIC_RESOURCE if kind == TOPICS else BROKER_RESOURCE
    resource = ALL_BROKERS if name == DEFAULT and kind == BROKERS else name
    known = image.configs.get((resource_type, resource), {})
    if kind == BROKERS:
        configs = {key: value for key, value in configs.items() if not key.endswith(PASSWORDS)}
    return [config_record(resource_type, resource, key, value) for key, value in differing(known, configs)]


def entity_of(kind: str, name: str) -> dict[str, str | None]:
    """users, "u1/clients/c1" -> {"user": "u1", "client-id": "c1"}"""
    first, *more = name.split("/")
    entity = {{CLIENTS: CLIENT_ID, USERS: USER, IPS: IP}[kind]: desanitized(first)}
    if more:
        if kind != USERS or len(more) != 2 or more[0] != CLIENTS:
            raise ValueError(name)
        entity[CLIENT_ID] = desanitized(more[1])
    return entity


def quota_records(
    image: Image, entity: Mapping[str, str | None], configs: Mapping[str, str]
) -> list[EntityRecord]:
    known = image.client_quotas.get(tuple(sorted(entity.items(), key=str)), {})
    rows = OF_ADDRESSES if IP in entity else OF_CLIENTS
    quotas = {}
    for key, text in configs.items():
        if key in rows:
            try:
                quotas[key] = float(text)
            except ValueError:
                log.error(f"the quota {key} of {dict(entity)} is no number: {text[:SHOWN]}")
    return [record_of(entity, key, value) for key, value in differing(known, quotas)]


def scram_records(image: Image, user: str, configs: Mapping[str, str]) -> list[EntityRecord]:
    records: list[EntityRecord] = []
    for mechanism, key in SCRAM_MECHANISMS.items():
        known = image.scram_users.get((user, mechanism))
        try:
            found = read_scram(configs[key]) if key in configs else None
        except MalformedZnode as error:
            log.error(f"user {user}: {error}")
            continue
        if found is None and known is not None:
            records.append(RemoveUserScramCredentialRecord(name=user, mechanism=mechanism))
        elif found is not None and (known is None or credential_in(known) != found):
            records.append(UserScramCredentialRecord(name=user, mechanism=mechanism, **found._asdict()))
    return records


def credential_in(record: UserScramCredentialRecord) -> ScramCredential:
    return ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )


def differing(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What makes the one the other; None: to be removed."""
    changed = [(key, value) for key, value in wanted.items() if known.get(key) != value]
    return changed + [(key, None) for key in known if key not in wanted]


def known_paths(image: Image) -> set[str]:
    """The znodes that the image has something of."""
    paths = {
        f"{RESOURCES[kind]}/{name or DEFAULT}"
        for (kind, name), configs in image.configs.items()
        if kind in RESOURCES and configs
    }
    paths |= {quota_path(dict(entity)) for entity in image.client_quotas}
    return paths | {f"{USERS}/{sanitized(name)}" for name, _ in image.scram_users}
