"""A plan that groups one stream as Spark's own aggregation: where the last value of a key in a batch is all that is told.

It has two halves. `entering` makes of a record what it is grouped by (k0, k1 ...), what is aggregated (a0, a1 ...) and
its time, or, where Spark's answer would not be ours, the record itself. Between the halves our operators take those
records (hosts/spark_entering.py), and each row gets `closed`: the windows that ended until then are closed to it, by the
times before it in its partition and batch. `totals` groups; the times of earlier batches close windows there, by the
watermark. With one partition that is just a stream's time; with several it lies between that of the record's partition
and that of all.

Compiled are the aggregates whose answer does not depend on the order of rows and batches. What is made of the groups
ends as statements.py's chains do; in `record` is the group's row where our operators are to go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pykafkad.pipelines.functions.aggregating import Aggregate
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.plan.aggregates import AggregateStream
from pykafkad.pipelines.plan.ends import WriteTopic
from pykafkad.pipelines.plan.stateless import FilterTable, Group, Project
from pykafkad.pipelines.plan.topology import Plan, Step
from pykafkad.pipelines.plan.windows import AggregateWindows
from pykafkad.pipelines.spark_sql.expressions import compiled
from pykafkad.pipelines.spark_sql.having import check_that_groups_stay
from pykafkad.pipelines.spark_sql.sql import SPARK_TYPES, NotCompiled, Sql, any_of, converted
from pykafkad.pipelines.spark_sql.statements import AS_RECORD, Making, line_of
from pykafkad.pipelines.spark_sql.steps import AnyStep, Chain, Select, Total, Watermark, Where
from pykafkad.pipelines.spark_sql.writing import writing
from pykafkad.pipelines.types import BIGINT, BOOLEAN, DATE, INTEGER, STRING, TIME, TIMESTAMP, SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEYS = (BOOLEAN, INTEGER, BIGINT, STRING, DATE, TIME, TIMESTAMP)
"""Types whose equal values are the same value: 0.0 and -0.0 are not."""
ORDERED = (INTEGER, BIGINT, STRING, DATE, TIME, TIMESTAMP)

CONFIGS = {
    # late is what the watermark says at once, and not a batch later; windows may close with the next records
    "spark.sql.streaming.statefulOperator.allowMultiple": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # RocksDB looks up whatever it writes, only to count keys
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
"""Of the session, for what is compiled here."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    entering: Chain
    types: dict[str, str]
    """The columns that enter, without time and record, and their types in Spark."""
    totals: Chain
    before: tuple[Step, ...]
    """The operators whose work `entering` is, and the one that groups."""
    operator: AggregateStream | AggregateWindows
    after: tuple[Step, ...]
    keys: int

    @property
    def windowed(self) -> bool:
        return isinstance(self.operator, AggregateWindows)

    @property
    def form(self) -> str:
        """What its state is made of: it can be opened by what has the same."""
        state = [step for step in self.totals.steps if isinstance(step, Total)]
        return f"Spark SQL: {self.types} {state}"

    @property
    def as_one(self) -> Chain:
        """Both halves without Python between them: records that Spark does not read as we do are left out, and late is
        what earlier batches made so."""
        wanted = ["record IS NULL", *(f"k{place} IS NOT NULL" for place in range(self.keys))]
        if self.windowed:
            wanted.append("time >= 0")
        columns = (*self.types, "time", *(("-1L AS closed",) if self.windowed else ()))
        between = Where(" AND ".join(wanted)), Select(columns)
        return Chain((*self.entering.steps, *between, *self.totals.steps))


