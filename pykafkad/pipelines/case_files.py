"""Cases in files, as ksql-test-runner has them: statements, input.json with "inputs", output.json with "outputs".

A record says topic, key, value, and where it matters timestamp, window and headers; what an expected one leaves out is
not compared. Records are compared in order for each topic, key and window.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.testing import Case, prepared, run_cases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INPUT, OUTPUT = "input.json", "output.json"
COMPARED = ("value", "timestamp", "headers")


class CaseError(Exception):
    """A file that is no case's; str() says which and why."""


class CaseFiles(NamedTuple):
    sql: Path
    inputs: Path
    outputs: Path

    @property
    def name(self) -> str:
        return str(self.inputs.parent if self.inputs.name == INPUT else self.sql)


def cases_in(directory: Path) -> Iterator[CaseFiles]:
    """Every directory with input.json and output.json, and the script beside them or in the nearest directory above."""
    if not directory.is_dir():
        raise CaseError(f"{directory}: there is no such directory")
    found = False
    for inputs in sorted(directory.rglob(INPUT)):
        outputs = inputs.with_name(OUTPUT)
        if outputs.exists():
            found = True
            yield CaseFiles(_script(inputs.parent, directory), inputs, outputs)
    if not found:
        raise CaseError(f"{directory}: no {INPUT} with an {OUTPUT} beside it")


def _script(directory: Path, top: Path) -> Path:
    for place in (directory, *directory.parents):
        scripts = sorted(place.glob("*.sql"))
        if len(scripts) > 1:
            raise CaseError(f"{place}: which of {', '.join(script.name for script in scripts)} is it?")
        if scripts:
            return scripts[0]
        if place == top:
            break
    raise CaseError(f"{directory}: there is no *.sql beside {INPUT}, nor above")


def differences(files: list[CaseFiles], host: str) -> list[list[str]]:
    """Of each case the lines of a diff from what is expected to what came; none where they are the same."""
    cases = [_case(one) for one in files]
    expected = [_records(one.outputs, "outputs") for one in files]
    return [difference(wanted, got) for wanted, got in zip(expected, run_cases(cases, host), strict=True)]


def _case(files: CaseFiles) -> Case:
    inputs = _records(files.inputs, "inputs")
    try:
        case = prepared([files.sql.read_text(encoding="utf-8-sig")], inputs)
    except OSError as error:
        raise CaseError(f"{files.sql}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CaseError(f"{files.sql}: it is no text in UTF-8") from None
    except StatementError as error:
        raise CaseError(f"{files.sql}: {error}") from None
    for record in inputs:
        if record["topic"] not in case.formats:
            raise CaseError(f"{files.inputs}: no statement names topic {record['topic']}")
    return case


def _records(path: Path, name: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise CaseError(f"{path}: it is no JSON: {error}") from None
    records = document.get(name) if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise CaseError(f'{path}: it has no list "{name}"')
    for number, record in enumerate(records):
        if not isinstance(record, dict) or not isinstance(record.get("topic"), str):
            raise CaseError(f'{path}: {name}[{number}] has no "topic"')
    return records


def difference(expected: list[dict[str, Any]], got: list[dict[str, Any]]) -> list[str]:
    wanted, came, lines = _lanes(expected), _lanes(got), list[str]()
    for lane in {**wanted, **came}:
        want, have = wanted.get(lane, []), came.get(lane, [])
        asked = {name for record in want for name in COMPARED if name in record} or set(COMPARED[:2])
        left, right = ([_shown(lane, one, asked) for one in records] for records in (want, have))
        if left != right:
            lines += list(difflib.unified_diff(left, right, lineterm="", n=2))[2:]
    return lines


def _lanes(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        window = record.get("window")
        lane = f'{{"topic": {_json(record["topic"])}, "key": {_json(record.get("key"))}'
        if window is not None:
            lane += f', "window": [{window.get("start")}, {window.get("end")}]'
        found.setdefault(lane, []).append(record)
    return found


def _shown(lane: str, record: dict[str, Any], asked: set[str]) -> str:
    parts = [f"{_json(name)}: {_json(record.get(name))}" for name in COMPARED if name in asked]
    return ", ".join([lane, *parts]) + "}"


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Values that mean the same written the same: 1.0 as 1, fields of objects in one order."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in sorted(value.items())}
    return value
