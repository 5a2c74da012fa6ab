"""`pykafkad groups --reset-offsets` and `--delete-offsets`: moves and deletes a group's committed offsets."""

from __future__ import annotations

import csv

from pykafkad import errors
from pykafkad.tools import admin, admin_groups, failures, output, times
from pykafkad.tools.java import hash_order, partition_hash
from pykafkad.tools.options import Options, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pykafkad.net.client import Cluster
    from pykafkad.tools.admin import Partition

INACTIVE = ("Empty", "Dead")
LOOSE_QUOTE_LENGTH = 24  # longer texts are quoted in the CSV
LOWEST_SAFE = "-"  # and so are those with a character below this
Plan = dict["Partition", int]


def reset(cluster: Cluster, options: Options, group_ids: Sequence[str]) -> None:
    """Plan the reset of each group, carry it out if that is asked for, and print the plans."""
    plans: dict[str, Plan] = {}
    for group_id in group_ids:
        state = _state(cluster, group_id)
        if state in INACTIVE:
            plans[group_id] = _reset_group(cluster, options, group_id)
        else:
            output.line(
                f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, but the "
                f"current state is {state}."
            )
            plans[group_id] = {}
    ordered = {group_id: plans[group_id] for group_id in hash_order(plans)}
    if options.has("export"):
        output.line(export(ordered, with_group=len(options.values("group")) != 1))
    else:
        print_plans(ordered)


def _state(cluster: Cluster, group_id: str) -> str:
    try:
        return admin_groups.describe_group(cluster, group_id).state
    except errors.KafkaError as problem:
        if problem.code != errors.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


def _reset_group(cluster: Cluster, options: Options, group_id: str) -> Plan:
    with failures.Telling(failures.message_of):
        partitions = _scope(cluster, options, group_id)
        _check_exist(cluster, partitions)
    with failures.Telling(failures.wrapped):
        plan = Planner(cluster, options, group_id).plan(partitions)
    ordered = {key: plan[key] for key in hash_order(plan, partition_hash)}
    if options.has("execute") and not options.has("dry-run"):
        with failures.Telling(failures.message_of):
            _commit(cluster, group_id, ordered)
    return ordered


def _commit(cluster: Cluster, group_id: str, plan: Plan) -> None:
    codes = admin_groups.commit_offsets(cluster, group_id, plan)
    refused = [(key, code) for key, code in codes.items() if code]
    if refused:
        names = ", ".join(f"{topic}-{index}" for (topic, index), _ in refused)
        text = f"Failed altering group offsets for the following partitions: [{names}]"
        raise errors.KafkaError(refused[0][1], text)


def _scope(cluster: Cluster, options: Options, group_id: str) -> list[Partition]:
    if options.has("all-topics"):
        return list(admin_groups.committed_offsets(cluster, group_id))
    if options.has("topic"):
        return parse_topics(cluster, options.values("topic"))
    if not options.has("from-file"):
        raise Usage("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def parse_topics(cluster: Cluster, arguments: Iterable[str]) -> list[Partition]:
    """The partitions of `topic` and of `topic:0,1`."""
    found: list[Partition] = []
    whole = []
    for argument in arguments:
        if ":" in argument:
            found += parse_partitions(argument)
        else:
            whole.append(argument)
    for name, topic in admin.described(admin.describe_topics(cluster, whole)).items():
        found += [(name, row.index) for row in topic.partitions]
    return list(dict.fromkeys(found))


def parse_partitions(argument: str) -> list[Partition]:
    parts = argument.split(":")
    while parts and not parts[-1]:
        parts.pop()
    if len(parts) != 2:
        raise ValueError(f"Invalid topic arg '{argument}', expected topic name and partitions")
    found = []
    for text in parts[1].split(","):
        try:
            found.append((parts[0], int(text)))
        except ValueError:
            raise ValueError(f"Invalid partition '{text}' specified in topic arg '{argument}''") from None
    return found


def _check_exist(cluster: Cluster, partitions: Sequence[Partition]) -> None:
    names = sorted({topic for topic, _ in partitions})
    known = {
        (topic.name, row.index): row
        for topic in admin.described(admin.describe_topics(cluster, names)).values()
        for row in topic.partitions
    }
    missing = [f"{topic}-{index}" for topic, index in partitions if (topic, index) not in known]
    if missing:
        text = f'The partitions "{",".join(missing)}" do not exist'
        raise errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, text)
    leaderless = [f"{topic}-{index}" for topic, index in partitions if known[topic, index].leader is None]
    if leaderless:
        text = f'The partitions "{",".join(leaderless)}" have no leader'
        raise errors.KafkaError(errors.LEADER_NOT_AVAILABLE, text)


