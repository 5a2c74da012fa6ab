"""Times as the tools take and print them: ISO 8601 instants and durations, SimpleDateFormat patterns."""

from __future__ import annotations

import time

DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS = 86_400_000, 3_600_000, 60_000, 1000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def parse_datetime_ms(text: str) -> int:
    """`2026-01-31T23:59:59.999`, followed by Z, +01, +0100 or +01:00; without one of these it is in UTC."""
    import re
    from datetime import datetime, timedelta, timezone

    if "T" not in text:
        raise ValueError("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    pattern = r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d(?::?\d\d)?)?.*"
    found = re.fullmatch(pattern, text, re.DOTALL)
    if found is None:
        raise ValueError(f'Unparseable date: "{text}"')
    year, month, day, hour, minute, second, millisecond = map(int, found.groups()[:7])
    zone = found[8] or "Z"
    offset_minutes = 0
    if zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset_minutes = int(zone[0] + "1") * (int(digits[:2]) * 60 + int(digits[2:]))
    try:
        where = timezone(timedelta(minutes=offset_minutes))
        moment = datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=where)
    except ValueError:
        raise ValueError(f'Unparseable date: "{text}"') from None
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
    return (moment - epoch) // timedelta(milliseconds=1)


def parse_duration_ms(text: str) -> int:
    """`PnDTnHnMn.nS`, each part with an optional sign; a leading minus negates all of them."""
    import re

    number = r"([+-]?\d+)"
    pattern = rf"([+-]?)P(?:{number}D)?(T(?:{number}H)?(?:{number}M)?(?:([+-]?\d+)(?:[.,](\d{{0,9}}))?S)?)?"
    found = re.fullmatch(pattern, text, re.IGNORECASE)
    if found is None or text.upper().endswith(("T", "P")):
        raise ValueError("Text cannot be parsed to a Duration")
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    total = int(days or 0) * DAY_MS + int(hours or 0) * HOUR_MS + int(minutes or 0) * MINUTE_MS
    part = int((fraction or "").ljust(9, "0")) // 1_000_000
    total += int(seconds or 0) * SECOND_MS + (-part if (seconds or "").startswith("-") else part)
    return -total if sign == "-" else total


def format_date(pattern: str, moment_ms: int) -> str:
    """A time in the local time zone by a SimpleDateFormat pattern."""
    local = time.localtime(moment_ms // 1000)
    out = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = pattern.find("'", at + 1)
            if end < 0:
                raise ValueError("Unterminated quote")
            out.append(pattern[at + 1 : end] or "'")
            at = end + 1
            continue
        end = at
        while end < len(pattern) and pattern[end] == letter:
            end += 1
        if letter.isascii() and letter.isalpha():
            out.append(_field(letter, end - at, local, moment_ms))
        else:
            out.append(pattern[at:end])
        at = end
    return "".join(out)


def _field(letter: str, width: int, local: time.struct_time, moment_ms: int) -> str:
    numbers = {
        "d": local.tm_mday,
        "D": local.tm_yday,
        "H": local.tm_hour,
        "k": local.tm_hour or 24,
        "K": local.tm_hour % 12,
        "h": local.tm_hour % 12 or 12,
        "m": local.tm_min,
        "s": local.tm_sec,
        "S": moment_ms % 1000,
        "u": local.tm_wday + 1,
    }
    if letter in numbers:
        return str(numbers[letter]).zfill(width)
    if letter in "yY":
        return f"{local.tm_year % 100:02}" if width == 2 else str(local.tm_year).zfill(width)
    if letter in "ML":
        named = {3: "%b"}.get(width, "%B")
        return str(local.tm_mon).zfill(width) if width < 3 else time.strftime(named, local)
    directives = {
        "E": "%a" if width < 4 else "%A",
        "a": "%p",
        "z": "%Z",
        "Z": "%z",
        "X": "%z",
        "G": "AD",
    }
    if letter not in directives:
        raise ValueError(f"Illegal pattern character '{letter}'")
    return time.strftime(directives[letter], local)
