"""Aggregation by windows: of a fixed size (tumbling, hopping), and sessions.

The time that counts is the stream's own, the greatest timestamp seen in any key. A window is closed when that is past
its end by the grace period: rows for it are dropped then. With EMIT FINAL it is emitted once, when it closes; a window
that has outlived its retention by then is gone, as in Kafka Streams' window store.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pykafkad.pipelines.plan.aggregates import Aggregates, Change, Total, Totalling, change_of
from pykafkad.pipelines.plan.rows import Columns, Row, State, Window, hashable

DEFAULT_GRACE = 24 * 3_600_000
NO_TIME = -1


def stream_time(time: int, state: State) -> int:
    """The greatest that has been, with this one."""
    now: int = state.get("time", NO_TIME)
    if time > now:
        now = state["time"] = time
    return now


class Windowed(Totalling):
    """Totals by windows, which change until they end."""

    __slots__ = ()
    final: bool
    """Whether they are told of when they end, and not when they change."""

    @property
    def tells_changes(self) -> bool:
        return not self.final

    def taken(self, row: Row, state: State) -> tuple[list[Change], list[Row]]:
        """What a row changes, and which windows it ends."""
        raise NotImplementedError

    def on_row(self, port: int, row: Row, state: State) -> Iterable[Row]:
        return self.taken(row, state)[1] if self.final else Totalling.on_row(self, port, row, state)

    def changes(self, row: Row, state: State) -> Iterable[Change]:
        return self.taken(row, state)[0]


@dataclass(frozen=True, slots=True)
class AggregateWindows(Windowed):
    """State: under (start, key) a total; under "starts" the starts of windows in order; under a start its keys."""

    aggregates: Aggregates
    size: int
    advance: int
    grace: int = DEFAULT_GRACE
    retention: int = 0
    final: bool = False

    def taken(self, row: Row, state: State) -> tuple[list[Change], list[Row]]:
        key, columns, time = row.key, row.columns, row.time
        changes: list[Change] = []
        if columns is None or key is None:
            return changes, []
        closed = stream_time(time, state) - self.grace
        at = hashable(key)
        for start in self.starts(time):
            end = start + self.size
            if end > closed:
                before: Total | None = state.get((start, at))
                after = state[start, at] = self.aggregates.add(before, columns, time)
                if before is None:
                    self.enter(start, at, key, state)
                changes.append(change_of((at, key, (start, end), after[1], row.headers, before, after)))
        starts: list[int] | None = state.get("starts")
        if starts and starts[0] + self.size <= closed:
            return changes, list(self.close(row, closed, starts, state))
        return changes, []

    def starts(self, time: int) -> range:
        advance = self.advance
        first = time - self.size + advance
        return range(first // advance * advance if first > 0 else 0, time + 1, advance)

    def enter(self, start: int, at: Hashable, key: Columns, state: State) -> None:
        """A key that a window has not had."""
        keys = state.get(start)
        if keys is None:
            keys = {}
            starts = state.get("starts", [])
            insort(starts, start)
            state["starts"] = starts
        keys[at] = key
        state[start] = keys

    def close(self, row: Row, closed: int, starts: list[int], state: State) -> Iterator[Row]:
        """Lets go of the windows that are closed, the oldest first."""
        oldest = starts[-1] - max(self.retention, self.size + self.grace)
        while starts and starts[0] + self.size <= closed:
            start = starts.pop(0)
            window = start, start + self.size
            for at, key in state.pop(start).items():
                total: Total = state.pop((start, at))
                if self.final and start >= oldest:
                    columns = self.aggregates.row(key, total, window)
                    yield Row(key, columns, total[1], None, window, row.headers)
        state["starts"] = starts


class Session(NamedTuple):
    start: int
    end: int
    total: Total

    @property
    def window(self) -> Window:
        return self.start, self.end


class Ending(NamedTuple):
    """A session among those of all keys, in the order that they close in."""

    end: int
    start: int
    number: int
    at: Hashable
    key: Columns


@dataclass(frozen=True, slots=True)
class AggregateSessions(Windowed):
    """State: under a key its sessions in order, and a number that orders keys; under "endings" those of all keys."""

    aggregates: Aggregates
    gap: int
    grace: int = DEFAULT_GRACE
    final: bool = False

    def taken(self, row: Row, state: State) -> tuple[list[Change], list[Row]]:
        changes: list[Change] = []
        if row.columns is None or row.key is None:
            return changes, []
        closed = stream_time(row.time, state) - self.grace - self.gap
        at = hashable(row.key)
        number, sessions = state.get(at) or (self.next_number(state), [])
        met = [s for s in sessions if s.end >= closed and s.start - self.gap <= row.time <= s.end + self.gap]
        start, end = min([row.time, *(s.start for s in met)]), max([row.time, *(s.end for s in met)])
        if end >= closed:
            merged: Total | None = None
            for session in met:
                merged = self.aggregates.merge(merged, session.total)
            total = self.aggregates.add(merged, row.columns, row.time)
            rest = [session for session in sessions if session not in met]
            insort(rest, Session(start, end, total), key=session_start)
            state[at] = number, rest
            self.follow(number, at, row.key, met, (start, end), state)
            changes += self.merged(row, at, met, total, (start, end))
        return changes, list(self.close(row, closed, state))

    def next_number(self, state: State) -> int:
        number: int = state.get("number", 0)
        state["number"] = number + 1
        return number

    def merged(
        self, row: Row, at: Hashable, met: list[Session], total: Total, window: Window
    ) -> Iterator[Change]:
        """Sessions that grew into another are deleted before it is told of."""
        before = None
        for session in met:
            if session.window == window:
                before = session.total
            elif window != (row.time, row.time):
                yield Change(at, row.key or (), session.window, session.end, row.headers, session.total, None)
        yield Change(at, row.key or (), window, window[1], row.headers, before, total)

    def follow(
        self, number: int, at: Hashable, key: Columns, met: list[Session], window: Window, state: State
    ) -> None:
        endings: list[Ending] = state.get("endings", [])
        for session in met:
            del endings[bisect_left(endings, (session.end, session.start, number))]
        insort(endings, Ending(window[1], window[0], number, at, key))
        state["endings"] = endings

    def close(self, row: Row, closed: int, state: State) -> Iterator[Row]:
        endings: list[Ending] = state.get("endings", [])
        gone = bisect_left(endings, (closed,))
        for ending in endings[:gone]:
            number, sessions = state[ending.at]
            window = ending.start, ending.end
            session = next(s for s in sessions if s.window == window)
            sessions.remove(session)
            if sessions:
                state[ending.at] = number, sessions
            else:
                del state[ending.at]
            if self.final:
                columns = self.aggregates.row(ending.key, session.total, window)
                yield Row(ending.key, columns, session.total[1], None, window, row.headers)
        if gone:
            del endings[:gone]
            state["endings"] = endings


def session_start(session: Session) -> int:
    return session.start
