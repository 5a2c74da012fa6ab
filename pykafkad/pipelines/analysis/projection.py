"""SELECT's list: stars spelled out, names given, and which columns are the result's key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pykafkad.pipelines.analysis.relations import Context, KeyPart, Relation, resolved
from pykafkad.pipelines.analysis.sources import RESERVED
from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import ColumnReference, Expression, FieldAccess
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import Struct


class Item(NamedTuple):
    """A column of the result: its name, and its expression, resolved."""

    name: str
    expression: Expression


class Names:
    """Gives names to columns that have none."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._generated = context.generated("KSQL_COL")
        self._fields: set[str] = set()

    def of(self, item: ast.SelectColumn, expression: Expression, relation: Relation) -> str:
        if item.alias is not None:
            return item.alias
        if isinstance(expression, ColumnReference):
            return column_name(expression, relation)
        return self.field(expression.field) if isinstance(expression, FieldAccess) else self.generated()

    def field(self, name: str) -> str:
        """A struct's field by its name, with a number where a column has that."""
        taken, number, candidate = self._fields | self.context.names, 0, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        self._fields.add(candidate)
        return candidate

    def generated(self) -> str:
        return next(self._generated)


def column_name(column: ColumnReference, relation: Relation) -> str:
    """A column by its own name, or by its source's too where several have one of that name."""
    alike = [known for known in relation.schema.columns if known.name == column.name]
    return column.name if len(alike) == 1 or column.source is None else f"{column.source}_{column.name}"


def items(query: ast.Query, relation: Relation, names: Names, rekeyed: Sequence[Expression]) -> list[Item]:
    """The result's columns. `rekeyed` is what a stream is partitioned by, in a SELECT * of which that counts too."""
    found: list[Item] = []
    for item in query.select:
        if isinstance(item, ast.SelectAll):
            found.extend(_star(item, relation, names, rekeyed))
        elif isinstance(item, ast.SelectFields):
            found.extend(_fields(item, relation, names.context))
        else:
            expression = resolved(item.expression, relation.schema, "SELECT")
            found.append(Item(names.of(item, expression, relation), expression))
    return found


def _star(
    star: ast.SelectAll, relation: Relation, names: Names, rekeyed: Sequence[Expression]
) -> Iterator[Item]:
    if star.source is not None and star.source not in relation.sources:
        raise StatementError(
            f"'{star.source}' is not a valid stream/table name or alias."
            f"{did_you_mean(star.source, relation.sources)}",
            star.at,
        )
    if star.source is None:
        if relation.synthetic is not None:
            yield Item(relation.synthetic.name, ColumnReference(relation.synthetic.name))
        for key in rekeyed:
            if isinstance(key, FieldAccess):
                yield Item(names.field(key.field), key)
            elif not isinstance(key, ColumnReference):
                yield Item(names.generated(), key)
            elif key.name in RESERVED:
                yield Item(key.name, key)
    many = len(relation.sources) > 1
    for alias, source in relation.sources.items():
        if star.source in (None, alias):
            count = len(source.key)
            columns = source.columns[count:] + source.columns[:count] if rekeyed else source.columns
            for column in columns:
                name = f"{alias}_{column.name}" if many else column.name
                yield Item(name, ColumnReference(column.name, alias))


def _fields(item: ast.SelectFields, relation: Relation, context: Context) -> Iterator[Item]:
    operand = resolved(item.operand, relation.schema, "SELECT")
    of = context.compiled(operand, relation.schema).type
    if not isinstance(of, Struct):
        raise StatementError(f"Expected STRUCT type, got: {of}", item.at)
    for one in of.fields:
        yield Item(one.name, FieldAccess(operand, one.name))


class Split(NamedTuple):
    """The result's columns: those of the key in the key's order, and the others."""

    key: tuple[Column, ...]
    value: tuple[Item, ...]


def split(found: list[Item], key: Sequence[KeyPart], missing: Missing) -> Split:
    chosen: list[Item] = []
    columns: list[Column] = []
    absent: list[KeyPart] = []
    for part in key:
        item = _of_key(found, part)
        if item is None:
            absent.append(part)
        else:
            chosen.append(item)
            columns.append(Column(item.name, part.type))
    if absent:
        missing.refuse(absent, key)
    value = tuple(item for item in found if not any(item is other for other in chosen))
    if not value:
        raise StatementError("The projection contains no value columns.")
    return Split(tuple(columns), value)


def _of_key(found: list[Item], part: KeyPart) -> Item | None:
    for name in part.stands_for:
        same = [item for item in found if item.expression == name]
        if len(same) > 1:
            aliases = " and ".join(sorted(item.name for item in same))
            raise StatementError(
                f"The projection contains a key column (`{part.name}`) more than once, aliased as: {aliases}.\n"
                "Each key column must only be in the projection once. If you intended to copy the key into the value, "
                "then consider using the AS_VALUE function to indicate which key reference should be copied."
            )
        if same:
            return same[0]
    return None


@dataclass(frozen=True, slots=True)
class Missing:
    """What is said where the key is not among the result's columns."""

    sink: str
    what: str
    """key column, join expression, grouping expression, partitioning expression."""
    original: Sequence[Expression] = ()
    """The expressions of the key as they were given, where the key's own are internal."""
    foreign: str | None = None
    """The left table of a join by foreign key."""

    def refuse(self, absent: list[KeyPart], key: Sequence[KeyPart]) -> None:
        if self.foreign is not None:
            named = ", ".join(f"`{part.name.removeprefix(f'{self.foreign}_')}`" for part in absent)
            raise StatementError(
                "Primary key columns missing in projection. For foreign-key table-table joins, the projection must "
                f"include all primary key columns from the left input table (`{self.foreign}`). Missing columns: {named}."
            )
        if self.what == "join expression":
            names = [text(name) for name in absent[0].stands_for]
            listed, example = _either(names, "or"), names[0]
        else:
            names = [text(name) for name in self.original] or [_bare(part.stands_for[0]) for part in key]
            listed, example = _either(names, "and"), ", ".join(names)
        plural = "s" if len(names) > 1 else ""
        raise StatementError(
            f"The query used to build `{self.sink}` must include the {self.what}{plural} {listed} in its projection (eg, "
            f"SELECT {example}...)."
        )


def _bare(expression: Expression) -> str:
    return text(replace(expression, source=None) if isinstance(expression, ColumnReference) else expression)


def _either(names: list[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def check_names(query: ast.Query, found: list[Item]) -> None:
    """Refuses names that a persistent result may not have."""
    names = [item.name for item in found]
    for item in query.select:
        if isinstance(item, ast.SelectColumn):
            _check_reserved(item, names)
    for place, one in enumerate(found):
        if one.name in names[:place]:
            raise StatementError(
                f"The projection contains a column (`{one.name}`) more than once: give it an alias of its own.",
                one.expression.at,
            )


def _check_reserved(item: ast.SelectColumn, names: list[str]) -> None:
    own = item.expression.name if isinstance(item.expression, ColumnReference) else None
    if own in RESERVED and own in names and item.alias in (None, own):
        raise StatementError(
            f"Reserved column name in select: `{own}`. Please remove or alias the column.", item.at
        )
    if item.alias in RESERVED:
        raise StatementError(
            f"`{item.alias}` is a reserved column name. You cannot use it as an alias for a column.", item.at
        )
