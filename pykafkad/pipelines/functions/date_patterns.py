"""Java's DateTimeFormatter patterns: 'yyyy-MM-dd HH:mm:ss zzz' as what writes and what reads moments.

A pattern is cut into runs of a letter, quoted text and other characters. Each letter has a writer and the regular
expression of a reader; names of months, days and zones are read whatever their case. What a text does not say is
the first of its kind: month, day, hour ...
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pykafkad.pipelines.expressions.numbers import EvaluationError

MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

_ABBREVIATIONS = {
    "America/Los_Angeles": ("PST", "PDT", "PT"),
    "America/Denver": ("MST", "MDT", "MT"),
    "America/Chicago": ("CST", "CDT", "CT"),
    "America/New_York": ("EST", "EDT", "ET"),
    "Europe/London": ("BST",),
    "Europe/Paris": ("CET", "CEST"),
    "Europe/Athens": ("EET", "EEST"),
    "Asia/Kolkata": ("IST",),
    "Asia/Tokyo": ("JST",),
    "Australia/Sydney": ("AEST", "AEDT"),
    "UTC": ("UTC", "GMT", "Z", "UT"),
}
_ZONES = {short: zone for zone, names in _ABBREVIATIONS.items() for short in names}


@lru_cache(maxsize=512)
def zone(name: str) -> datetime.tzinfo:
    """A zone by its name, its abbreviation or its offset."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", name)
    if offset:
        sign, hours, minutes, seconds = offset.groups()
        delta = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        return datetime.timezone(-delta if sign == "-" else delta)
    known = _ZONES.get(name.upper(), name)
    if known == "UTC":
        return datetime.UTC
    try:
        return ZoneInfo(known)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"Unknown time-zone ID: {name}") from None


class Part(NamedTuple):
    """A run of a letter, or (without one) text as it stands."""

    letter: str
    size: int
    text: str = ""


def parts(pattern: str) -> list[Part]:
    found: list[Part] = []
    for run in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", pattern, re.DOTALL):
        quoted, letter, other = run.groups()
        if quoted is not None:
            found.append(Part("", 0, quoted.replace("''", "'") or "'"))
        elif letter:
            found.append(Part(letter, len(run.group())))
        elif other == "'":
            raise EvaluationError(f"Pattern ends with an incomplete string literal: {pattern}")
        elif other not in "[]":
            found.append(Part("", 0, other))
    return found


# --- writing

Moment = datetime.datetime


def _number(value: Callable[[Moment], int]) -> Callable[[Moment, int], str]:
    return lambda moment, count: str(value(moment)).zfill(count)


def _year(moment: Moment, count: int) -> str:
    return f"{moment.year % 100:02}" if count == 2 else str(moment.year).zfill(count)


def _named(names: list[str], value: Callable[[Moment], int]) -> Callable[[Moment, int], str]:
    def write(moment: Moment, count: int) -> str:
        place = value(moment)
        if count <= 2:
            return str(place).zfill(count)
        name = names[place - 1]
        return name[:3] if count == 3 else name if count == 4 else name[:1]

    return write


def _day_name(moment: Moment, count: int) -> str:
    name = DAYS[moment.weekday()]
    return name if count == 4 else name[:1] if count == 5 else name[:3]


def _fraction(moment: Moment, count: int) -> str:
    return f"{moment.microsecond:06}000"[:count]


