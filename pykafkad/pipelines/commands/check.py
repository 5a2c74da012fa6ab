"""`pykafkad sql check`: what is wrong with scripts, without data and without a broker."""

from __future__ import annotations

from collections.abc import Sequence

from pykafkad.pipelines.checking import Checker, read
from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.errors import StatementError
from pykafkad.tools import output

USAGE = """\
usage: pykafkad sql check FILE.sql...

Says what is wrong with the statements of scripts, as far as that can be known without data and without a broker:
syntax, names, types, keys, formats, functions. A line for each mistake; the exit code is 1 if there are any.
"""


def main(arguments: Sequence[str]) -> int:
    files = Arguments(arguments, ()).files
    if not files:
        raise UsageError("which file? FILE.sql is expected")
    return max(check(file) for file in files)


def check(file: str) -> int:
    checker = Checker()
    try:
        text = read(file)
    except StatementError as error:
        output.error(f"pykafkad: {error}")
        return 1
    count = 0
    for problem in checker.script(text, file):
        output.line(str(problem))
        count += 1
    if not count:
        output.line(f"{file}: nothing is wrong with its {checker.count} statements")
    return 1 if count else 0
