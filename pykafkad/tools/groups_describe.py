"""`pykafkad groups --describe`: offsets and lag, members, state; the tables of kafka-consumer-groups, or JSON."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.tools import admin, admin_groups, failures, output
from pykafkad.tools.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafkad.net.client import Cluster
    from pykafkad.tools.admin import Partition
    from pykafkad.tools.admin_groups import Committed, Description, Member

MISSING = "-"
NOTE = 15  # the smallest width of most columns
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
Row = list[str]


def describe(cluster: Cluster, options: Options, group_ids: Sequence[str]) -> None:
    verbose = options.has("verbose")
    groups = _described(cluster, group_ids)
    if options.has("members"):
        for group in groups:
            print_members(group, verbose)
    elif options.has("state"):
        for group in groups:
            print_state(group, verbose)
    else:
        with failures.Telling(failures.wrapped):
            tables = [(group, positions(cluster, group)) for group in groups]
        for group, found in tables:
            print_offsets(group, [one.cells(group.group_id) for one in found], verbose)


def _described(cluster: Cluster, group_ids: Sequence[str]) -> list[Description]:
    return [
        admin_groups.describe_group(cluster, group_id) for group_id in sorted(set(group_ids), key=java_order)
    ]


def java_order(text: str) -> bytes:
    """Java compares strings by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def is_shown(group: Description, count: int) -> bool:
    """Whether there is a table to show; the message for a group without one is printed here."""
    if group.state == "Dead":
        output.line(f"\nError: Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        output.error(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING:
        output.error(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    elif group.state != "Stable":
        raise errors.KafkaError(
            errors.UNKNOWN_SERVER_ERROR,
            f"Expected a valid consumer group state, but found '{group.state}'.",
        )
    return group.state != "Dead" and count > 0


# -- offsets


class Position:
    """How far a group is in a partition. What is not known, or there is not, is None."""

    __slots__ = ("committed", "end", "lag", "member", "partition")

    def __init__(
        self, partition: Partition, committed: Committed | None, end: int | None, member: Member | None
    ) -> None:
        self.partition = partition
        self.committed = committed
        self.end = end
        self.lag = None if committed is None or end is None else end - committed.offset
        self.member = member

    def cells(self, group_id: str) -> Row:
        """GROUP … CLIENT-ID"""
        topic, index = self.partition
        known, member = self.committed, self.member
        epoch, offset = (known.leader_epoch, known.offset) if known is not None else (None, None)
        owner = [member.id, member.host, member.client_id] if member is not None else [MISSING] * 3
        return [group_id, topic, str(index), *map(_cell, (epoch, offset, self.end, self.lag)), *owner]


def positions(cluster: Cluster, group: Description) -> list[Position]:
    """First the partitions that have a member, the members with the most of them first."""
    committed = admin_groups.committed_offsets(cluster, group.group_id)
    members = [member for member in group.members if member.assignment]
    members.sort(key=lambda member: -len(member.assignment))
    assigned = {partition for member in members for partition in member.assignment}
    found: list[Position] = []
    for member in members:
        found += _positions(cluster, member.assignment, committed, member)
    rest = [partition for partition in committed if partition not in assigned]
    return found + (_positions(cluster, rest, committed, None) if rest else [])


def _positions(
    cluster: Cluster,
    partitions: Sequence[Partition],
    committed: dict[Partition, Committed],
    member: Member | None,
) -> list[Position]:
    ends = log_ends(cluster, partitions)
    ordered = sorted(partitions, key=lambda key: (java_order(key[0]), key[1]))
    return [Position(key, committed.get(key), ends.get(key), member) for key in ordered]


def log_ends(cluster: Cluster, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """The log end offset of each partition that has a leader. If a topic does not exist, its error is raised."""
    topics = admin.described(admin.describe_topics(cluster, sorted({topic for topic, _ in partitions})))
    led = {
        (topic.name, row.index)
        for topic in topics.values()
        for row in topic.partitions
        if row.leader is not None
    }
    wanted = {key: admin.LATEST for key in partitions if key in led}
    found = {}
    for key, offset in admin.list_offsets(cluster, wanted).items():
        if isinstance(offset, errors.KafkaError):
            raise offset
        found[key] = offset
    return found


def _cell(number: int | None) -> str:
    return MISSING if number is None else str(number)


def print_offsets(group: Description, rows: list[Row], verbose: bool) -> None:
    if not is_shown(group, len(rows)):
        return
    titles = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    titles += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    wide = {0, 1, 7, 8}  # columns that are as wide as their contents
    widths = [max(NOTE, *(len(row[at]) for row in rows)) if at in wide else NOTE for at in range(len(titles))]
    widths[2], widths[9] = 10, 0
    columns = [at for at in range(len(titles)) if verbose or at != 3]
    for row in (titles, *rows):
        output.text("\n" + " ".join(f"{row[at]:<{widths[at]}}" for at in columns))
    output.line()


# -- members


def print_members(group: Description, verbose: bool) -> None:
    """As in Kafka, the titles are printed even if there is nothing to show."""
    is_shown(group, len(group.members))
    members = group.members if group.state != "Dead" else []
    kinds = {member.upgraded for member in members}
    titles = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows = [[*_identity(group, member), str(len(member.assignment))] for member in members]
    minimums = [15, 15, 17, 15, 15]
    widths = [max([low, *(len(row[at]) for row in rows)]) for at, low in enumerate(minimums)] + [15]
    has_instances = any(member.instance_id for member in members)
    columns = [at for at in range(len(titles)) if has_instances or at != 2]
    more, more_widths = _verbose_columns(group, members, {True, False} <= kinds) if verbose else ([], [])
    output.line()
    for at, row in enumerate((titles, *rows)):
        output.text("".join(f"{row[column]:<{widths[column]}} " for column in columns))
        if verbose:
            output.text(
                " ".join(f"{cell:<{width}}" for cell, width in zip(more[at], more_widths, strict=True))
            )
        output.line()


def _identity(group: Description, member: Member) -> Row:
    return [group.group_id, member.id, member.instance_id or "", member.host, member.client_id]


def _verbose_columns(
    group: Description, members: Sequence[Member], migrating: bool
) -> tuple[list[Row], list[int]]:
    """The additional columns of the titles and of each member, and their widths."""
    rows = [["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]]
    for member in members:
        upgraded = MISSING if member.upgraded is None else str(member.upgraded).lower()
        rows.append(
            [
                _cell(member.epoch),
                assignment_text(member.assignment),
                _cell(group.target_epoch),
                assignment_text(member.target or []),
                upgraded,
            ]
        )
    widths = [15, 20, 15, 20, 0]
    for at in (1, 3):
        widths[at] = max([widths[at], *(len(row[at]) for row in rows[1:])])
    if not migrating:
        rows = [row[:4] for row in rows]
    return rows, widths[: len(rows[0])]


def assignment_text(partitions: Iterable[Partition]) -> str:
    """`topic:0,1;other:2`"""
    grouped = admin.grouped(partitions)
    shown = sorted(f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in grouped.items())
    return ";".join(shown) or MISSING


# -- state


def print_state(group: Description, verbose: bool) -> None:
    if not is_shown(group, 1):
        return
    node_id, host, port = group.coordinator
    coordinator = f"{host}:{port}  ({node_id})"
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [group.group_id, coordinator, group.assignor or MISSING, group.state]
    widths = [max(15, len(group.group_id)), max(25, len(coordinator)), 20, 20]
    if verbose:
        titles += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_cell(group.epoch), _cell(group.target_epoch)]
        widths += [15, 25]
    titles.append("#MEMBERS")
    row.append(str(len(group.members)))
    for line in (titles, row):
        cells = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=False)]
        output.text("\n" + " ".join([*cells, line[-1]]))
    output.line()


# -- as JSON


def fields(cluster: Cluster, options: Options, group_ids: Sequence[str]) -> list[dict[str, object]]:
    """All of each group, or what --members, --offsets or --state select."""
    views = [name for name in ("members", "offsets", "state") if options.has(name)] or ["members", "offsets"]
    found = []
    for group in _described(cluster, group_ids):
        if group.state == "Dead":
            raise errors.KafkaError(
                errors.GROUP_ID_NOT_FOUND, f"Consumer group '{group.group_id}' does not exist."
            )
        shown = _state_fields(group)
        if "members" in views:
            shown["members"] = [_member_fields(member) for member in group.members]
        if "offsets" in views:
            shown["offsets"] = [_position_fields(one) for one in positions(cluster, group)]
        found.append(shown)
    return found


def _state_fields(group: Description) -> dict[str, object]:
    node_id, host, port = group.coordinator
    return {
        "group": group.group_id,
        "type": "Classic" if group.epoch is None else "Consumer",
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": {"node_id": node_id, "host": host, "port": port},
        "group_epoch": group.epoch,
        "target_assignment_epoch": group.target_epoch,
    }


def _member_fields(member: Member) -> dict[str, object]:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "assignment": _partition_fields(member.assignment),
        "target_assignment": None if member.target is None else _partition_fields(member.target),
    }


def _partition_fields(partitions: Iterable[Partition]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": index} for topic, index in sorted(partitions)]


def _position_fields(position: Position) -> dict[str, object]:
    topic, index = position.partition
    known = position.committed
    return {
        "topic": topic,
        "partition": index,
        "committed_offset": None if known is None else known.offset,
        "leader_epoch": None if known is None else known.leader_epoch,
        "log_end_offset": position.end,
        "lag": position.lag,
        "member_id": None if position.member is None else position.member.id,
    }
