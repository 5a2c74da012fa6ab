"""`pykafkad groups`: what kafka-consumer-groups does, and kafka-groups' listing.

With one of --all-types, --group-type, --protocol, --consumer, --share or --streams, `--list` prints the table of
kafka-groups; without, the ids of the consumer groups as kafka-consumer-groups does. As there, an error of the broker is
printed to standard output and the exit code stays 0.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.tools import admin, admin_groups, failures, groups_describe, groups_reset, output
from pykafkad.tools.java import hash_order
from pykafkad.tools.options import (
    LONG,
    Option,
    OptionError,
    Options,
    Usage,
    bootstrap,
    flag,
    json_flag,
    optional,
    run,
    value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.net.client import Cluster

ABOUT = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or "
    "reset consumer group offsets."
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCOPES = ("group", "all-groups")
GROUP_ACTIONS = ("list", "describe", "delete", "reset-offsets")
RESETS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
ALL_KINDS = ("all-types", "group-type", "protocol", "consumer", "share", "streams")
CONSUMER_PROTOCOLS = ("consumer", "")
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
ALL_STATES = (*STATES, "NotReady")
TYPES = {"classic": "Classic", "consumer": "Consumer", "share": "Share", "streams": "Streams"}

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("command-config", "properties file", "Configs of the client."),
    value("group", "consumer group", "The group that is meant; may be given again."),
    flag("all-groups", "All consumer groups are meant."),
    value("topic", "topic", "The topic whose offsets are meant, or TOPIC:0,1,2; may be given again."),
    flag("all-topics", "With --reset-offsets: all topics of the group."),
    flag("list", "List the groups."),
    flag("describe", "Show a group's offsets and how far it is behind."),
    flag("delete", "Delete groups and what they have committed."),
    value("timeout", "timeout (ms)", "How long a call may take.", kind=LONG, default="30000"),
    flag("reset-offsets", "Set what an inactive group has committed. Needs one --to-…, --shift-by, …"),
    flag("delete-offsets", "Delete what a group has committed for topics."),
    flag("dry-run", "With --reset-offsets: show what would be, which is the default."),
    flag("execute", "With --reset-offsets: do it."),
    flag("export", "With --reset-offsets: print the plan as CSV, for --from-file."),
    value("to-offset", "offset", "Reset to this offset.", kind=LONG),
    value("from-file", "path to CSV file", "Reset to what the file says: topic,partition,offset."),
    value("to-datetime", "datetime", "Reset to the first record since YYYY-MM-DDThh:mm:ss.sss."),
    value("by-duration", "duration", "Reset to the first record of this long ago: PnDTnHnMnS."),
    flag("to-earliest", "Reset to the first offset."),
    flag("to-latest", "Reset to the end."),
    flag("to-current", "Reset to what is committed already."),
    value("shift-by", "number-of-offsets", "Reset by so many records, back when negative.", kind=LONG),
    flag("members", "With --describe: the members.", available_with=("describe",)),
    flag("verbose", "With --describe: more of it.", available_with=("describe",)),
    flag("offsets", "With --describe: offsets and lag, which is the default.", available_with=("describe",)),
    optional(
        "state",
        "",
        "With --describe: the state. With --list: states too, or only groups in these (a,b).",
        available_with=("describe", "list"),
    ),
    optional(
        "type",
        "",
        "With --list: types too, or only groups of these (classic,consumer).",
        available_with=("list",),
    ),
    value("validate-regex", "regex", "Say whether a regular expression is one by the RE2 syntax."),
    flag(
        "all-types",
        "With --list: groups of all types, with type and protocol (kafka-groups).",
        available_with=("list",),
    ),
    value(
        "group-type",
        "type",
        "With --list: groups of this type (classic, consumer, share, streams).",
        choices=tuple(TYPES),
    ),
    value("protocol", "protocol", "With --list: groups of this protocol."),
    flag("consumer", "With --list: groups of any kind of consumers.", available_with=("list",)),
    flag("share", "With --list: share groups.", available_with=("list",)),
    flag("streams", "With --list: streams groups.", available_with=("list",)),
    json_flag("list", "describe"),
)
JSON_EXAMPLE = """\
{"groups": [{"group": "billing", "type": "Classic", "state": "Stable", "assignor": "range",
  "coordinator": {"node_id": 1, "host": "localhost", "port": 9092}, "group_epoch": null,
  "target_assignment_epoch": null,
  "members": [{"member_id": "c-1", "instance_id": null, "client_id": "c", "host": "/127.0.0.1", "epoch": null,
    "assignment": [{"topic": "orders", "partition": 0}], "target_assignment": null}],
  "offsets": [{"topic": "orders", "partition": 0, "committed_offset": 5, "leader_epoch": 0, "log_end_offset": 7,
    "lag": 2, "member_id": "c-1"}]}]}
