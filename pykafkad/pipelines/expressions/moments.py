"""Dates, times and timestamps out of text, as CAST and comparisons with text read them: ISO, of which the end may
be missing."""

from __future__ import annotations

import datetime
import re

from pykafkad.pipelines.expressions.numbers import EvaluationError
from pykafkad.pipelines.expressions.texts import EPOCH

DAY_MILLISECONDS = 86_400_000

_DATE = r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_TIME = r"(\d{1,2})(?::(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?"
_ZONE = r"(Z|[+-]\d{2}(?::?\d{2})?)?"
_TIMESTAMP = re.compile(f"{_DATE}(?:[T ](?:{_TIME})?{_ZONE})?\\Z", re.ASCII)
_TIME_ONLY = re.compile(_TIME + r"\Z", re.ASCII)


def _days(year: str, month: str | None, day: str | None) -> int:
    date = datetime.date(int(year), int(month or 1), int(day or 1))
    return date.toordinal() - EPOCH.toordinal()


def _milliseconds(hour: str | None, minute: str | None, second: str | None, part: str | None) -> int:
    time = datetime.time(int(hour or 0), int(minute or 0), int(second or 0))
    whole = (time.hour * 60 + time.minute) * 60 + time.second
    return whole * 1000 + int((part or "").ljust(3, "0")[:3])


def _zone_milliseconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
    return -offset if zone[0] == "-" else offset


def parse_timestamp(text: str) -> int:
    found = _TIMESTAMP.match(text)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second, part, zone = found.groups()
        local = _days(year, month, day) * DAY_MILLISECONDS + _milliseconds(hour, minute, second, part)
    except ValueError:
        raise EvaluationError(
            f"Failed to parse timestamp '{text}'. Required format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", "
            "with an optional zone"
        ) from None
    return local - _zone_milliseconds(zone)


def parse_date(text: str) -> int:
    found = re.fullmatch(_DATE, text, re.ASCII)
    try:
        if found is None:
            raise ValueError
        return _days(*found.groups())
    except ValueError:
        raise EvaluationError(f"Failed to parse date '{text}'. Required format is: \"yyyy-MM-dd\"") from None


def parse_time(text: str) -> int:
    found = _TIME_ONLY.match(text)
    try:
        if found is None:
            raise ValueError
        return _milliseconds(*found.groups())
    except ValueError:
        raise EvaluationError(
            f"Failed to parse time '{text}'. Required format is: \"HH:mm:ss.SSS\""
        ) from None
