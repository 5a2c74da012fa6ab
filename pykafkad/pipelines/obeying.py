"""Statements that only change or show the catalog: they need no broker and no host.

`obey` is the table of them; what is not in it is the session's.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafkad.pipelines import showing
from pykafkad.pipelines.answers import Answer, Message
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def obey(catalog: Catalog, statement: Statement) -> list[Answer] | None:
    """What the statement answers; None if it is none of these."""
    if isinstance(statement, ast.Show) and statement.what in ("TOPICS", "FUNCTIONS"):
        return None
    how = OBEYED.get(type(statement))
    return None if how is None else how(catalog, statement)


def _said(text: str) -> list[Answer]:
    return [Message(text)]


def _alter(catalog: Catalog, statement: ast.AlterSource) -> list[Answer]:
    altered = catalog.alter(statement)
    return _said(f"{altered.name} has {len(altered.columns)} columns now")


def _create_type(catalog: Catalog, statement: ast.CreateType) -> list[Answer]:
    if catalog.create_type(statement):
        return _said(
            f"Registered custom type with name '{statement.name}' and SQL type {catalog.types[statement.name]}"
        )
    return _said(f"The type {statement.name} is there already; it stays as it is")


def _drop_type(catalog: Catalog, statement: ast.DropType) -> list[Answer]:
    if catalog.drop_type(statement):
        return _said(f"Dropped type '{statement.name}'")
    return _said(f"There is no type {statement.name}")


def _set(catalog: Catalog, statement: ast.SetProperty) -> list[Answer]:
    without_effect = catalog.set(statement)
    if without_effect is not None:
        return _said(f"'{statement.name}' changes nothing here: {without_effect}")
    return _said(f"Successfully changed local property '{statement.name}' to '{statement.value}'.")


def _unset(catalog: Catalog, statement: ast.UnsetProperty) -> list[Answer]:
    catalog.unset(statement.name, statement.at)
    return _said(f"Successfully unset local property '{statement.name}'.")


def _define(catalog: Catalog, statement: ast.DefineVariable) -> list[Answer]:
    catalog.define(statement)
    return []


def _undefine(catalog: Catalog, statement: ast.UndefineVariable) -> list[Answer]:
    catalog.undefine(statement.name, statement.at)
    return []


OBEYED: dict[type[Statement], Callable[[Catalog, Any], list[Answer]]] = {
    ast.AlterSource: _alter,
    ast.CreateType: _create_type,
    ast.DropType: _drop_type,
    ast.SetProperty: _set,
    ast.UnsetProperty: _unset,
    ast.DefineVariable: _define,
    ast.UndefineVariable: _undefine,
    ast.Show: showing.show,
    ast.Describe: showing.describe,
    ast.DescribeAll: showing.describe,
}
