"""Functions of dates, times and timestamps."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

from pykafkad.pipelines.expressions.moments import DAY_MILLISECONDS
from pykafkad.pipelines.expressions.numbers import EvaluationError, wrap32, wrap64
from pykafkad.pipelines.expressions.texts import EPOCH
from pykafkad.pipelines.functions.date_patterns import Fields, read, writer, zone
from pykafkad.pipelines.functions.registry import scalar
from pykafkad.pipelines.syntax.ast import UNIT_MILLISECONDS

CATEGORY = "DATE / TIME"
UTC = datetime.UTC


def _moment(milliseconds: int, at: datetime.tzinfo = UTC) -> datetime.datetime:
    try:
        moment = EPOCH.replace(tzinfo=UTC) + datetime.timedelta(milliseconds=milliseconds)
        return moment.astimezone(at)
    except (OverflowError, ValueError):
        raise EvaluationError(f"no moment is {milliseconds} ms from 1970") from None


def _days(date: datetime.date) -> int:
    return date.toordinal() - EPOCH.toordinal()


def milliseconds_of(fields: Fields, default: datetime.tzinfo = UTC) -> int:
    """The timestamp of what was read, in the zone that it names or else in the default one."""
    local = datetime.datetime.combine(fields.date, datetime.time()) + datetime.timedelta(
        seconds=fields.seconds
    )
    offset = local.replace(tzinfo=fields.zone or default).utcoffset() or datetime.timedelta()
    seconds = (local - offset - EPOCH) // datetime.timedelta(seconds=1)
    return seconds * 1000 + fields.milliseconds


# --- as text


@scalar("FORMAT_TIMESTAMP", CATEGORY, "(TIMESTAMP, STRING) STRING")
@scalar("TIMESTAMPTOSTRING", CATEGORY, "(BIGINT, STRING) STRING")
def format_timestamp(milliseconds: int, pattern: str) -> str:
    """A moment as text in a pattern of Java's DateTimeFormatter, in a zone (UTC where none is said)."""
    return writer(pattern)(_moment(milliseconds))


@scalar("FORMAT_TIMESTAMP", CATEGORY, "(TIMESTAMP, STRING, STRING) STRING")
@scalar("TIMESTAMPTOSTRING", CATEGORY, "(BIGINT, STRING, STRING) STRING")
def format_timestamp_in(milliseconds: int, pattern: str, name: str) -> str:
    return writer(pattern)(_moment(milliseconds, zone(name)))


@scalar("FORMAT_DATE", CATEGORY, "(DATE, STRING) STRING")
@scalar("DATETOSTRING", CATEGORY, "(INTEGER, STRING) STRING")
def format_date(days: int, pattern: str) -> str:
    """A date as text in a pattern of Java's DateTimeFormatter."""
    return writer(pattern)(_moment(days * DAY_MILLISECONDS))


@scalar("FORMAT_TIME", CATEGORY, "(TIME, STRING) STRING")
def format_time(milliseconds: int, pattern: str) -> str:
    """A time as text in a pattern of Java's DateTimeFormatter."""
    return writer(pattern)(_moment(milliseconds))


# --- out of text


@scalar("PARSE_TIMESTAMP", CATEGORY, "(STRING, STRING) TIMESTAMP")
@scalar("STRINGTOTIMESTAMP", CATEGORY, "(STRING, STRING) BIGINT")
def parse_timestamp(text: str, pattern: str) -> int:
    """The moment that text in a pattern of Java's DateTimeFormatter says, in a zone where the text names none."""
    return milliseconds_of(read(pattern, text))


@scalar("PARSE_TIMESTAMP", CATEGORY, "(STRING, STRING, STRING) TIMESTAMP")
@scalar("STRINGTOTIMESTAMP", CATEGORY, "(STRING, STRING, STRING) BIGINT")
def parse_timestamp_in(text: str, pattern: str, name: str) -> int:
    return milliseconds_of(read(pattern, text), zone(name))


@scalar("PARSE_DATE", CATEGORY, "(STRING, STRING) DATE")
@scalar("STRINGTODATE", CATEGORY, "(STRING, STRING) INTEGER")
def parse_date(text: str, pattern: str) -> int:
    """The date that text in a pattern of Java's DateTimeFormatter says."""
    return _days(read(pattern, text).date)


