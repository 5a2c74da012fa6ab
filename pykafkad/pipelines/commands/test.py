"""`pykafkad sql test`: cases in ksql-test-runner's files, run without a broker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pykafkad.pipelines.case_files import CaseError, CaseFiles, cases_in, differences
from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.tools import output

USAGE = """\
usage: pykafkad sql test FILE.sql -i INPUT.json -o OUTPUT.json [options]
       pykafkad sql test DIR... [options]

Runs a script's queries on the records of an input file, without a broker, and compares what they write with those of
an output file, in ksql-test-runner's format. Of a directory every input.json with an output.json beside it is a case
of the script that is there or above. A difference is shown as a diff; the exit code is 1 if there is one.

  --input FILE      {"inputs": [{"topic": ..., "key": ..., "value": ..., "timestamp": ...}]}; also -i
  --output FILE     {"outputs": [...]}; also -o
  --host HOST       local (a plain loop in this process, the default) or spark
"""
SHORT = {"-i": "--input", "-o": "--output"}
HOSTS = ("local", "spark")


def main(arguments: Sequence[str]) -> int:
    given = Arguments([SHORT.get(word, word) for word in arguments], ("--input", "--output", "--host"))
    host = given.values.get("--host", "local")
    if host not in HOSTS:
        raise UsageError(f"--host {host}: one of {', '.join(HOSTS)} is there")
    missing = missing_for_spark() if host == "spark" else None
    if missing is not None:
        output.error(f"pykafkad: {missing}")
        return 1
    try:
        cases = found(given)
        results = differences(cases, host)
    except CaseError as problem:
        output.error(f"pykafkad: {problem}")
        return 1
    return said(cases, results)


def found(given: Arguments) -> list[CaseFiles]:
    files = [Path(name) for name in given.files]
    named = [given.values.get(name) for name in ("--input", "--output")]
    if any(named):
        if None in named or len(files) != 1:
            raise UsageError("FILE.sql -i INPUT.json -o OUTPUT.json is expected, or directories")
        return [CaseFiles(files[0], Path(named[0] or ""), Path(named[1] or ""))]
    if not files:
        raise UsageError("which case? FILE.sql -i INPUT.json -o OUTPUT.json is expected, or directories")
    return [case for directory in files for case in cases_in(directory)]


def said(cases: Sequence[CaseFiles], results: Sequence[Sequence[str]]) -> int:
    for case, lines in zip(cases, results, strict=True):
        if lines:
            output.line(f"{case.name}: - is expected, + came")
            for line in lines:
                output.line(f"  {line}")
    failed = sum(bool(lines) for lines in results)
    output.line(f"{len(cases) - failed} of {len(cases)} cases passed")
    return 1 if failed else 0


def missing_for_spark() -> str | None:
    """What keeps Spark from running here, in one line."""
    if any(find_spec(module) is None for module in ("pyspark", "pandas", "pyarrow")):
        return "Spark is not installed here: pip install pykafkad[pipelines]"
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(java, "bin") if java else None) is None:
        return f"there is no Java for Spark: {f'none in JAVA_HOME={java}' if java else 'no java on the PATH'}"
    return None