"""
JSON_NOTE = (
    "--members, --offsets and --state select; without one there is all of it. --list has group, type, state and "
    "protocol_type, of all types of groups with --all-types and the like. An offset that nobody committed is null. "
    "A group that does not exist is the error GROUP_ID_NOT_FOUND."
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json)


def body(options: Options) -> int:
    _check(options)
    if options.has("validate-regex"):
        return validate_expression(options.text("validate-regex"))
    if options.has_any(ALL_KINDS):
        return _list_all_kinds(options)
    try:
        cluster = admin.connect(options, timeout_ms=options.integer("timeout"))
        try:
            _act(cluster, options)
        finally:
            cluster.close()
    except (ValueError, ClientError) as problem:
        raise Usage(failures.message_of(problem)) from problem
    except (errors.KafkaError, failures.Told, OptionError, OSError) as problem:
        output.line(f"\nError: Executing consumer group command failed due to {failures.described(problem)}")
    return 0


def _act(cluster: Cluster, options: Options) -> None:
    if options.has("list"):
        list_groups(cluster, options)
    elif options.has("describe"):
        groups_describe.describe(cluster, options, _chosen(cluster, options))
    elif options.has("delete"):
        delete_groups(cluster, _chosen(cluster, options))
    elif options.has("reset-offsets"):
        groups_reset.reset(cluster, options, _chosen(cluster, options))
    else:
        groups_reset.delete_offsets(cluster, options)


def _chosen(cluster: Cluster, options: Options) -> list[str]:
    if not options.has("all-groups"):
        return options.values("group")
    with failures.Telling(failures.wrapped):
        rows = admin_groups.list_groups(cluster, protocols=CONSUMER_PROTOCOLS)
    return [row.group_id for row in rows]


def as_json(options: Options) -> object:
    _check(options)
    cluster = admin.connect(options, timeout_ms=options.integer("timeout"))
    try:
        if options.has("describe"):
            return {"groups": groups_describe.fields(cluster, options, _chosen(cluster, options))}
        all_kinds = options.has_any(ALL_KINDS)
        rows = _rows_of_all_kinds(cluster, options) if all_kinds else _rows(cluster, options)
        return {"groups": [_listed_fields(row) for row in rows]}
    finally:
        cluster.close()


def _check(options: Options) -> None:
    if options.has("describe"):
        _need_scope(options, "describe")
        views = [name for name in ("members", "offsets", "state") if options.has(name)]
        if len(views) > 1:
            raise Usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if options.value("state") is not None:
            raise Usage("Option [describe] does not take a value for [state]")
    if options.has("delete"):
        _need_scope(options, "delete")
        if options.has("topic"):
            raise Usage("The consumer does not support topic-specific offset deletion from a consumer group.")
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise Usage("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.has("reset-offsets"):
        _check_reset(options)
    options.exclude("group", ("all-groups",))
    options.exclude("group", ("list",))
    options.exclude("topic", ("list", "describe"))
    if sum(options.has(action) for action in ACTIONS) != 1:
        shown = ", ".join(f"--{action}" for action in ACTIONS)
        raise Usage(f"Command must include exactly one action: {shown}")


def _need_scope(options: Options, action: str) -> None:
    if not options.has_any(SCOPES):
        raise Usage(f"Option [{action}] takes one of these options: [group], [all-groups]")


def _check_reset(options: Options) -> None:
    if options.has("dry-run") and options.has("execute"):
        raise Usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.has("dry-run") and not options.has("execute"):
        output.error(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
            "command will require either --dry-run or --execute to be specified. You should add the "
            "--dry-run option explicitly if you are scripting this command and want to keep the current "
            "default behavior without prompting."
        )
    _need_scope(options, "reset-offsets")
    for name in RESETS:
        options.exclude(name, [other for other in RESETS if other != name])


# -- listing


def _rows(cluster: Cluster, options: Options) -> list[admin_groups.Listing]:
    states = parse_states(options.value("state") or "")
    types = parse_types(options.value("type") or "")
    return admin_groups.list_groups(cluster, states=states, types=types, protocols=CONSUMER_PROTOCOLS)


def _listed_fields(row: admin_groups.Listing) -> dict[str, object]:
    return {
        "group": row.group_id,
        "type": row.type or None,
        "state": row.state or None,
        "protocol_type": row.protocol_type,
    }


def list_groups(cluster: Cluster, options: Options) -> None:
    rows = _rows(cluster, options)
    columns = [("GROUP", [row.group_id for row in rows])]
    if options.has("type"):
        columns.append(("TYPE", [row.type or "Unknown" for row in rows]))
    if options.has("state"):
        columns.append(("STATE", [row.state or "Unknown" for row in rows]))
    if len(columns) == 1:
        for row in rows:
            output.line(row.group_id)
        return
    width = max([15, *(len(row.group_id) for row in rows)]) + 10
    for line in zip(*([title, *cells] for title, cells in columns), strict=True):
        output.line(" ".join([f"{line[0]:<{width}}", *(f"{cell:<20}" for cell in line[1:])]))


def parse_states(text: str) -> list[str]:
    """States in any case; ValueError for those that a consumer group cannot have."""
    if not text:
        return []
    known = {state.lower(): state for state in STATES}
    wanted = [known.get(part.strip().lower()) for part in text.split(",")]
    found = [state for state in wanted if state is not None]
    if len(found) < len(wanted):
        raise ValueError(f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")
    return found


def parse_types(text: str) -> list[str]:
    if not text:
        return []
    wanted = [part.strip() for part in text.lower().split(",")]
    if not {"classic", "consumer"}.issuperset(wanted):
        raise ValueError(f"Invalid types list '{text}'. Valid types are: Classic, Consumer")
    return [TYPES[part] for part in wanted]


def _list_all_kinds(options: Options) -> int:
    """The listing of kafka-groups, whose errors change the exit code."""
    cluster = admin.connect(options)
    try:
        rows = _rows_of_all_kinds(cluster, options)
    except (errors.KafkaError, OSError) as problem:
        output.line(f"Error while executing groups command : {failures.message_of(problem)}")
        return 1
    finally:
        cluster.close()
    lines = [(row.group_id, row.type, row.protocol_type) for row in rows]
    width = max([20, *(len(cell) for line in lines for cell in line)])
    output.line(" ".join(f"{title:<{width}}" for title in ("GROUP", "TYPE", "PROTOCOL")))
    for line in lines:
        output.line("".join(f"{cell:<{width}} " for cell in line))
    return 0


def _rows_of_all_kinds(cluster: Cluster, options: Options) -> list[admin_groups.Listing]:
    kind = options.value("group-type")
    if kind is not None and kind.lower() not in TYPES:
        raise ValueError("--group-type must be a valid group type.")
    for name in ("consumer", "share", "streams"):
        options.exclude(name, [other for other in ALL_KINDS if other not in (name, "all-types")])
    return [row for row in admin_groups.list_groups(cluster) if _is_wanted(row, options)]


def _is_wanted(row: admin_groups.Listing, options: Options) -> bool:
    kind, protocol = options.value("group-type"), options.value("protocol")
    if kind is not None and row.type.lower() != kind.lower():
        return False
    if protocol is not None and row.protocol_type != protocol:
        return False
    if options.has("consumer"):
        return row.protocol_type in CONSUMER_PROTOCOLS or row.type == "Consumer"
    if options.has("share"):
        return row.type == "Share"
    return not options.has("streams") or row.type == "Streams"


# -- deleting


def delete_groups(cluster: Cluster, group_ids: Sequence[str]) -> None:
    deleted, failed = [], {}
    for group_id in dict.fromkeys(group_ids):
        try:
            admin_groups.delete_group(cluster, group_id)
            deleted.append(group_id)
        except errors.KafkaError as problem:
            failed[group_id] = problem
    shown = ", ".join(f"'{group_id}'" for group_id in hash_order(deleted))
    if not failed:
        output.line(f"Deletion of requested consumer groups ({shown}) was successful.")
        return
    output.line("\nError: Deletion of some consumer groups failed:")
    for group_id in hash_order(failed):
        output.line(
            f"* Group '{group_id}' could not be deleted due to: {failures.described(failed[group_id])}"
        )
    if deleted:
        output.line(f"\nThese consumer groups were deleted successfully: {shown}")


def validate_expression(expression: str) -> int:
    """Whether the broker would accept it in a subscription."""
    from pykafkad.pure.regex.parsing import InvalidPattern, parse

    said = "is valid"
    try:
        parse(expression)
    except InvalidPattern as problem:
        said = f"is invalid: {problem}"
    output.line(f"The regular expression `{expression}` {said}.")
    return 0
