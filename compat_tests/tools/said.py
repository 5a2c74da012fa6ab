"""A tool's output for one broker, as lines of fields that can be compared with another broker's.

Tables are as wide as their widest cell, so a line is compared by its words, and a line of JSON by its content, with
sorted keys. What is each broker's own (its address, ids, directories, the time) is replaced by a word for it.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from compat_tests.tools.meant import OWN
from compat_tests.tools.toolbox import Printed

STACK = re.compile(r"\s+(at |\.\.\. \d+ more)")  # the place in the tool's code where an error occurred


class Said(NamedTuple):
    code: int | None
    out: list[str]
    err: list[str]


def said(printed: Printed, own: dict[str, str]) -> Said:
    return Said(printed.code, lines(printed.out, own), lines(printed.err, own))


def lines(text: str, own: dict[str, str]) -> list[str]:
    said = (normal(line, own) for line in text.splitlines() if not STACK.match(line))
    return [words for words in said if words]


def normal(line: str, own: dict[str, str]) -> str:
    line = canonical(json_in(line)) or " ".join(line.split())
    for text, word in own.items():
        line = line.replace(text, word)
    for pattern, word in OWN:
        line = re.sub(pattern, word, line)
    return line


def json_in(line: str) -> Any:
    if not line.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


def canonical(value: Any) -> str | None:
    """JSON with keys and lists in a fixed order: the tools print both in the order of hash maps."""
    return None if value is None else json.dumps(_sorted(value), sort_keys=True)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=lambda member: json.dumps(member, sort_keys=True))
    return value
