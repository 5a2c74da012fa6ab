"""`pykafkad configs` for resources with configs of their own: topics, brokers, loggers, client metrics, groups."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.tools import admin, admin_groups, failures, output, settings
from pykafkad.tools.java import hash_order
from pykafkad.tools.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from pykafkad.net.client import Cluster

TYPES = {
    "topics": admin.TOPIC,
    "brokers": admin.BROKER,
    "broker-loggers": admin.BROKER_LOGGER,
    "client-metrics": admin.CLIENT_METRICS,
    "groups": admin.GROUP,
}
# the source of a config, by its number in answers
SOURCES = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
TOPIC_SOURCE, BROKER_SOURCE, BROKERS_SOURCE, CLIENT_METRICS_SOURCE, GROUP_SOURCE = 1, 2, 3, 7, 8
KEY_CHARACTERS = frozenset("$._-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def is_broker_id(text: str) -> bool:
    try:
        return -(2**31) <= int(text) < 2**31
    except ValueError:
        return False


def check_broker_id(text: str, entity_type: str) -> None:
    if not is_broker_id(text):
        raise ValueError(
            f"The entity name for {entity_type} must be a valid integer broker id, found: {text}"
        )


# -- changing


def parse_added(options: Options) -> dict[str, str]:
    """The configs of --add-config-file, overridden by those of --add-config."""
    found: dict[str, str] = {}
    if options.has("add-config-file"):
        found.update(settings.load(options.text("add-config-file")))
    if options.has("add-config"):
        for entry in split_outside_brackets(options.text("add-config"), ","):
            parts = [part.strip() for part in split_outside_brackets(entry, "=")]
            if len(parts) != 2:
                raise ValueError(
                    "requirement failed: Invalid entity config: all configs to be added must be in the format "
                    '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
                )
            found[parts[0]] = parts[1].replace("[", "").replace("]", "").strip()
    for key in found:
        if not KEY_CHARACTERS.issuperset(key):
            raise ValueError(f"Invalid character found for config key: {key}")
    return found


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """Split at the separators outside of brackets: those after which a `[` or the end comes before the next `]`."""
    parts = []
    start = 0
    for at, character in enumerate(text):
        if character != separator:
            continue
        opened, closed = text.find("[", at), text.find("]", at)
        if closed < 0 or 0 <= opened < closed:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    if separator == ",":
        while parts and not parts[-1]:
            parts.pop()
    return parts


def alter(
    cluster: Cluster, entity_type: str, name: str, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    if entity_type == "brokers" and name:
        check_broker_id(name, entity_type)
    if entity_type == "broker-loggers":
        known = {entry.name for entry in _entries(cluster, entity_type, name, False, True)}
        unknown = [key for key in (*deleted, *added) if key not in known]
        if unknown:
            raise ValueError(f"Invalid broker logger(s): {','.join(unknown)}")
    changes = [(admin.DELETE, key, "") for key in deleted]
    changes += [(admin.SET, key, text) for key, text in added.items()]
    try:
        admin.alter_configs(cluster, (TYPES[entity_type], name), changes)
    except errors.KafkaError:
        from pykafkad.config import TOPIC_KEYS

        for key in added if entity_type == "topics" else ():
            failures.hint(key, TOPIC_KEYS)
        raise


# -- showing


def describe(cluster: Cluster, entity_type: str, name: str | None, everything: bool) -> None:
    if name is not None and not everything and not _exists(cluster, entity_type, name):
        output.line(f"The {entity_type[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for entity in [name] if name is not None else _all_names(cluster, entity_type):
        if not entity:
            output.line(f"Default configs for {entity_type} in the cluster are:")
        else:
            kind = "All" if everything else "Dynamic"
            output.line(f"{kind} configs for {entity_type[:-1]} {entity} are:")
        for entry in _entries(cluster, entity_type, entity, True, everything):
            synonyms = ", ".join(
                f"{SOURCES.get(row.source, 'UNKNOWN')}:{row.name}={_shown(row.value)}"
                for row in entry.synonyms
            )
            sensitive = str(entry.is_sensitive).lower()
            output.line(f"  {entry.name}={_shown(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}")


def fields(cluster: Cluster, entity_type: str, name: str | None, everything: bool) -> list[dict[str, object]]:
    """The configs of the entity, or of all of its type; an entity that does not exist is an error."""
    if name is not None and not everything and not _exists(cluster, entity_type, name):
        raise errors.KafkaError(
            errors.RESOURCE_NOT_FOUND,
            f"The {entity_type[:-1]} '{name}' doesn't exist and doesn't have dynamic config.",
        )
    return [
        {
            "entity": {entity_type: entity or None},
            "entries": [
                _entry_fields(entry) for entry in _entries(cluster, entity_type, entity, True, everything)
            ],
        }
        for entity in ([name] if name is not None else _all_names(cluster, entity_type))
    ]


def _entry_fields(entry: Any) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": SOURCES.get(entry.config_source, "UNKNOWN"),
        "sensitive": entry.is_sensitive,
        "synonyms": [
            {"name": row.name, "value": row.value, "source": SOURCES.get(row.source, "UNKNOWN")}
            for row in entry.synonyms
        ],
    }


def _shown(text: str | None) -> str:
    return "null" if text is None else text


def _exists(cluster: Cluster, entity_type: str, name: str) -> bool:
    if entity_type == "topics":
        check_topic_name(name)
        return any(topic.name == name for topic in admin.list_topics(cluster))
    if entity_type in ("brokers", "broker-loggers"):
        return not name or any(str(row.broker_id) == name for row in cluster.describe_cluster().brokers)
    if entity_type == "client-metrics":
        return name in admin.list_config_resources(cluster, admin.CLIENT_METRICS)
    if any(group.group_id == name for group in admin_groups.list_groups(cluster)):
        return True
    with_configs = _groups_with_configs(cluster)
    return with_configs is None or name in with_configs


def _groups_with_configs(cluster: Cluster) -> list[str] | None:
    """The groups that have configs; None if the broker cannot list them."""
    try:
        return admin.list_config_resources(cluster, admin.GROUP)
    except errors.KafkaError as problem:
        if problem.code in (errors.UNSUPPORTED_VERSION, errors.CLUSTER_AUTHORIZATION_FAILED):
            return None
        raise


def _all_names(cluster: Cluster, entity_type: str) -> list[str]:
    if entity_type == "topics":
        return hash_order(topic.name for topic in admin.list_topics(cluster))
    if entity_type in ("brokers", "broker-loggers"):
        return [*(str(row.broker_id) for row in cluster.describe_cluster().brokers), ""]
    if entity_type == "client-metrics":
        return admin.list_config_resources(cluster, admin.CLIENT_METRICS)
    known = [group.group_id for group in admin_groups.list_groups(cluster)]
    return list(dict.fromkeys([*known, *(_groups_with_configs(cluster) or [])]))


def _entries(cluster: Cluster, entity_type: str, name: str, synonyms: bool, everything: bool) -> list[Any]:
    """Configs by name: those that were set for the resource, or all."""
    source = {
        "topics": TOPIC_SOURCE,
        "brokers": BROKER_SOURCE if name else BROKERS_SOURCE,
        "client-metrics": CLIENT_METRICS_SOURCE,
        "groups": GROUP_SOURCE,
    }.get(entity_type)
    if entity_type == "topics" and name:
        check_topic_name(name)
    if (entity_type == "brokers" and name) or entity_type == "broker-loggers":
        check_broker_id(name, entity_type)
    resource = (TYPES[entity_type], name)
    entries = admin.describe_configs(cluster, [resource], synonyms=synonyms)[resource]
    wanted = [entry for entry in entries if everything or source is None or entry.config_source == source]
    return sorted(wanted, key=lambda entry: str(entry.name))


def check_topic_name(name: str) -> None:
    from pykafkad.cluster.topic_names import why_invalid

    why = why_invalid(name)
    if why is not None:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION, why)