def aggregation(plan: Plan) -> Aggregation:
    """A plan's compiled form; NotCompiled says what it has that is not proven."""
    if plan.bad_records.log_topic is not None:
        raise NotCompiled("a log in a topic, which has what expressions fail")
    if plan.every_change:
        raise NotCompiled("every change of a total is to be told")
    entry, steps, sink = line_of(plan)
    at = next((number for number, step in enumerate(steps) if step.stateful), None)
    if not at or not isinstance(group := steps[at - 1].operator, Group):
        raise NotCompiled("what is not grouped")
    operator = steps[at].operator
    if not isinstance(operator, AggregateStream | AggregateWindows):
        raise NotCompiled(f"the operator {type(operator).__name__}")
    if isinstance(operator, AggregateWindows) and operator.final:
        raise NotCompiled("EMIT FINAL")
    functions = operator.aggregates.functions
    making = Making()
    making.read(entry.source)
    for step in steps[: at - 1]:
        making.then(step.operator)
    entering, types = _entering(making, group, functions)
    totals = _totals(operator, len(group.key), types, functions)
    totals += _results([step.operator for step in steps[at + 1 :]], operator, group, sink)
    before, after = tuple(steps[:at]), tuple(steps[at + 1 :])
    return Aggregation(entering, types, Chain(totals), before, operator, after, len(group.key))


def _entering(making: Making, group: Group, functions: Sequence[Any]) -> tuple[Chain, dict[str, str]]:
    keys = [compiled(part) for part in group.key]
    if strange := next((one.type for one in keys if one.type not in KEYS), None):
        raise NotCompiled(f"groups by {strange}")
    arguments = [_argument(one) for function in functions for one in function.arguments]
    named = {f"k{place}": one for place, one in enumerate(keys)}
    named |= {f"a{place}": one for place, one in enumerate(arguments)}
    odd = making.also_odd([each for one in named.values() for each in one.odd])
    odd = any_of(odd, "coalesce(size(headers), 0) > 0")  # the last of a group's are its result's
    made = tuple(f"{one.value} AS {name}" for name, one in named.items())
    record = f"CASE WHEN {odd} THEN {AS_RECORD} END AS record"
    last = Select((*made, "unix_millis(timestamp) AS time", record))
    types = {name: SPARK_TYPES[one.type] for name, one in named.items() if one.type is not None}
    return Chain((*making.steps, last)), types


def _argument(argument: Any) -> Sql:
    found = converted(compiled(argument), argument.type)
    if found.type not in SPARK_TYPES:
        raise NotCompiled(f"an aggregate of {found.type}")
    return found


# --- aggregates


def _count(types: Sequence[SqlType], arguments: Sequence[str]) -> str:
    return f"count({arguments[0] if arguments else 1})"


def _sum(types: Sequence[SqlType], arguments: Sequence[str]) -> str:
    if types[0] not in (INTEGER, BIGINT):
        raise NotCompiled(f"SUM of {types[0]}, whose order counts")
    whole = f"coalesce(sum({arguments[0]}), 0L)"
    return f"CAST({whole} AS INT)" if types[0] == INTEGER else whole


def _average(types: Sequence[SqlType], arguments: Sequence[str]) -> str:
    if types[0] not in (INTEGER, BIGINT):
        raise NotCompiled(f"AVG of {types[0]}, whose order counts")
    (value,) = arguments
    # our sums are of any size: Spark's of such decimals have 29 digits, which ten thousand million values do not fill
    exact = f"CAST({value} AS DECIMAL(19, 0))" if types[0] == BIGINT else value
    return f"coalesce(CAST(sum({exact}) AS DOUBLE) / count({value}), CAST(0 AS DOUBLE))"


def _extreme(name: str) -> Callable[[Sequence[SqlType], Sequence[str]], str]:
    def extreme(types: Sequence[SqlType], arguments: Sequence[str]) -> str:
        if types[0] not in ORDERED:
            raise NotCompiled(f"{name.upper()} of {types[0]}")
        return f"{name}({arguments[0]})"

    return extreme


PROVEN = {"COUNT": _count, "SUM": _sum, "AVG": _average, "MIN": _extreme("min"), "MAX": _extreme("max")}


def _said(function: Any, arguments: Sequence[str]) -> str:
    assert isinstance(function, Aggregate)
    name = FUNCTIONS.find(function.call.name).name
    if name not in PROVEN:
        raise NotCompiled(f"the aggregate {name}")
    return PROVEN[name]([one.type for one in function.arguments if one.type is not None], arguments)


