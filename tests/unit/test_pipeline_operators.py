"""The operators of plans: what each emits, in which order, and what it remembers."""

from __future__ import annotations

import pickle
from operator import itemgetter
from typing import Any

from pykafkad.pipelines.plan.aggregates import Aggregates, AggregateStream, AggregateTable
from pykafkad.pipelines.plan.rows import Operator, Row
from pykafkad.pipelines.plan.stateless import FilterStream, FilterTable, FlatMap, Group, Project, Rekey
from pykafkad.pipelines.plan.stream_joins import JoinStreams
from pykafkad.pipelines.plan.table_joins import JoinForeignKey, JoinStreamTable, JoinTables
from pykafkad.pipelines.plan.tables import Changes, GroupTable
from pykafkad.pipelines.plan.windows import AggregateSessions, AggregateWindows

SECOND = 1000


class Driven:
    """An operator that is pickled before every row, with its state."""

    def __init__(self, operator: Operator) -> None:
        self.bytes, self.state = pickle.dumps(operator), pickle.dumps({})

    def rows(self, row: Row, port: int = 0) -> list[Row]:
        state: dict[Any, Any] = pickle.loads(self.state)
        found = list(pickle.loads(self.bytes).on_row(port, row, state))
        self.state = pickle.dumps(state)
        return found

    def seen(self, key: Any, columns: Any, time: int = 0, port: int = 0) -> list[tuple[Any, ...]]:
        """Of what follows: key, columns and time."""
        return [(r.key, r.columns, r.time) for r in self.rows(Row(key, columns, time), port)]


class Sum:
    """Adds up the column at a place."""

    def __init__(self, place: int = 0) -> None:
        self.place = place

    def initial(self) -> int:
        return 0

    def add(self, state: int, row: tuple[Any, ...]) -> int:
        return state + row[self.place]

    def undo(self, state: int, row: tuple[Any, ...]) -> int:
        return state - row[self.place]

    def merge(self, state: int, other: int) -> int:
        return state + other

    def result(self, state: int) -> int:
        return state


SUM = Aggregates((Sum(),))


def is_positive(columns: tuple[Any, ...]) -> bool | None:
    return None if columns[0] is None else columns[0] > 0


class TestStateless:
    def test_a_filter_lets_nothing_pass_that_is_null_or_false(self) -> None:
        driven = Driven(FilterStream(is_positive))
        assert [driven.seen((1,), columns) for columns in ((1,), (0,), (None,), None)] == [
            [((1,), (1,), 0)],
            [],
            [],
            [],
        ]

    def test_a_table_s_filter_deletes_only_what_passed_before(self) -> None:
        driven = Driven(FilterTable(is_positive))
        assert driven.rows(Row((1,), (0,), 0, old=(2,))) == [Row((1,), None, 0, old=(2,))]
        assert driven.rows(Row((1,), (0,), 0, old=(-2,))) == []
        assert driven.rows(Row((1,), None, 0, old=(2,))) == [Row((1,), None, 0, old=(2,))]

    def test_a_projection_makes_of_old_columns_what_it_makes_of_new(self) -> None:
        driven = Driven(Project((itemgetter(1), itemgetter(0))))
        assert driven.rows(Row((1,), (1, 2), 0, old=(3, 4))) == [Row((1,), (2, 1), 0, old=(4, 3))]
        assert driven.seen((1,), None) == [((1,), None, 0)]

    def test_table_functions_fill_up_with_null_to_the_longest(self) -> None:
        driven = Driven(FlatMap((itemgetter(0), itemgetter(1))))
        assert [r.columns for r in driven.rows(Row((1,), ([1, 2], ["a"]), 0))] == [
            ([1, 2], ["a"], 1, "a"),
            ([1, 2], ["a"], 2, None),
        ]
        assert driven.seen((1,), (None, [])) == []

    def test_a_row_without_a_value_is_rekeyed_by_what_its_key_says(self) -> None:
        driven = Driven(Rekey((itemgetter(1), itemgetter(0)), 2))
        assert driven.seen((7,), (7, "x")) == [(("x", 7), (7, "x"), 0)]
        assert driven.seen((7,), None) == [((None, 7), None, 0)]

    def test_a_row_with_null_in_what_it_is_grouped_by_is_in_no_group(self) -> None:
        driven = Driven(Group((itemgetter(0), itemgetter(1)), (0, 1)))
        assert driven.seen((1,), ("a", None)) == []
        assert driven.seen((1,), ("a", "b")) == [(("a", "b"), ("a", "b"), 0)]

    def test_of_what_is_grouped_those_columns_go_on_that_are_aggregated(self) -> None:
        assert Driven(Group((itemgetter(0),), ())).seen((1,), ("a", 2, 3)) == [(("a",), (), 0)]
        assert Driven(Group((itemgetter(0),), (None, 1))).seen((1,), ("a", 2, 3)) == [(("a",), (None, 2), 0)]


