"""What must not happen: a callback that holds the loop, a crash, a closed connection where Kafka would answer, a
malformed answer, log lines that mean a bug. `known.py` lists what is known and intended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.storm import known
from tests.storm.lines import Fate
from tests.storm.neighbour import Report
from tests.storm.world import HOLD_MS, World

HELD = re.compile(r" held the loop for (?P<ms>\d+) ms")
CLIENT = re.compile(r"storm-(\d+)")
CLOSED = re.compile(r"closed the connection of [^ ]*?:(\d+): (.*)")
WHERE = re.compile(r"\((\w+\.\w+:\d+)\)$")
FELT_MS = 100  # the broker's own time while the neighbour waits for one answer: several callbacks together
SHOWN = 400

CRASH, HOLD, CLOSES, GARBLED, LATE, LOGGED, NEIGHBOUR, MEMORY = (
    "crash", "hold", "closed", "garbled", "late", "logged", "neighbour", "memory",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """`about` identifies faults of the same kind; `number` is that of the request, if it is known."""

    kind: str
    about: str
    text: str = field(compare=False, default="")
    number: int = field(compare=False, default=-1)

    def __str__(self) -> str:
        return f"{self.kind}: {self.about}: {self.text}"[:SHOWN]


def judge(world: World, fates: Iterable[Fate], report: Report | None = None) -> list[Fault]:
    """The faults in the results of these requests, and in the neighbour's report."""
    fates = list(fates)
    lines = world.log()
    faults = of_log(lines, fates)
    if not world.lives:
        code = world.broker._process.poll() if world.broker._process is not None else None
        return [Fault(CRASH, f"exit code {code}", " / ".join(lines[-5:]))]
    faults += of_fates(fates, lines)
    if report is not None:
        faults += of_neighbour(report, held=any(fault.kind == HOLD for fault in faults))
    return [
        fault for fault in dict.fromkeys(faults) if not known.is_known(fault.kind, fault.about, fault.text)
    ]


def of_log(lines: Sequence[str], fates: Sequence[Fate]) -> list[Fault]:
    found = []
    for line in lines:
        text = line.partition("] ")[2]
        held = HELD.search(text)
        number = CLIENT.search(text)
        if held:
            if float(held["ms"]) >= HOLD_MS:
                found.append(Fault(HOLD, api_of(text, number, fates), text, int(number[1]) if number else -1))
        elif "Traceback" in line or text.startswith("ERROR"):
            where = WHERE.search(text)
            about = where[1] if where else re.sub(r"[0-9]+|'.*?'|\".*?\"", "*", text)[:100]
            found.append(Fault(LOGGED, about, text))
    return found


def api_of(text: str, number: re.Match[str] | None, fates: Sequence[Fate]) -> str:
    """For a hold: the API if a request caused it, else the log line without its numbers."""
    for fate in fates:
        if number and fate.request.number == int(number[1]):
            return fate.request.api
    return re.sub(r"[0-9.:]+", "*", text.partition(" held the loop")[0])[:80]


def of_fates(fates: Iterable[Fate], lines: Sequence[str]) -> list[Fault]:
    reasons: dict[str, str] = {match[1]: match[2] for line in lines if (match := CLOSED.search(line))}
    found = []
    for fate in fates:
        request = fate.request
        if fate.outcome == "closed" and not request.is_changed:
            why = reasons.get(str(fate.port), fate.detail or "no reason is logged")
            found.append(
                Fault(
                    CLOSES,
                    f"{request.api}: {re.sub(r'[0-9]+', '*', why)[:80]}",
                    f"{request}: {why}",
                    request.number,
                )
            )
        elif fate.outcome in ("garbled", "late", "refused") or (
            fate.outcome == "skipped" and not request.is_changed
        ):
            kind = GARBLED if fate.outcome in ("garbled", "skipped") else LATE
            found.append(Fault(kind, request.api, f"{request}: {fate.outcome} {fate.detail}", request.number))
    return found


def of_neighbour(report: Report, *, held: bool) -> list[Fault]:
    found = [Fault(NEIGHBOUR, "the neighbour", text) for text in report.faults[:1]]
    if report.worst >= FELT_MS and not held:
        found.append(
            Fault(HOLD, "felt by the neighbour", f"the broker ran {report.worst:.0f} ms before it answered")
        )
    return found