def _totals(
    operator: AggregateStream | AggregateWindows, keys: int, types: dict[str, str], functions: Sequence[Any]
) -> tuple[AnyStep, ...]:
    """From what has entered to a row a group: g0, g1 ... are the group's columns, as our operators have them."""
    names = iter(name for name in types if name.startswith("a"))
    said = [_said(function, [next(names) for _ in function.arguments]) for function in functions]
    key = tuple(f"k{place}" for place in range(keys))
    values = (*(f"{one} AS t{place}" for place, one in enumerate(said)), "max(time) AS time")
    group = [*key, *(f"t{place}" for place in range(len(said)))]
    if not isinstance(operator, AggregateWindows):
        return Total(key, values), _rows(group)
    made = f"window(time, '{operator.size} milliseconds', '{operator.advance} milliseconds') AS window"
    by = Select((*types, "timestamp_millis(time) AS time", "closed"))
    windows = Select((made, *types, "unix_millis(time) AS time", "closed"))
    is_open = Where("unix_millis(window.end) > closed AND unix_millis(window.start) >= 0")
    group += ["unix_millis(window.start)", "unix_millis(window.end)"]
    total = Total(("window", *key), values)
    return by, Watermark(operator.grace), windows, is_open, total, _rows(group)


def _rows(group: Sequence[str]) -> Select:
    return Select((*(f"{one} AS g{place}" for place, one in enumerate(group)), "time"))


# --- results


def _results(
    operators: Sequence[Any], operator: AggregateStream | AggregateWindows, group: Group, sink: WriteTopic
) -> tuple[AnyStep, ...]:
    if sink.timestamp is not None:
        raise NotCompiled("a time that the sink writes")
    windowed = isinstance(operator, AggregateWindows)
    keys = len(group.key)
    width = keys + len(operator.aggregates.functions) + 2 * windowed
    row = tuple(f"g{place}" for place in range(width))
    steps: list[AnyStep] = [Select((*row, *(f"g{n} AS c{n}" for n in range(width)), "time", "false AS odd"))]
    for one in operators:
        if isinstance(one, FilterTable):
            check_that_groups_stay(one.condition, keys, operator.aggregates.functions)
            steps += _filtered(compiled(one.condition), row, width)
            continue
        if not isinstance(one, Project):
            raise NotCompiled(f"the operator {type(one).__name__} behind groups")
        found = [compiled(column) for column in one.columns]
        odd = any_of("odd", *(f"coalesce({each}, false)" for column in found for each in column.odd))
        named = (f"{column.value} AS c{place}" for place, column in enumerate(found))
        steps.append(Select((*row, *named, "time", f"{odd} AS odd")))
        width = len(found)
    key = writing(sink.key, list(row[:keys]))
    value = writing(sink.value, [f"c{place}" for place in range(width)])
    key_text = key.text
    if sink.window is not None:
        if not windowed or sink.window.size is None:
            raise NotCompiled("a window that the groups have not")
        key_text = f"concat({key_text}, unhex(lpad(hex({row[-2]}), 16, '0')))"
    odd = any_of("odd", *(f"coalesce({each}, false)" for each in (*key.odd, *value.odd)))
    record = f"CASE WHEN {odd} THEN struct({', '.join(row)}, time) END AS record"
    headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
    steps.append(Select((f"{key_text} AS key", f"{value.text} AS value", "time", headers, record)))
    return tuple(steps)


def _filtered(condition: Sql, row: Sequence[str], width: int) -> list[AnyStep]:
    """The groups that pass, and those of which our operators are to say whether they do."""
    odd = any_of("odd", *(f"coalesce({each}, false)" for each in condition.odd))
    again = Select((*row, *(f"c{place}" for place in range(width)), "time", f"{odd} AS odd"))
    return [Where(any_of(odd, condition.condition)), *([again] if condition.odd else [])]
