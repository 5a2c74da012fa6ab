"""readline for the shell: its history, and what Tab completes. Where Python has no readline there is neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

HISTORY_LINES = 5000
DELIMITERS = " \t\n\"'`()[]<>,;=+-*/%."
_WORDS = """
    ADD ADVANCE ALL ALTER AND ARRAY AS ASSERT BEGINNING BETWEEN BIGINT BOOLEAN BY BYTES CASE CAST CHANGES COLUMN CREATE
    DATE DECIMAL DEFINE DELETE DESCRIBE DISTINCT DOUBLE DROP ELSE EMIT END EXISTS EXPLAIN EXTENDED FALSE FINAL FROM FULL
    FUNCTION FUNCTIONS GRACE GROUP HAVING HEADER HEADERS HOPPING IF IN INNER INSERT INTEGER INTO IS JOIN KEY LEFT LIKE
    LIMIT LIST MAP NOT NULL ON OR OUTER PARTITION PAUSE PERIOD PRIMARY PRINT PROPERTIES QUERIES REPLACE RESUME RETENTION
    RIGHT RUN SCRIPT SELECT SESSION SET SHOW SIZE SOURCE STREAM STREAMS STRING STRUCT TABLE TABLES TERMINATE THEN TIME
    TIMEOUT TIMESTAMP TOPIC TOPICS TRUE TUMBLING TYPE TYPES UNDEFINE UNSET VALUES VARCHAR VARIABLES WHEN WHERE WINDOW
    WITH WITHIN ROWTIME WINDOWSTART WINDOWEND KAFKA_TOPIC VALUE_FORMAT KEY_FORMAT FORMAT PARTITIONS REPLICAS
    TIMESTAMP_FORMAT exit help
"""
WORDS = _WORDS.split()


def history_file() -> str | None:
    from pykafkad.places import data_directory

    directory = data_directory()
    return None if directory is None else os.path.join(directory, "sql_history")


def begin(names: Callable[[], Iterable[str]]) -> Callable[[], None]:
    """Sets readline up; what it gives keeps the history at the end. `names` are those that exist now."""
    try:
        import readline
    except ImportError:
        return lambda: None
    file = history_file()
    if file is not None:
        try:
            readline.read_history_file(file)
        except OSError:
            pass  # there is none yet
    readline.set_history_length(HISTORY_LINES)
    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(completer(names))
    readline.parse_and_bind("tab: complete")

    def keep() -> None:
        if file is not None:
            try:
                os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
                readline.write_history_file(file)
            except OSError:
                pass  # a home that cannot be written to is no reason to complain

    return keep


def completer(names: Callable[[], Iterable[str]]) -> Callable[[str, int], str | None]:
    """readline's: the n-th of what may follow."""
    found: list[str] = []

    def complete(text: str, number: int) -> str | None:
        nonlocal found
        if number == 0:
            found = matching(text, names())
        return found[number] if number < len(found) else None

    return complete


def matching(text: str, names: Iterable[str]) -> list[str]:
    """Names and words that begin with the text, whatever its case; words in the case that is typed."""
    lower = text.islower()
    found = [name for name in sorted(set(names)) if name.upper().startswith(text.upper())]
    found += [word for word in WORDS if word.upper().startswith(text.upper())]
    return list(dict.fromkeys(f"{one.lower() if lower and one.isupper() else one} " for one in found))