class TestTables:
    def test_a_change_says_what_the_key_held(self) -> None:
        driven = Driven(Changes())
        assert [driven.rows(Row((1,), columns, 0))[0].old for columns in ((1,), (2,), None, (3,))] == [
            None,
            (1,),
            (2,),
            None,
        ]
        assert driven.rows(Row(None, (1,), 0)) == []

    def test_a_row_that_changes_its_group_is_taken_out_of_the_old_one_first(self) -> None:
        driven = Driven(GroupTable((itemgetter(0),)))
        assert driven.rows(Row((1,), ("b", 2), 0, old=("a", 1))) == [
            Row(("a",), None, 0, old=("a", 1)),
            Row(("b",), ("b", 2), 0),
        ]

    def test_one_that_stays_is_one_change(self) -> None:
        driven = Driven(GroupTable((itemgetter(0),)))
        assert driven.rows(Row((1,), ("a", 2), 0, old=("a", 1))) == [Row(("a",), ("a", 2), 0, old=("a", 1))]

    def test_an_aggregate_undoes_what_is_replaced(self) -> None:
        driven = Driven(AggregateTable(SUM))
        assert driven.rows(Row(("a",), (5,), 1))[0].columns == ("a", 5)
        assert driven.rows(Row(("a",), (7,), 2, old=(5,)))[0] == Row(("a",), ("a", 7), 2, old=("a", 5))
        assert driven.rows(Row(("a",), None, 1, old=(7,)))[0] == Row(("a",), ("a", 0), 2, old=("a", 7))


class TestAggregates:
    def test_a_stream_s_total_has_the_latest_time_of_what_it_is_made_of(self) -> None:
        driven = Driven(AggregateStream(SUM))
        assert driven.seen(("a",), (5,), 10) == [(("a",), ("a", 5), 10)]
        assert driven.seen(("a",), (2,), 4) == [(("a",), ("a", 7), 10)]
        assert driven.seen(("b",), (1,), 4) == [(("b",), ("b", 1), 4)]

    def test_keys_may_be_lists(self) -> None:
        driven = Driven(AggregateStream(SUM))
        driven.seen(([1, 2],), (5,))
        assert driven.seen(([1, 2],), (1,)) == [(([1, 2],), ([1, 2], 6), 0)]


def windows(rows: list[Row]) -> list[tuple[Any, Any]]:
    return [(row.window, None if row.columns is None else row.columns[1]) for row in rows]


