"""A script checked without a cluster: everything that can be said without data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.errors import NOWHERE, Position, StatementError
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.obeying import obey
from pykafkad.pipelines.running.asserting import wanted
from pykafkad.pipelines.running.inserting import inserted
from pykafkad.pipelines.syntax import ast, tokens
from pykafkad.pipelines.syntax.parser import Parsed, parse

MAX_SCRIPTS = 16


class Problem(NamedTuple):
    file: str
    at: Position
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.at.line}:{self.at.column}: {self.reason}"
            if self.at.line
            else f"{self.file}: {self.reason}"
        )


class Checker:
    """Statements as they would be obeyed. What reads something whose own statement was wrong is left out."""

    def __init__(self) -> None:
        self.session = Session(Catalog())
        self.count = 0
        self._wrong: set[str] = set()

    def script(self, text: str, file: str, depth: int = 0) -> Iterator[Problem]:
        pieces, rest = tokens.split(text)
        for piece in [*pieces, rest] if rest else pieces:
            self.count += 1
            statement = None
            try:
                replaced = tokens.substitute(piece.text, self.session.catalog.variables)
                statement = parse(replaced, piece.at)
                if self._needs_what_is_wrong(statement):
                    self._is_wrong(statement)
                elif isinstance(statement, ast.RunScript):
                    yield from self._run(statement, depth)
                else:
                    self.statement(Parsed(statement, replaced))
            except StatementError as error:
                yield Problem(file, error.at if error.at != NOWHERE else piece.at, error.reason)
                self._is_wrong(statement)

    def statement(self, parsed: Parsed) -> None:
        statement, session = parsed.statement, self.session
        match statement:
            case ast.SelectStatement():
                session.analysed(statement.query)
            case ast.InsertValues():
                inserted(session.target_of(statement), statement, 0)
            case ast.Explain(query_id, explained):
                if query_id is not None:
                    session.catalog.query(query_id, statement.at)
                elif explained is not None:
                    tried = Checker()
                    tried.session = Session(session.catalog.copy())
                    tried.statement(Parsed(explained, parsed.text))
            case ast.ControlQuery(action, query_id):
                ended = (
                    list(session.catalog.queries)
                    if query_id is None
                    else [session.catalog.query(query_id).id]
                )
                for one in ended if action == "TERMINATE" else ():
                    session.catalog.end_query(one)
            case ast.DescribeFunction(name):
                FUNCTIONS.find(name)
            case ast.AssertTopic():
                wanted(statement)
            case ast.PrintTopic() | ast.AssertSchema() | ast.Show(what="TOPICS" | "FUNCTIONS"):
                pass
            case _:
                if obey(session.catalog, statement) is None:
                    session.execute(statement)

    def _run(self, statement: ast.RunScript, depth: int) -> Iterator[Problem]:
        if depth >= MAX_SCRIPTS:
            raise StatementError(f"Scripts run one another more than {MAX_SCRIPTS} deep", statement.at)
        yield from self.script(read(statement.path, statement.at), statement.path, depth + 1)

    def _needs_what_is_wrong(self, statement: ast.Statement) -> bool:
        named = {
            node.name
            for node in ast.walk(statement)
            if isinstance(node, ast.Source | ast.DropSource | ast.Describe)
        }
        if isinstance(statement, ast.InsertSelect | ast.InsertValues):
            named.add(statement.target)
        return not self._wrong.isdisjoint(named)

    def _is_wrong(self, statement: ast.Statement | None) -> None:
        if (
            isinstance(statement, ast.CreateSource | ast.CreateAsSelect)
            and statement.name not in self.session.catalog.sources
        ):
            self._wrong.add(statement.name)


def read(path: str, at: Position = NOWHERE) -> str:
    """A script's text; StatementError where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StatementError(f"Cannot read {path}: {error.strerror}", at) from None
    except UnicodeDecodeError:
        raise StatementError(f"Cannot read {path}: it is no text in UTF-8", at) from None
