"""How names are written: bare where that means the same, else in backticks."""

from __future__ import annotations

import re

_RESERVED = """
    AND AS BETWEEN BY CASE CAST CREATE DELETE DESCRIBE DISTINCT DROP ELSE END EXISTS FALSE FROM FULL GROUP HAVING HOPPING
    IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR OUTER RIGHT SELECT TERMINATE THEN TRUE TUMBLING WHEN WHERE
    WINDOW WITH WITHIN
"""
RESERVED = frozenset(_RESERVED.split())
"""Words that are no names unless they stand in backticks. Every other word of the language may be a column."""

_BARE = re.compile(r"[A-Z_@][A-Z0-9_@]*\Z")


def in_backticks(name: str) -> str:
    """The name with its backticks doubled, to be put between two."""
    return name.replace("`", "``")


def written(name: str) -> str:
    """The name as SQL that reads as it again."""
    return name if _BARE.match(name) and name not in RESERVED else f"`{in_backticks(name)}`"