class TestWindows:
    def test_a_row_counts_in_every_window_that_it_falls_into(self) -> None:
        driven = Driven(AggregateWindows(SUM, 10 * SECOND, 5 * SECOND))
        assert windows(driven.rows(Row(("a",), (1,), 12 * SECOND))) == [
            ((5000, 15000), 1),
            ((10000, 20000), 1),
        ]
        assert windows(driven.rows(Row(("a",), (1,), 3 * SECOND))) == [((0, 10000), 1)]

    def test_what_is_late_by_more_than_the_grace_is_dropped_whatever_its_key(self) -> None:
        driven = Driven(AggregateWindows(SUM, 10, 10, grace=5))
        driven.rows(Row(("a",), (1,), 14))
        assert windows(driven.rows(Row(("b",), (1,), 9))) == [((0, 10), 1)]
        driven.rows(Row(("a",), (1,), 15))
        assert driven.rows(Row(("b",), (1,), 9)) == []

    def test_a_final_window_is_emitted_once_when_it_closes(self) -> None:
        driven = Driven(AggregateWindows(SUM, 10, 10, grace=0, retention=100, final=True))
        assert driven.rows(Row(("a",), (1,), 1)) == driven.rows(Row(("b",), (2,), 3)) == []
        assert driven.rows(Row(("a",), (1,), 9)) == []
        assert windows(driven.rows(Row(("a",), (5,), 10))) == [((0, 10), 2), ((0, 10), 2)]
        assert windows(driven.rows(Row(("a",), (1,), 30))) == [((10, 20), 5)]

    def test_closed_windows_leave_no_state(self) -> None:
        driven = Driven(AggregateWindows(SUM, 10, 10, grace=0))
        driven.rows(Row(("a",), (1,), 1))
        before = len(pickle.loads(driven.state))
        for time in range(10, 500, 10):
            driven.rows(Row(("a",), (1,), time))
        assert len(pickle.loads(driven.state)) == before


class TestSessions:
    def test_a_row_between_two_sessions_makes_them_one_and_deletes_both(self) -> None:
        driven = Driven(AggregateSessions(SUM, gap=10))
        assert windows(driven.rows(Row(("a",), (1,), 0))) == [((0, 0), 1)]
        assert windows(driven.rows(Row(("a",), (2,), 20))) == [((20, 20), 2)]
        assert windows(driven.rows(Row(("a",), (4,), 10))) == [
            ((0, 0), None),
            ((20, 20), None),
            ((0, 20), 7),
        ]

    def test_a_row_at_a_session_s_only_time_deletes_nothing(self) -> None:
        driven = Driven(AggregateSessions(SUM, gap=10))
        driven.rows(Row(("a",), (1,), 5))
        assert windows(driven.rows(Row(("a",), (1,), 5))) == [((5, 5), 2)]

    def test_keys_have_sessions_of_their_own(self) -> None:
        driven = Driven(AggregateSessions(SUM, gap=10))
        driven.rows(Row(("a",), (1,), 5))
        assert windows(driven.rows(Row(("b",), (1,), 6))) == [((6, 6), 1)]

    def test_a_session_that_is_closed_is_emitted_once_and_forgotten(self) -> None:
        driven = Driven(AggregateSessions(SUM, gap=10, grace=5, final=True))
        assert driven.rows(Row(("a",), (1,), 0)) == driven.rows(Row(("a",), (2,), 8)) == []
        assert driven.rows(Row(("b",), (4,), 23)) == []
        assert windows(driven.rows(Row(("b",), (4,), 24))) == [((0, 8), 3)]
        assert driven.rows(Row(("a",), (9,), 8)) == []


class TestStreamJoins:
    def test_rows_meet_within_the_time_whichever_comes_first(self) -> None:
        driven = Driven(JoinStreams(10, 5, None, (False, False), (1, 1)))
        driven.seen((1,), ("l",), 100)
        assert driven.seen((1,), ("too early",), 89, port=1) == []
        assert driven.seen((1,), ("early",), 90, port=1) == [((1,), ("l", "early"), 100)]
        assert driven.seen((1,), ("late",), 105, port=1) == [((1,), ("l", "late"), 105)]
        assert driven.seen((1,), ("too late",), 106, port=1) == []
        assert driven.seen((2,), ("other",), 100, port=1) == []

    def test_without_grace_an_outer_row_is_emitted_at_once(self) -> None:
        driven = Driven(JoinStreams(10, 10, None, (True, False), (1, 1)))
        assert driven.seen((1,), ("l",), 0) == [((1,), ("l", None), 0)]
        assert driven.seen((1,), ("r",), 5, port=1) == [((1,), ("l", "r"), 5)]
        assert driven.seen((2,), ("r",), 5, port=1) == []

    def test_with_grace_it_waits_until_no_partner_can_come(self) -> None:
        driven = Driven(JoinStreams(10, 10, 5, (True, True), (1, 1)))
        assert driven.seen((1,), ("met",), 0) == driven.seen((2,), ("alone",), 0) == []
        assert driven.seen((1,), ("r",), 3, port=1) == [((1,), ("met", "r"), 3)]
        assert driven.seen((3,), ("r3",), 15, port=1) == []
        assert driven.seen((9,), ("l9",), 16) == [((2,), ("alone", None), 0)]
        assert driven.seen((9,), ("r9",), 40, port=1) == [((3,), (None, "r3"), 15), ((9,), ("l9", None), 16)]

    def test_rows_without_a_key_or_a_value_join_nothing(self) -> None:
        driven = Driven(JoinStreams(10, 10, None, (True, True), (1, 1)))
        assert [driven.seen(*row) for row in ((None, ("l",)), ((None,), ("l",)), ((1,), None))] == [
            [],
            [],
            [],
        ]


