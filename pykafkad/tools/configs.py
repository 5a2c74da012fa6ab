"""`pykafkad configs`: what kafka-configs does.

Owns the options and the rules about their combinations. The requests about resources (topics, brokers, loggers, client
metrics, groups) are in configs_resources, those about users, clients and addresses in configs_quotas.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.tools import admin, configs_quotas, configs_resources, failures, output, settings
from pykafkad.tools.options import (
    Option,
    OptionError,
    Options,
    Usage,
    bootstrap,
    flag,
    json_flag,
    run,
    value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.net.client import Cluster

ABOUT = (
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
    "client-metrics or group"
)
RESOURCES = ("topics", "brokers", "broker-loggers", "client-metrics", "groups")
ENTITY_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
WITH_DEFAULTS = ("users", "clients", "brokers", "ips")
# option -> entity type
NAMED = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULTS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("bootstrap-controller", "controller to connect to", "Controllers to start from."),
    value("command-config", "properties file", "Configs of the client."),
    flag("alter", "Change configs."),
    flag("describe", "Show configs that were set."),
    flag("all", "With --describe: all configs, the defaults too."),
    value("entity-type", "", "What the configs are of: " + "/".join(ENTITY_TYPES), choices=ENTITY_TYPES),
    value("entity-name", "", "Which topic, client id, user, broker id, address, subscription or group."),
    flag("entity-default", "The default of clients, users, brokers or ips."),
    value(
        "add-config",
        "",
        "Configs to set, 'k1=v1,k2=[v1,v2],k3=v3': square brackets around values with commas. The keys are "
        "those of the entity type, which --describe --all lists; of users and clients: producer_byte_rate, "
        "consumer_byte_rate, request_percentage, controller_mutation_rate, and of users SCRAM-SHA-256 and "
        "SCRAM-SHA-512 ('[iterations=8192,password=secret]'); of ips: connection_creation_rate.",
    ),
    value("add-config-file", "", "A properties file with configs to set."),
    value("delete-config", "", "Keys to delete 'k1,k2'.", separator=","),
    value("topic", "", "The topic's name."),
    value("client", "", "The client's id."),
    flag("client-defaults", "The defaults of all clients."),
    value("user", "", "The user's principal name."),
    flag("user-defaults", "The defaults of all users."),
    value("broker", "", "The broker's id."),
    flag("broker-defaults", "The defaults of all brokers."),
    value("broker-logger", "", "The id of the broker whose log levels are meant."),
    flag("ip-defaults", "The defaults of all addresses."),
    value("ip", "", "The address."),
    value("group", "", "The group's id."),
    value("client-metrics", "", "The name of the client metrics subscription."),
    json_flag("describe"),
)
JSON_EXAMPLE = """\
{"configs": [{"entity": {"topics": "orders"}, "entries": [{"name": "retention.ms", "value": "5000",
  "source": "DYNAMIC_TOPIC_CONFIG", "sensitive": false, "synonyms": [{"name": "retention.ms", "value": "5000",
    "source": "DYNAMIC_TOPIC_CONFIG"}]}]}]}
