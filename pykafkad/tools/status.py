"""`pykafkad status`: what a running broker has and does. Kafka has no such tool."""

from __future__ import annotations

from pykafkad.control.client import ControlError
from pykafkad.logs import escaped
from pykafkad.tools import output, running
from pykafkad.tools.options import Option, Options, flag, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Row = dict[str, Any]

ABOUT = "This tool shows what a running broker has and does: topics, groups, connections, and what waits for what."

OPTIONS: tuple[Option, ...] = (
    *running.OPTIONS,
    flag("json", "One JSON document on standard output."),
)
KINDS = {"topic": "topics", "group": "groups", "connection": "connections", "waiting": "waiting"}
# kind -> the columns of its table: what is above, and the key of what is below
TABLES = {
    "topics": (
        ("TOPIC", "name"),
        ("PARTITIONS", "partitions"),
        ("RECORDS", "records"),
        ("SIZE", "bytes"),
        ("", "note"),
    ),
    "groups": (
        ("GROUP", "id"),
        ("TYPE", "type"),
        ("STATE", "state"),
        ("MEMBERS", "members"),
        ("GENERATION", "generation"),
        ("LAG", "lag"),
    ),
    "connections": (
        ("CONNECTION", "address"),
        ("LISTENER", "listener"),
        ("CLIENT ID", "client_id"),
        ("SOFTWARE", "software"),
        ("IDLE", "idle"),
        ("", "note"),
    ),
}
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def main(arguments: Sequence[str]) -> int:
    return run(
        OPTIONS, list(arguments) or ["--"], ABOUT, body
    )  # without arguments it is not explained but run


def body(options: Options) -> int:
    try:
        client = running.connect(options)
        try:
            found = gathered(client.ask("status"))
        finally:
            client.close()
    except ControlError as problem:
        output.error(escaped(str(problem)))
        return 1
    if options.has("json"):
        import json

        output.line(json.dumps(found))
    else:
        for line in lines(found):
            output.line(line)
    return 0


def gathered(rows: Iterable[Row]) -> Row:
    found: Row = {"broker": {}, **{name: [] for name in KINDS.values()}}
    for row in rows:
        for kind, fact in row.items():
            if kind in KINDS:
                found[KINDS[kind]].append(fact)
            else:
                found[kind] = fact
    return found


def lines(found: Row) -> Iterable[str]:
    yield from broker_lines(found["broker"])
    shown = {
        "topics": [topic_cells(topic) for topic in found["topics"]],
        "groups": found["groups"],
        "connections": [connection_cells(connection) for connection in found["connections"]],
    }
    for kind, rows in shown.items():
        if rows:
            yield ""
            yield from table(TABLES[kind], rows)
    if found["waiting"]:
        yield ""
        yield "WAITING"
        yield from map(waiting_line, found["waiting"])
    if "left_out" in found:
        yield f"\n{found['left_out']} more lines are not shown"


def broker_lines(broker: Row) -> Iterable[str]:
    yield f"broker {broker['node_id']} of cluster {broker['cluster_id']}"
    yield f"  pykafkad     {broker['version']}, process {broker['pid']}"
    yield f"  listens at   {', '.join(broker['listeners'])}"
    yield f"  told clients {', '.join(f'{name}://{host}:{port}' for name, host, port in broker['advertised'])}"
    for directory in broker["directories"]:
        failure = f" (offline: {directory['failure']})" if directory["failure"] else ""
        yield escaped(f"  data in      {directory['path']}{failure}")
    traffic = f"{size(broker['received_bytes'])} received, {size(broker['sent_bytes'])} sent"
    yield f"  so far       {broker['requests']} requests, {traffic}"
    held = broker["loop_held"]
    if held["times"]:
        yield f"  held up      {held['times']} times, at the longest {held['longest_us'] / 1000:.0f} ms"


def topic_cells(topic: Row) -> Row:
    note = f"{topic['offline']} offline" if topic["offline"] else "internal" if topic["internal"] else ""
    return {**topic, "bytes": size(topic["bytes"]), "note": note}


def connection_cells(connection: Row) -> Row:
    notes = [
        f"{size(connection[key])} {what}"
        for key, what in (("unfinished_bytes", "of a request have come"), ("queued_bytes", "not taken"))
        if connection[key]
    ]
    software = f"{connection['software']} {connection['software_version']}".strip()
    return {
        **connection,
        "software": software or "-",
        "idle": duration(connection["idle_ms"]),
        "note": ", ".join(notes),
    }


def waiting_line(row: Row) -> str:
    who = f'"{row["client_id"]}" ({row["address"]})' if "client_id" in row else ""
    about = (
        f"group {row['group']}, member {row['member']}" if "group" in row else ", ".join(row["partitions"])
    )
    more = row.get("partition_count", 0) - len(row.get("partitions", ()))
    also = f" and {more} more" if more > 0 else ""
    limit = f", for {row['max_wait_ms']} ms at the most" if "max_wait_ms" in row else ""
    return escaped(
        f"  {row['what']} {who} of {about}{also} waits for {row['for']}{limit}".replace("  of", " of")
    )


def table(columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> Iterable[str]:
    cells = [[title for title, _ in columns]]
    cells += [[escaped(str(row[key])) for _, key in columns] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def size(count: int) -> str:
    number = float(count)
    for unit in UNITS:
        if number < 1024 or unit == UNITS[-1]:
            break
        number /= 1024
    return f"{count} B" if unit == UNITS[0] else f"{number:.1f} {unit}"


def duration(ms: int) -> str:
    if ms < 1_000:
        return f"{ms} ms"
    seconds = ms // 1_000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
