"""`pykafkad explain`: why is nothing arriving? Kafka has no such tool; the rules are in pure/explaining.py."""

from __future__ import annotations

import time

from pykafkad.control.client import ControlClient, ControlError
from pykafkad.logs import escaped
from pykafkad.net.probing import why_unreachable
from pykafkad.pure.explaining import explain
from pykafkad.pure.explaining_facts import CAUSE, LIKELY, Facts, Finding, facts_from
from pykafkad.tools import output, running
from pykafkad.tools.options import Option, OptionError, Options, flag, run, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Row = dict[str, Any]

ABOUT = "This tool finds out why no records arrive: what a running broker knows of a group, a topic, or both."

OPTIONS: tuple[Option, ...] = (
    *running.OPTIONS,
    value("group", "group", "The consumer's group.id."),
    value("topic", "topic", "The topic that it should get records of; by default all of the group's."),
    flag("json", "One JSON document on standard output."),
)
LOOKS = 4  # a fetch is seen while it waits: one that was just answered is seen at another look
PAUSE_S = 0.15
CONNECT_S = 2.0
PARTITIONS_SHOWN = 20
SAID = {CAUSE: "Because", LIKELY: "Perhaps"}


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    group, topic = options.value("group"), options.value("topic")
    if group is None and topic is None:
        raise OptionError("What should be explained? --group, --topic, or both")
    try:
        client = running.connect(options)
        try:
            facts = gather(client, group, topic)
        finally:
            client.close()
    except ControlError as problem:
        output.error(escaped(str(problem)))
        return 1
    findings = explain(facts)
    if options.has("json"):
        import json

        shown = {
            "group": group,
            "topic": topic,
            "findings": [each._asdict() for each in findings],
            "facts": facts._asdict(),
        }
        output.line(json.dumps(shown))
        return 0
    for line in lines(facts, findings):
        output.line(escaped(line))
    return 0


def gather(client: ControlClient, group: str | None, topic: str | None) -> Facts:
    asked = {name: text for name, text in (("group", group), ("topic", topic)) if text is not None}
    rows: list[Row] = []
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE_S)
        rows += client.ask("facts", **asked)
    advertised = rows[0]["broker"]["advertised"]
    listeners = [(f"{host}:{port}", why_unreachable(host, port, CONNECT_S)) for _, host, port in advertised]
    return facts_from(group, topic, rows)._replace(listeners=listeners)


def lines(facts: Facts, findings: list[Finding]) -> list[str]:
    shown = []
    for finding in findings:
        shown.append(f"{SAID[finding.certainty]}: {finding.text}.")
        if finding.advice:
            shown.append(f"    {finding.advice[0].upper()}{finding.advice[1:]}.")
    if not findings:
        shown.append(
            "Nothing is wrong as far as the broker can see: there are records, and they are fetched."
        )
    return shown + positions(facts)


def positions(facts: Facts) -> list[str]:
    """What the findings rest on, in a line for each partition."""
    committed = {(row["topic"], row["partition"]): row["offset"] for row in facts.committed}
    owners = {
        (topic, index): member["client_id"]
        for member in facts.members
        for topic, some in (member["assigned"] or {}).items()
        for index in some
    }
    shown = []
    for row in facts.partitions:
        key = row["topic"], row["index"]
        if not row["leads"]:
            shown.append(f"  {key[0]}-{key[1]}: not served here")
            continue
        parts = [f"records {row['start']} to {row['high_watermark']}"]
        parts += [f"committed {committed[key]}"] if key in committed else []
        parts += [f'assigned to "{owners[key]}"'] if key in owners else []
        parts += [
            f'fetched by "{each["client_id"]}" at {each["offset"]}'
            for each in facts.fetches
            if (each["topic"], each["partition"]) == key
        ]
        shown.append(f"  {key[0]}-{key[1]}: {', '.join(parts)}")
    return ["", *shown[:PARTITIONS_SHOWN], *more(len(shown) - PARTITIONS_SHOWN)] if shown else []


def more(count: int) -> list[str]:
    return [f"  and {count} more partitions"] if count > 0 else []