"""
JSON_NOTE = (
    "The entity has one entity type, or users and clients; a default one is called null. Quotas have the source "
    "QUOTA, and SCRAM credentials SCRAM_CREDENTIAL with their iterations as the value. A sensitive value is null."
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json)


def body(options: Options) -> int:
    try:
        types, names = entities(options)
        check(options, types, names)
        cluster = _connect(options)
        try:
            if options.has("alter") and len(types) != len(names):
                raise ValueError("An entity name must be specified for every entity type")
            (alter if options.has("alter") else describe)(cluster, options, types, names)
        finally:
            cluster.close()
        return 0
    except (ValueError, OptionError, ClientError) as problem:
        output.error(failures.message_of(problem))
    except (errors.KafkaError, OSError) as problem:
        if isinstance(problem, errors.KafkaError) and problem.code == errors.UNSUPPORTED_VERSION:
            output.error(failures.message_of(problem))
        else:
            shown = " ".join(options.arguments)
            output.error(f"Error while executing config command with args '{shown}'")
            output.error(failures.described(problem))
    return 1


def as_json(options: Options) -> object:
    types, names = entities(options)
    check(options, types, names)
    cluster = _connect(options)
    try:
        if types[0] in RESOURCES:
            name = names[0] if names else None
            return {"configs": configs_resources.fields(cluster, types[0], name, options.has("all"))}
        return {"configs": configs_quotas.fields(cluster, types, names)}
    finally:
        cluster.close()


def _connect(options: Options) -> Cluster:
    if not options.has("bootstrap-controller"):
        return admin.connect(options)
    configs = settings.load(options.text("command-config")) if options.has("command-config") else {}
    settings.check_security(configs)
    return admin.connect_to(options.text("bootstrap-controller"), configs)


def entities(options: Options) -> tuple[list[str], list[str]]:
    """The types and names of the entities that the options name; the name of a default is empty."""
    named = [name for name in NAMED if options.has(name)]
    defaults = [name for name in DEFAULTS if options.has(name)]
    types = options.values("entity-type") + [NAMED[name] for name in named]
    types += [DEFAULTS[name] for name in defaults]
    given = iter(options.values("entity-name"))
    names = []
    for name in options.order:
        if name == "entity-name":
            names.append(next(given))
        elif name == "entity-default":
            names.append("")
    return types, names + [options.text(name) for name in named] + [""] * len(defaults)


def check(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    """Which options may be combined: Kafka's rules, in its order."""
    if options.has("alter") == options.has("describe"):
        raise Usage("Command must include exactly one action: --describe, --alter")
    options.exclude("describe", ("add-config", "delete-config"))
    distinct = list(dict.fromkeys(types))
    if len(distinct) < len(types):
        again = list(types)
        for name in distinct:
            again.remove(name)
        raise ValueError(f"Duplicate entity type(s) specified: {','.join(again)}")
    for name in types:
        if name not in ENTITY_TYPES:
            raise ValueError(
                f"Invalid entity type {name}, the entity type must be one of {', '.join(ENTITY_TYPES)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise ValueError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise ValueError("Only 'users' and 'clients' entity types may be specified together")
    if options.has_any(("entity-name", "entity-type", "entity-default")) and options.has_any(
        (*NAMED, *DEFAULTS)
    ):
        raise ValueError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise ValueError("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    _check_names(options, types, names)
    if options.has("describe"):
        _check_describe(options, types, names)
    else:
        _check_alter(options, types, names)


def _check_names(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if not any(names):
        return
    if "brokers" in types or "broker-loggers" in types:
        for option in ("entity-name", "broker", "broker-logger"):
            text = options.value(option) if options.has(option) else None
            if text is not None and not configs_resources.is_broker_id(text):
                raise ValueError(
                    f"The entity name for {types[0]} must be a valid integer broker id, but it is: {text}"
                )
    if "ips" in types:
        for option in ("entity-name", "ip"):
            text = options.value(option) if options.has(option) else None
            if text is not None and not configs_quotas.is_address(text):
                raise ValueError(
                    f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: {text}"
                )


def _check_describe(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    shown = ",".join(types)
    if options.has("entity-default") and not set(types) & set(WITH_DEFAULTS):
        raise ValueError(f"--entity-default must not be specified with --describe of {shown}")
    if "broker-loggers" in types and not any(names):
        raise ValueError(f"An entity name must be specified with --describe of {shown}")


def _check_alter(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if set(types) & set(WITH_DEFAULTS):
        if not names:
            raise ValueError(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers "
                "or ips"
            )
    elif not any(names):
        raise ValueError(f"An entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise ValueError("Only one of --add-config or --add-config-file must be specified")
    if not options.has_any(("add-config", "add-config-file", "delete-config")):
        raise ValueError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )


def alter(cluster: Cluster, options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    added = configs_resources.parse_added(options)
    deleted = [key.strip() for key in options.values("delete-config")]
    if types[0] in RESOURCES:
        configs_resources.alter(cluster, types[0], names[0], added, deleted)
    else:
        configs_quotas.alter(cluster, types, names, added, deleted)
    if names[0]:
        output.line(f"Completed updating config for {types[0][:-1]} {names[0]}.")
    else:
        output.line(f"Completed updating default config for {types[0]} in the cluster.")


def describe(cluster: Cluster, options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    if types[0] in RESOURCES:
        name = names[0] if names else None
        configs_resources.describe(cluster, types[0], name, options.has("all"))
    else:
        configs_quotas.describe(cluster, types, names)