class TestTableJoins:
    def test_a_stream_s_row_sees_the_table_as_it_is(self) -> None:
        driven = Driven(JoinStreamTable(False, 1))
        assert driven.seen((1,), ("s1",)) == []
        assert driven.seen((1,), ("t",), port=1) == []
        assert driven.seen((1,), ("s2",), 7) == [((1,), ("s2", "t"), 7)]
        driven.seen((1,), None, port=1)
        assert driven.seen((1,), ("s3",)) == []
        assert Driven(JoinStreamTable(True, 2)).seen((1,), ("s",)) == [((1,), ("s", None, None), 0)]

    def test_an_inner_join_deletes_when_either_side_is_deleted(self) -> None:
        driven = Driven(JoinTables("INNER", (1, 1)))
        assert driven.seen((1,), ("l",), 5) == []
        assert driven.seen((1,), ("r",), 3, port=1) == [((1,), ("l", "r"), 5)]
        assert driven.seen((1,), None, 9) == [((1,), None, 9)]
        assert driven.seen((1,), None, 9, port=1) == []

    def test_a_left_join_has_nothing_without_its_left(self) -> None:
        driven = Driven(JoinTables("LEFT", (1, 1)))
        assert driven.seen((1,), ("r",), 3, port=1) == []
        assert driven.seen((1,), ("l",), 2) == [((1,), ("l", "r"), 3)]
        assert driven.seen((1,), None, 4, port=1) == [((1,), ("l", None), 4)]

    def test_a_full_join_has_what_either_side_has(self) -> None:
        driven = Driven(JoinTables("FULL", (1, 1)))
        assert driven.seen((1,), ("r",), 3, port=1) == [((1,), (None, "r"), 3)]
        assert driven.seen((1,), ("l",), 2) == [((1,), ("l", "r"), 3)]
        assert driven.seen((1,), None, 4, port=1) == [((1,), ("l", None), 4)]


class TestForeignKeys:
    def changes(self, left_outer: bool = False) -> tuple[Driven, Driven]:
        return Driven(JoinForeignKey(itemgetter(0), left_outer, 1)), Driven(Changes())

    def test_a_right_row_tells_every_left_row_that_names_it(self) -> None:
        driven, _ = self.changes()
        for key in (10, 2, 1):
            assert driven.seen((key,), ("a",), 5) == []
        driven.seen((3,), ("b",), 5)
        assert driven.seen(("a",), ("r",), 7, port=1) == [((key,), ("a", "r"), 7) for key in (1, 2, 10)]

    def test_a_left_row_that_names_another_is_told_again_and_deleted_where_there_is_none(self) -> None:
        driven, left = self.changes()
        driven.seen(("a",), ("ra",), 1, port=1)
        driven.seen(("b",), ("rb",), 9, port=1)

        def change(columns: Any) -> list[Any]:
            (row,) = left.rows(Row((1,), columns, 5))
            return [(r.columns, r.time) for r in driven.rows(row)]

        assert change(("a",)) == [(("a", "ra"), 5)]
        assert change(("b",)) == [(("b", "rb"), 9)]
        assert change(("c",)) == [(None, 5)]
        assert change(None) == [(None, 5)]
        assert driven.seen(("a",), ("again",), 1, port=1) == []
