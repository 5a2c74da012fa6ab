"""A join of two streams within a time, as Kafka Streams joins them.

Each side's rows are kept for as long as the other side's may come: the window before and after, and the grace. The time
that counts is the stream's own, the greatest timestamp seen. With a grace period that is said in the statement, an outer
row that found no partner waits until none can come; without one it is emitted at once (and its partners later besides).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pykafkad.pipelines.plan.rows import Columns, Row, State, state_key

DEFAULT_GRACE = 24 * 3_600_000
NO_TIME = -1


class Waiting(NamedTuple):
    """The place of an outer row that has found no partner yet, in the order that they are let go in."""

    time: int
    side: int
    number: int


class Kept(NamedTuple):
    time: int
    number: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class JoinStreams:
    before: int
    after: int
    grace: int | None
    outer: tuple[bool, bool]
    """Whether a left row, and a right row, is emitted without a partner."""
    widths: tuple[int, int]

    def on_row(self, port: int, row: Row, state: State) -> Iterator[Row]:
        if row.columns is None or row.key is None or None in row.key:
            return
        key, other = state_key(row), 1 - port
        number = state["number"] = state.get("number", 0) + 1
        self.keep(port, key, Kept(row.time, number, row.columns), state)
        now = state["time"] = max(state.get("time", NO_TIME), row.time)
        if row.time == now:
            yield from self.expired(state)
        partners = self.partners(port, key, row.time, state)
        for partner in partners:
            yield row._replace(
                columns=self.joined(port, row.columns, partner.columns), time=max(row.time, partner.time)
            )
            self.found(Waiting(partner.time, other, partner.number), state)
        if not partners and self.outer[port]:
            if self.grace is None or row.time + self.reach(port)[1] < now:
                yield row._replace(columns=self.joined(port, row.columns, None))
            else:
                state.setdefault("waiting", {})[Waiting(row.time, port, number)] = row

    def reach(self, port: int) -> tuple[int, int]:
        """How far before and after a row of this side its partners may be."""
        return (self.before, self.after) if port == 0 else (self.after, self.before)

    @property
    def retention(self) -> int:
        return self.before + self.after + (DEFAULT_GRACE if self.grace is None else self.grace)

    def keep(self, port: int, key: Hashable, kept: Kept, state: State) -> None:
        seen = state["seen", port] = max(state.get(("seen", port), NO_TIME), kept.time)
        if kept.time <= seen - self.retention:
            return
        rows = state.get((port, key), [])
        insort(rows, kept)
        oldest = seen - self.retention
        state[port, key] = [row for row in rows if row.time > oldest] if rows[0].time <= oldest else rows

    def partners(self, port: int, key: Hashable, time: int, state: State) -> list[Kept]:
        other = 1 - port
        before, after = self.reach(port)
        oldest = state.get(("seen", other), NO_TIME) - self.retention
        first, last = max(time - before, oldest + 1), time + after
        return [kept for kept in state.get((other, key), ()) if first <= kept.time <= last]

    def joined(self, port: int, own: Columns, other: Columns | None) -> Columns:
        partner = (None,) * self.widths[1 - port] if other is None else other
        return own + partner if port == 0 else partner + own

    def found(self, waiting: Waiting, state: State) -> None:
        if waiting in (all_waiting := state.get("waiting", {})):
            del all_waiting[waiting]
            state["waiting"] = all_waiting

    def expired(self, state: State) -> Iterator[Row]:
        """The outer rows that no partner can come for any more, the oldest first."""
        all_waiting = state.get("waiting")
        if not all_waiting or self.grace is None:
            return
        for waiting in sorted(all_waiting):
            if waiting.time + self.reach(waiting.side)[1] + self.grace >= state["time"]:
                break
            row = all_waiting.pop(waiting)
            yield row._replace(columns=self.joined(waiting.side, row.columns, None))
        state["waiting"] = all_waiting
