"""What a failed test's report says about its brokers: what they hold, what their groups are like, what they were asked
and logged.

Owns the choice of what is shown, and its bounds. A broker of the test's own is shown whole. Of one that is shared only
what belongs to this test is: records that were written since it began, groups that read them, log lines since then.
A broker that does not answer is shown by its log alone, and a report that cannot be made says so: it never hides the
failure that it is about.
"""

from __future__ import annotations

import os
import re
import time

from pykafkad.testing.data import Span, spans_of
from pykafkad.testing.groups import Group, committed, look_at
from pykafkad.testing.operations import CLIENT_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.net.client import Cluster
    from pykafkad.testing.broker import Broker
    from pykafkad.tools.admin import Partition

ANSWER_S = 2.0
TOPICS_MAX, GROUPS_MAX = 20, 20
RECORDS_SHOWN = 3  # of a partition
LOG_LINES_SHOWN = 50
VALUE_LETTERS = 80

# A line of the broker's log about a request, at the level debug.
REQUEST_LINE = re.compile(r"\[\S+ (\S+)\] DEBUG \[requests\] (.*)")

Section = tuple[str, str]


class Watched:
    """A broker, and when the test began with it."""

    def __init__(self, broker: Broker, shared: bool) -> None:
        self.broker = broker
        self.shared = shared
        self.since_ms = time.time_ns() // 1_000_000 if shared else 0
        self._log_bytes = log_bytes(broker)

    def log_lines(self) -> list[str]:
        """What was logged since then."""
        try:
            with open(self.broker.log_path, "rb") as file:
                file.seek(self._log_bytes)
                return file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ["it is gone: the broker was closed"]


def log_bytes(broker: Broker) -> int:
    try:
        return os.path.getsize(broker.log_path)
    except FileNotFoundError:
        return 0


def sections(watched: Watched) -> list[Section]:
    broker = watched.broker
    name = f"kafka {broker.bootstrap_servers}"
    lines = watched.log_lines()  # before we ask for anything
    found: list[Section] = []
    if broker.running and not broker.paused:
        try:
            found += asked(watched, name)
        except Exception as problem:  # whatever it is, the test's own failure is what matters
            found.append((f"{name}: topics and groups", f"they could not be asked for: {problem}"))
    else:
        found.append((name, "paused" if broker.paused else "not running"))
    requests, others = sorted_lines(lines)
    for what, some in (("requests", requests), ("log of this test", others)):
        if some:
            found.append((f"{name}: {what}", "\n".join(last(some))))
    return found


def sorted_lines(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """The requests of the test's clients, each with its time of day, and the other lines of the log."""
    requests, others = [], []
    for line in lines:
        request = REQUEST_LINE.fullmatch(line)
        if request is None:
            others.append(line)
        elif f'"{CLIENT_ID}"' not in request[2]:
            requests.append(f"{request[1]} {request[2]}")
    return requests, others


def last(lines: list[str]) -> list[str]:
    left_out = len(lines) - LOG_LINES_SHOWN
    return [*([f"... {left_out} before"] if left_out > 0 else []), *lines[-LOG_LINES_SHOWN:]]


def asked(watched: Watched, name: str) -> Iterator[Section]:
    with watched.broker.connected(ANSWER_S) as cluster:
        topics = topic_lines(cluster, watched.since_ms)
        yield f"{name}: topics", shortened(topics, TOPICS_MAX) or "none"
        groups = list(group_lines(cluster, set(topics) if watched.shared else None))
        if groups:
            yield f"{name}: groups", "\n".join(groups)


def shortened(blocks: dict[str, str], most: int) -> str:
    shown = list(blocks.values())
    left_out = [f"... and {len(shown) - most} more"] if len(shown) > most else []
    return "\n".join(shown[:most] + left_out)


# -- topics


def topic_lines(cluster: Cluster, since_ms: int) -> dict[str, str]:
    """For each topic that has a record since then, or for each at all if `since_ms` is 0: its partitions and the last
    records of each."""
    rows = [row for row in cluster.metadata(None).topics if not row.is_internal and not row.error_code]
    keys = [(row.name, each.partition_index) for row in rows for each in row.partitions]
    spans = spans_of(cluster, keys) if keys else {}
    tails = last_records(cluster, spans)
    found: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: str(row.name)):
        own = sorted(key for key in spans if key[0] == row.name)
        if since_ms and not any(record.timestamp >= since_ms for key in own for record in tails[key]):
            continue
        found[row.name] = "\n".join(
            line for key in own for line in partition_lines(key, spans[key], tails[key], since_ms)
        )
    return found


def partition_lines(key: Partition, span: Span, tail: list[Any], since_ms: int) -> Iterator[str]:
    first, end = span
    yield f"{key[0]}-{key[1]}: " + (f"offsets {first} to {end - 1}" if end > first else "empty")
    for record in tail[-RECORDS_SHOWN:]:
        if record.timestamp >= since_ms:
            headers = f" headers {short(record.headers)}" if record.headers else ""
            key_text = f" key {short(record.key)}" if record.key is not None else ""
            yield f"  {record.offset}{key_text}{headers} {short(record.value)}"


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_LETTERS else f"{text[:VALUE_LETTERS]}..."


def last_records(cluster: Cluster, spans: dict[Partition, Span]) -> dict[Partition, list[Any]]:
    """Some of the last records of each partition, as far as they come in time."""
    from pykafkad.tools.fetching import Fetcher, FetchSettings

    tails: dict[Partition, list[Any]] = {key: [] for key in spans}
    wanted = {key: max(first, end - RECORDS_SHOWN) for key, (first, end) in spans.items() if end > first}
    settings = FetchSettings()
    settings.max_wait_ms = 0
    fetcher = Fetcher(cluster, settings)
    try:
        fetcher.assign(wanted)
        deadline = time.monotonic() + ANSWER_S
        while any(fetcher.positions[key] < spans[key][1] for key in wanted) and time.monotonic() < deadline:
            for chunk in fetcher.poll(max(0.0, deadline - time.monotonic())):
                tails[chunk.partition] += [record for _, record in chunk]
    finally:
        fetcher.close()
    return tails


# -- groups


def group_lines(cluster: Cluster, topics: set[str] | None) -> Iterator[str]:
    """The groups that have to do with these topics, or all of them."""
    from pykafkad.tools.admin_groups import list_groups

    listed = list_groups(cluster, protocols=("consumer", ""), timeout_ms=int(ANSWER_S * 1000))
    shown = 0
    for row in sorted(listed, key=lambda row: row.group_id):
        group = look_at(cluster, row.group_id, ANSWER_S)
        offsets = committed(cluster, row.group_id, ANSWER_S)
        if topics is not None and not topics & {name for name, _ in (*group.assigned, *offsets)}:
            continue
        shown += 1
        if shown > GROUPS_MAX:
            yield "... and more"
            return
        yield group_line(group, offsets)


def group_line(group: Group, offsets: dict[Partition, int]) -> str:
    shown = ", ".join(f"{topic}-{index} at {offset}" for (topic, index), offset in sorted(offsets.items()))
    return f"{group}; committed: {shown or 'nothing'}"
