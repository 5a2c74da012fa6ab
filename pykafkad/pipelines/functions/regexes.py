"""Functions of regular expressions, which are Python's: what Java writes otherwise is translated."""

from __future__ import annotations

import re
from functools import lru_cache

from pykafkad.pipelines.functions.registry import scalar

CATEGORY = "REGULAR EXPRESSION"


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern).replace(r"\z", r"\Z"))


def _group(found: re.Match[str], group: int) -> str | None:
    value = found.group(group)
    return None if value is None else str(value)


@scalar("REGEXP_EXTRACT", CATEGORY, "(STRING, STRING) STRING")
def extract(pattern: str, text: str) -> str | None:
    """The first part of text that a regular expression matches, or the part of one of its groups."""
    return extract_group(pattern, text, 0)


@scalar("REGEXP_EXTRACT", CATEGORY, "(STRING, STRING, INTEGER) STRING")
def extract_group(pattern: str, text: str, group: int) -> str | None:
    found = compiled(pattern).search(text)
    return None if found is None or not 0 <= group <= found.re.groups else _group(found, group)


@scalar("REGEXP_EXTRACT_ALL", CATEGORY, "(STRING, STRING) ARRAY<STRING>")
def extract_all(pattern: str, text: str) -> list[str | None] | None:
    """All parts of text that a regular expression matches, or those of one of its groups."""
    return extract_all_groups(pattern, text, 0)


@scalar("REGEXP_EXTRACT_ALL", CATEGORY, "(STRING, STRING, INTEGER) ARRAY<STRING>")
def extract_all_groups(pattern: str, text: str, group: int) -> list[str | None] | None:
    expression = compiled(pattern)
    if not 0 <= group <= expression.groups:
        return None
    return [_group(found, group) for found in expression.finditer(text)]


@scalar("REGEXP_REPLACE", CATEGORY, "(STRING, STRING, STRING) STRING")
def replace(text: str, pattern: str, new: str) -> str:
    """Text with every match of a regular expression replaced; $1 stands for a group."""
    template = re.sub(r"\\(.)|\$(\d)|\$\{(\w+)\}", _template_part, new.replace("\\", "\\\\"))
    return compiled(pattern).sub(template, text)


def _template_part(found: re.Match[str]) -> str:
    group = found.group(2) or found.group(3)
    return found.group(0) if group is None else rf"\g<{group}>"


@scalar("REGEXP_SPLIT_TO_ARRAY", CATEGORY, "(STRING, STRING) ARRAY<STRING>")
def split(text: str, pattern: str) -> list[str]:
    """The parts of text between the matches of a regular expression."""
    parts, end = [], 0
    for found in compiled(pattern).finditer(text):
        if found.end() > found.start() or 0 < found.start() < len(text):
            parts.append(text[end : found.start()])
            end = found.end()
    return [*parts, text[end:]]