def _offset(moment: Moment, count: int, colon: bool) -> str:
    delta = moment.utcoffset() or datetime.timedelta()
    total = int(delta.total_seconds())
    hours, minutes = divmod(abs(total) // 60, 60)
    sign = "-" if total < 0 else "+"
    if count == 1 and not minutes:
        return f"{sign}{hours:02}"
    return f"{sign}{hours:02}{':' if colon else ''}{minutes:02}"


def _capital_x(moment: Moment, count: int) -> str:
    return "Z" if not moment.utcoffset() else _offset(moment, count, count in (3, 5))


def _localised(moment: Moment, count: int) -> str:
    text = _offset(moment, 3, True)
    return "GMT" if text == "+00:00" else f"GMT{text}"


def _zone_id(moment: Moment, count: int) -> str:
    return getattr(moment.tzinfo, "key", None) or moment.tzname() or "Z"


WRITERS: dict[str, Callable[[Moment, int], str]] = {
    "y": _year,
    "u": _year,
    "M": _named(MONTHS, lambda moment: moment.month),
    "L": _named(MONTHS, lambda moment: moment.month),
    "d": _number(lambda moment: moment.day),
    "D": _number(lambda moment: moment.timetuple().tm_yday),
    "E": _day_name,
    "e": _number(lambda moment: moment.isoweekday() % 7 + 1),
    "a": lambda moment, count: "AM" if moment.hour < 12 else "PM",
    "H": _number(lambda moment: moment.hour),
    "k": _number(lambda moment: moment.hour or 24),
    "h": _number(lambda moment: moment.hour % 12 or 12),
    "K": _number(lambda moment: moment.hour % 12),
    "m": _number(lambda moment: moment.minute),
    "s": _number(lambda moment: moment.second),
    "S": _fraction,
    "n": _number(lambda moment: moment.microsecond * 1000),
    "Q": _number(lambda moment: (moment.month + 2) // 3),
    "G": lambda moment, count: "AD",
    "z": lambda moment, count: moment.tzname() or "Z",
    "V": _zone_id,
    "Z": lambda moment, count: _offset(moment, 3, count == 5) if count != 4 else _localised(moment, count),
    "X": _capital_x,
    "x": lambda moment, count: _offset(moment, count, count in (3, 5)),
    "O": _localised,
}


@lru_cache(maxsize=512)
def writer(pattern: str) -> Callable[[Moment], str]:
    steps: list[Callable[[Moment], str]] = []
    for part in parts(pattern):
        if part.letter:
            steps.append(_step(part, pattern))
        else:
            steps.append(lambda moment, text=part.text: text)  # type: ignore[misc]
    return lambda moment: "".join(step(moment) for step in steps)


def _step(part: Part, pattern: str) -> Callable[[Moment], str]:
    write, count = WRITERS.get(part.letter), part.size
    if write is None:
        raise EvaluationError(f"Unknown pattern letter: {part.letter} in {pattern}")
    return lambda moment: write(moment, count)


# --- reading


def _digits(part: Part, following: bool) -> str:
    """Digits of a number: as many as letters where another number follows at once, else at least as many."""
    return rf"\d{{{part.size}}}" if following or part.size == 2 else r"\d+"


def _names(names: list[str], size: int | None) -> str:
    return "|".join(name[:size] for name in names)


def _zone_expression(part: Part) -> str:
    if part.letter in "zVO":
        return r"[A-Za-z][A-Za-z_/]*(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}(?::?\d{2})?"
    return r"Z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?"


def _expression(part: Part, following: bool) -> str:
    letter, count = part.letter, part.size
    if letter in "yu":
        return r"\d{2}" if count == 2 else rf"-?\d{{{count}}}" if following else rf"-?\d{{{count},}}"
    if letter in "ML" and count > 2:
        return _names(MONTHS, 3 if count == 3 else None)
    if letter == "E":
        return _names(DAYS, None if count == 4 else 3)
    if letter == "a":
        return "AM|PM"
    if letter == "S":
        return rf"\d{{{count}}}"
    if letter in "zVOZXx":
        return _zone_expression(part)
    if letter == "G":
        return "AD|CE"
    if letter in "dDHkhKmsnQe" or letter in "ML":
        return _digits(part, following)
    raise EvaluationError(f"Unknown pattern letter: {letter}")


class Reading(NamedTuple):
    expression: re.Pattern[str]
    parts: list[Part]
    """Of each group of the expression."""


@lru_cache(maxsize=512)
def _reading(pattern: str) -> Reading:
    cut = parts(pattern)
    groups, text = [], ""
    for place, part in enumerate(cut):
        if not part.letter:
            text += re.escape(part.text)
            continue
        following = place + 1 < len(cut) and cut[place + 1].letter in tuple("yuMLdDHkhKmsSn")
        text += f"({_expression(part, following)})"
        groups.append(part)
    return Reading(re.compile(text, re.IGNORECASE | re.ASCII), groups)


class Fields(NamedTuple):
    """What a text said of a moment."""

    date: datetime.date
    seconds: int
    milliseconds: int
    zone: datetime.tzinfo | None


def read(pattern: str, text: str) -> Fields:
    reading = _reading(pattern)
    found = reading.expression.fullmatch(text)
    if found is None:
        raise EvaluationError(f"Text '{text}' could not be parsed with pattern '{pattern}'")
    said = {part.letter: (part, value) for part, value in zip(reading.parts, found.groups(), strict=True)}
    try:
        return Fields(_date(said), _second(said), _millisecond(said), _zone(said))
    except ValueError as error:
        raise EvaluationError(
            f"Text '{text}' could not be parsed with pattern '{pattern}': {error}"
        ) from None


Said = dict[str, tuple[Part, str]]


def _of(said: Said, letters: str, default: int) -> int:
    return next((int(said[letter][1]) for letter in letters if letter in said), default)


def _date(said: Said) -> datetime.date:
    year = _of(said, "yu", 1970)
    if any(letter in said and said[letter][0].size == 2 for letter in "yu"):
        year += 2000
    if "D" in said:
        return datetime.date(year, 1, 1) + datetime.timedelta(days=_of(said, "D", 1) - 1)
    return datetime.date(year, _month(said), _of(said, "d", 1))


def _month(said: Said) -> int:
    for letter in "ML":
        if letter in said:
            value = said[letter][1]
            if value.isdigit():
                return int(value)
            return [month[:3] for month in MONTHS].index(value[:3].capitalize()) + 1
    return 1


def _second(said: Said) -> int:
    if "h" in said or "K" in said:
        afternoon = "a" in said and said["a"][1].upper() == "PM"
        hour = _of(said, "hK", 0) % 12 + 12 * afternoon
    else:
        hour = _of(said, "Hk", 0) % (24 if "k" in said else 1 << 30)
    time = datetime.time(hour, _of(said, "m", 0), _of(said, "s", 0))
    return (time.hour * 60 + time.minute) * 60 + time.second


def _millisecond(said: Said) -> int:
    if "S" in said:
        return int(said["S"][1].ljust(3, "0")[:3])
    return _of(said, "n", 0) // 1_000_000


def _zone(said: Said) -> datetime.tzinfo | None:
    name = next((said[letter][1] for letter in "zVOZXx" if letter in said), None)
    return None if name is None else zone(name)
