"""The shell: statements are read until their semicolon and obeyed, rows are shown until Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.commands.background import Behind
from pykafkad.pipelines.commands.host import is_spark
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.tokens import Piece
from pykafkad.tools import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pipelines.expressions.schema import Column

PROMPT, CONTINUED = "sql> ", "...> "
HELP = """\
Statements end with a semicolon: SHOW STREAMS; DESCRIBE S; SELECT * FROM S EMIT CHANGES; and all of ksqlDB's others.
Ctrl-C ends what is shown. Tab completes. exit, or Ctrl-D, ends the shell and the queries that were begun in it."""


def main(arguments: Sequence[str]) -> int:
    given = Arguments(
        arguments, ("--bootstrap-server", "--command-config", "--execute", "--host", "--master")
    )
    if given.files:
        raise UsageError(f"what is {given.files[0]}? `pykafkad sql run {given.files[0]}` runs a script")
    behind = Behind(*_where(given), _master(given))
    try:
        if "--execute" in given.values:
            return obey_all(behind, given.values["--execute"])
        if not sys.stdin.isatty():
            return obey_all(behind, sys.stdin.read())
        return Shell(behind).run()
    finally:
        behind.close()


def _where(given: Arguments) -> tuple[str | None, dict[str, str]]:
    """The brokers; None for one of ours."""
    configs: dict[str, str] = {}
    if "--command-config" in given.values:
        from pykafkad.tools import settings

        configs = settings.load(given.values["--command-config"])
        settings.check_security(configs)
    named = given.values.get("--bootstrap-server") or configs.get("bootstrap.servers")
    return named or os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or None, configs


def _master(given: Arguments) -> str | None:
    """Spark's, where it is to run the queries."""
    if not is_spark(given, "local"):
        return None
    return given.values.get("--master", "local[*]")


def obey_all(behind: Behind, text: str) -> int:
    """Every statement until one is refused: without somebody who types."""
    pieces, rest = tokens.split(text)
    for piece in [*pieces, rest] if rest else pieces:
        if not obeyed(behind, piece, text):
            return 1
    say_what_ends(behind, "here: `pykafkad sql run` keeps a script's going")
    return 0


class Shell:
    def __init__(self, behind: Behind) -> None:
        self._behind = behind

    def run(self) -> int:
        from pykafkad.pipelines.commands.line_editing import begin

        keep = begin(self._names)
        output.line(f"pykafkad sql: {HELP.splitlines()[0]}")
        output.flush()
        try:
            while (text := self._read()) is not None:
                self._obey(text)
        finally:
            keep()
            say_what_ends(self._behind, "with this shell")
        return 0

    def _names(self) -> Iterable[str]:
        """What Tab may complete beside the language's words."""
        catalog = self._behind.runner().catalog
        with self._behind.lock:
            from pykafkad.pipelines.functions.registry import FUNCTIONS

        sources = list(catalog.sources.values())
        columns = [column.name for source in sources for column in source.columns]
        queries = list(catalog.queries)
        return [*catalog.sources, *columns, *queries, *(function.name for function in FUNCTIONS.all())]

    def _read(self) -> str | None:
        """Lines until the last of their statements has ended; None at the end of input."""
        text = ""
        while True:
            self._show_notes()
            try:
                line = input(CONTINUED if text else PROMPT)
            except EOFError:
                output.line()
                return None
            except KeyboardInterrupt:
                output.line()
                output.flush()
                text = ""
                continue
            if not text and line.strip().rstrip(";").lower() in ("exit", "quit"):
                return None
            if not text and line.strip().rstrip(";").lower() == "help":
                output.line(HELP)
                continue
            text += f"{line}\n"
            pieces, rest = tokens.split(text)
            if rest is None:
                if pieces:
                    return text
                text = ""

    def _obey(self, text: str) -> None:
        for piece in tokens.split(text)[0]:
            if not obeyed(self._behind, piece, text):
                return

    def _show_notes(self) -> None:
        while self._behind.notes:
            output.error(self._behind.notes.popleft())
        output.flush()


def say_what_ends(behind: Behind, where: str) -> None:
    try:
        count = len(behind.runner().catalog.queries)
    except Exception:
        return  # nothing has begun
    if count:
        output.error(f"{count} {'query ends' if count == 1 else 'queries end'} {where}")


# --- a statement


def obeyed(behind: Behind, piece: Piece, text: str) -> bool:
    """Obeys a statement and shows what it answers; whether it was not refused."""
    try:
        for line in answer_lines(behind, piece):
            output.line(line)
        output.flush()
        return True
    except StatementError as error:
        output.error("\n".join([*_pointer(text, error), str(error)]))
    except KeyboardInterrupt:
        output.error("Query terminated")
    except output.Unwritable:
        raise
    except Exception as problem:
        from pykafkad.tools import failures

        output.error(failures.message_of(problem))
    return False


def _pointer(text: str, error: StatementError) -> list[str]:
    """The line of the text, and where in it."""
    lines = text.split("\n")
    if not 0 < error.at.line <= len(lines) or len(lines[error.at.line - 1]) > 200:
        return []
    line = lines[error.at.line - 1]
    return [line, " " * (error.at.column - 1) + "^"]


def answer_lines(behind: Behind, piece: Piece) -> Iterator[str]:
    runner = behind.runner()
    # Its thread imports, too: two threads that begin with different ones of modules in a ring stop each other.
    with behind.lock:
        from pykafkad.pipelines.commands.explain import width
        from pykafkad.pipelines.rendering import lines
        from pykafkad.pipelines.syntax import ast
        from pykafkad.pipelines.syntax.parser import Parsed, parse

    replaced = tokens.substitute(piece.text, runner.catalog.variables)
    statement = parse(replaced, piece.at)
    if isinstance(statement, ast.SelectStatement):
        with behind.lock:
            selected = runner.select(statement)
        yield from _selected(selected.columns, selected.rows, width())
    elif isinstance(statement, ast.PrintTopic):
        with behind.lock:
            printed = runner.printed(statement)
        yield from _as_they_come(printed)
    else:
        with behind.lock:
            answers = runner.obey(Parsed(statement, replaced))
        for answer in answers:
            yield from lines(answer, width())


def _as_they_come(lines: Iterator[str | None]) -> Iterator[str]:
    """Lines; what was shown is seen before anything is waited for."""
    for line in lines:
        if line is None:
            output.flush()
            output.check_read()
        else:
            yield line


def _selected(columns: Sequence[Column], rows: Iterator[tuple[str, ...] | None], width: int) -> Iterator[str]:
    from pykafkad.pipelines.rendering import fitted, row_lines

    widths = fitted([usual_width(column) for column in columns], width)
    yield from row_lines([column.name for column in columns], widths)
    yield "-" * (sum(widths) + 3 * len(widths) - 1)
    for row in rows:
        if row is None:
            output.flush()
            output.check_read()
        else:
            yield from row_lines(row, widths)


USUAL_WIDTHS = {
    "BOOLEAN": 5,
    "INTEGER": 11,
    "BIGINT": 20,
    "DOUBLE": 22,
    "DATE": 10,
    "TIME": 12,
    "TIMESTAMP": 23,
}
TEXT_WIDTH = 30
"""Of what may be of any length: what a column gets of a terminal that has room."""


def usual_width(column: Column) -> int:
    return max(USUAL_WIDTHS.get(str(column.type), TEXT_WIDTH), len(column.name))