@scalar("PARSE_TIME", CATEGORY, "(STRING, STRING) TIME")
def parse_time(text: str, pattern: str) -> int:
    """The time that text in a pattern of Java's DateTimeFormatter says."""
    fields = read(pattern, text)
    return fields.seconds * 1000 + fields.milliseconds


# --- sums


def _duration(unit: str, amount: int) -> int:
    return UNIT_MILLISECONDS[unit] * amount


@scalar("TIMESTAMPADD", CATEGORY, "(UNIT, INTEGER, TIMESTAMP) TIMESTAMP")
def timestamp_add(unit: str, amount: int, milliseconds: int) -> int:
    """A timestamp that is so much later."""
    return wrap64(milliseconds + _duration(unit, amount))


@scalar("TIMESTAMPSUB", CATEGORY, "(UNIT, INTEGER, TIMESTAMP) TIMESTAMP")
def timestamp_sub(unit: str, amount: int, milliseconds: int) -> int:
    """A timestamp that is so much earlier."""
    return timestamp_add(unit, -amount, milliseconds)


@scalar("TIMEADD", CATEGORY, "(UNIT, INTEGER, TIME) TIME")
def time_add(unit: str, amount: int, milliseconds: int) -> int:
    """A time that is so much later; it begins anew at midnight."""
    return (milliseconds + _duration(unit, amount)) % DAY_MILLISECONDS


@scalar("TIMESUB", CATEGORY, "(UNIT, INTEGER, TIME) TIME")
def time_sub(unit: str, amount: int, milliseconds: int) -> int:
    """A time that is so much earlier; it begins anew at midnight."""
    return time_add(unit, -amount, milliseconds)


@scalar("DATEADD", CATEGORY, "(UNIT, INTEGER, DATE) DATE")
def date_add(unit: str, amount: int, days: int) -> int:
    """A date that is so much later."""
    return wrap32((days * DAY_MILLISECONDS + _duration(unit, amount)) // DAY_MILLISECONDS)


@scalar("DATESUB", CATEGORY, "(UNIT, INTEGER, DATE) DATE")
def date_sub(unit: str, amount: int, days: int) -> int:
    """A date that is so much earlier."""
    return date_add(unit, -amount, days)


# --- between types


@scalar("CONVERT_TZ", CATEGORY, "(TIMESTAMP, STRING, STRING) TIMESTAMP")
def convert_zone(milliseconds: int, of: str, to: str) -> int:
    """The timestamp whose clock shows in one zone what a timestamp's shows in another."""
    moment = _moment(milliseconds)
    return milliseconds - _offset(moment, zone(of)) + _offset(moment, zone(to))


def _offset(moment: datetime.datetime, at: datetime.tzinfo) -> int:
    offset = moment.astimezone(at).utcoffset() or datetime.timedelta()
    return offset // datetime.timedelta(milliseconds=1)


@scalar("FROM_DAYS", CATEGORY, "(INTEGER) DATE")
def from_days(days: int) -> int:
    """The date that is so many days after 1970-01-01."""
    return days


@scalar("FROM_UNIXTIME", CATEGORY, "(BIGINT) TIMESTAMP")
def from_unix_time(milliseconds: int) -> int:
    """The timestamp that is so many milliseconds after 1970."""
    return milliseconds


@scalar("UNIX_DATE", CATEGORY, "() INTEGER")
def today() -> int:
    """The days from 1970-01-01 to today, or to a date."""
    return int(time.time() * 1000) // DAY_MILLISECONDS


@scalar("UNIX_DATE", CATEGORY, "(DATE) INTEGER")
def unix_date(days: int) -> int:
    return days


@scalar("UNIX_TIMESTAMP", CATEGORY, "() BIGINT")
def now() -> int:
    """The milliseconds from 1970 to now, or to a timestamp."""
    return int(time.time() * 1000)


@scalar("UNIX_TIMESTAMP", CATEGORY, "(TIMESTAMP) BIGINT")
def unix_timestamp(milliseconds: int) -> int:
    return milliseconds


Reader = Callable[[str], int]


def timestamp_reader(pattern: str) -> Reader:
    """What reads TIMESTAMP_FORMAT's texts, as WITH (timestamp=..., timestamp_format=...) says."""
    return lambda text: parse_timestamp(text, pattern)