class Planner:
    """The new offset of each partition, by the one scenario that the options select."""

    def __init__(self, cluster: Cluster, options: Options, group_id: str) -> None:
        self._cluster = cluster
        self._options = options
        self._group_id = group_id

    def plan(self, partitions: Sequence[Partition]) -> Plan:
        scenarios: tuple[tuple[str, Callable[[Sequence[Partition]], Plan]], ...] = (
            ("to-offset", self._to_offset),
            ("to-earliest", lambda keys: self._log_offsets(dict.fromkeys(keys, admin.EARLIEST))),
            ("to-latest", self._ends),
            ("shift-by", self._shifted),
            ("to-datetime", self._to_datetime),
            ("by-duration", self._by_duration),
            ("from-file", self._from_file),
            ("to-current", self._to_current),
        )
        for name, scenario in scenarios:
            if self._options.has(name):
                return scenario(partitions)
        names = ", ".join(f"[{name}]" for name, _ in scenarios)
        raise Usage(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")

    def _log_offsets(self, wanted: Mapping[Partition, int]) -> Plan:
        found = {}
        for key, offset in admin.list_offsets(self._cluster, wanted).items():
            if isinstance(offset, errors.KafkaError):
                raise offset
            found[key] = offset
        return found

    def _ends(self, partitions: Iterable[Partition]) -> Plan:
        return self._log_offsets(dict.fromkeys(partitions, admin.LATEST))

    def _committed(self) -> Plan:
        found = admin_groups.committed_offsets(self._cluster, self._group_id)
        return {key: row.offset for key, row in found.items()}

    def _within_log(self, wanted: Plan) -> Plan:
        """Offsets before the start or after the end of the log are moved there, with a warning."""
        starts = self._log_offsets(dict.fromkeys(wanted, admin.EARLIEST))
        ends = self._ends(wanted)
        found = {}
        for key, offset in wanted.items():
            found[key] = min(max(offset, starts[key]), ends[key])
            if found[key] != offset:
                which = "higher than latest" if offset > found[key] else "lower than earliest"
                output.error(
                    f"WARN New offset ({offset}) is {which} offset for topic partition {key[0]}-{key[1]}. "
                    f"Value will be set to {found[key]}"
                )
        return found

    def _to_offset(self, partitions: Sequence[Partition]) -> Plan:
        return self._within_log(dict.fromkeys(partitions, int(self._options.values("to-offset")[0])))

    def _shifted(self, partitions: Sequence[Partition]) -> Plan:
        by, committed = self._options.integer("shift-by"), self._committed()
        for topic, index in partitions:
            if (topic, index) not in committed:
                raise ValueError(
                    f"Cannot shift offset for partition {topic}-{index} since there is no current committed "
                    "offset"
                )
        return self._within_log({key: committed[key] + by for key in partitions})

    def _to_datetime(self, partitions: Sequence[Partition]) -> Plan:
        return self._since(partitions, times.parse_datetime_ms(self._options.values("to-datetime")[0]))

    def _by_duration(self, partitions: Sequence[Partition]) -> Plan:
        return self._since(
            partitions, times.now_ms() - times.parse_duration_ms(self._options.text("by-duration"))
        )

    def _since(self, partitions: Sequence[Partition], timestamp: int) -> Plan:
        found = self._log_offsets(dict.fromkeys(partitions, timestamp))
        later = hash_order([key for key in partitions if found[key] == -1], partition_hash)
        for topic, index in later:
            output.line(
                f"\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known offset."
            )
        return found | self._ends(later) if later else found

    def _to_current(self, partitions: Sequence[Partition]) -> Plan:
        committed = self._committed()
        ends = self._ends([key for key in partitions if key not in committed])
        return {key: committed.get(key, ends.get(key, 0)) for key in partitions}

    def _from_file(self, _partitions: Sequence[Partition]) -> Plan:
        groups = self._options.values("group")
        plans = read_plans(self._options.values("from-file")[0], groups[0] if len(groups) == 1 else None)
        plan = plans.get(self._group_id)
        if plan is None:
            output.line(f"\nError: No reset plan for group {self._group_id} found")
            return {}
        return self._within_log(plan)


# -- the CSV of --export and --from-file


def read_plans(path: str, group_id: str | None) -> dict[str, Plan]:
    """topic,partition,offset for the one group; or group,topic,partition,offset."""
    plans: dict[str, Plan] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in _rows(path, csv.reader(file)):
            if not row:
                continue
            if group_id is not None and len(row) == 3:
                row = [group_id, *row]
            if len(row) != 4:
                raise ValueError(f"{path}: {','.join(row)}: group,topic,partition,offset is expected")
            try:
                plans.setdefault(row[0], {})[row[1], int(row[2])] = int(row[3])
            except ValueError:
                raise ValueError(f"{path}: {','.join(row)}: partition and offset are numbers") from None
    return plans


def _rows(path: str, reader: Iterable[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ValueError(f"{path}: no CSV in UTF-8: {problem}") from problem


def export(plans: Mapping[str, Plan], *, with_group: bool) -> str:
    lines = []
    for group_id, plan in plans.items():
        for (topic, index), offset in plan.items():
            cells = [quoted(topic), str(index), str(offset)]
            lines.append(",".join([quoted(group_id), *cells] if with_group else cells) + "\n")
    return "".join(lines)


def quoted(text: str) -> str:
    """A text as the CSV library of Kafka's tool writes it: quoted if it is long or may need it."""
    if len(text) <= LOOSE_QUOTE_LENGTH and text and all(character >= LOWEST_SAFE for character in text):
        return text
    return '"' + text.replace('"', '""') + '"'


def print_plans(plans: Mapping[str, Plan]) -> None:
    group_width = max([15, *map(len, plans)])
    topic_width = max([15, *(len(topic) for plan in plans.values() for topic, _ in plan)])

    def show(group_id: str, topic: str, partition: str, offset: str) -> None:
        output.text(f"\n{group_id:<{group_width}} {topic:<{topic_width}} {partition:<10} {offset}")

    if plans:
        show("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    for group_id, plan in plans.items():
        for (topic, index), offset in plan.items():
            show(group_id, topic, str(index), str(offset))
    output.line()


# -- deleting offsets


def delete_offsets(cluster: Cluster, options: Options) -> None:
    group_id = options.text("group")
    results: dict[Partition, str] = {}
    partitions = _to_delete(cluster, options.values("topic"), results)
    code, codes = admin_groups.delete_offsets(cluster, group_id, partitions)
    top = code or next((found for found in codes.values() if found), 0)
    for key in partitions:
        found = code or codes.get(key, 0)
        results[key] = f"Error: {_fault(found)}" if found else "Successful"
    _print_outcome(group_id, top)
    width = max([15, *(len(topic) for topic, _ in results)])
    output.text(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for topic, index in sorted(results, key=lambda key: f"{key[0]}{key[1]}"):
        shown = str(index) if index >= 0 else "-"
        output.text(f"\n{topic:<{width}} {shown:<10} {results[topic, index]:<15}")
    output.line()


def _to_delete(cluster: Cluster, topics: Iterable[str], results: dict[Partition, str]) -> list[Partition]:
    """The partitions that the options name; topics that do not exist go to `results` at once."""
    found: list[Partition] = []
    whole = []
    for argument in topics:
        if ":" in argument:
            found += parse_partitions(argument)
        else:
            whole.append(argument)
    for name, topic in admin.describe_topics(cluster, whole).items():
        if isinstance(topic, errors.KafkaError):
            results[name, -1] = f"Error: {failures.described(topic)}"
        else:
            found += [(name, row.index) for row in topic.partitions]
    return list(dict.fromkeys(found))


def _fault(code: int) -> str:
    return failures.described(errors.KafkaError(code))


def _print_outcome(group_id: str, code: int) -> None:
    if not code:
        output.line(f"Request succeeded for deleting offsets from group {group_id}.")
    elif code in (
        errors.INVALID_GROUP_ID,
        errors.GROUP_ID_NOT_FOUND,
        errors.GROUP_AUTHORIZATION_FAILED,
        errors.NON_EMPTY_GROUP,
    ):
        output.line(f"\nError: {errors.MESSAGES[code]}")
    elif code in (
        errors.GROUP_SUBSCRIBED_TO_TOPIC,
        errors.TOPIC_AUTHORIZATION_FAILED,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ):
        output.line("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        output.line(f"\nError: Encountered some unknown error: {errors.NAMES[code]}")
