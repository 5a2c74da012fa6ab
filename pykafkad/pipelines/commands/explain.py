"""`pykafkad sql explain`: the plans of a script's queries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from shutil import get_terminal_size

from pykafkad.pipelines.checking import Checker, read
from pykafkad.pipelines.commands.arguments import Arguments
from pykafkad.pipelines.rendering import lines
from pykafkad.pipelines.running.explaining import explained
from pykafkad.tools import output

USAGE = """\
usage: pykafkad sql explain FILE.sql

Shows what each query of a script makes and the operators that it runs, without data and without a broker.
"""

NO_TERMINAL = 1000


def width() -> int:
    """Of the terminal; what goes elsewhere is not wrapped."""
    return get_terminal_size((100, 24)).columns if os.isatty(1) else NO_TERMINAL


def main(arguments: Sequence[str]) -> int:
    file = Arguments(arguments, ()).file()
    checker = Checker()
    problems = list(checker.script(read(file), file))
    for problem in problems:
        output.error(str(problem))
    for query in checker.session.catalog.queries.values():
        output.line(f"{query.id}: {query.text}")
        for answer in explained(checker.session.meanings[query.id]):
            for line in lines(answer, width()):
                output.line(line)
        output.line()
    return 1 if problems else 0
