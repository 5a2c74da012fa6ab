"""A record's key or value as columns: what Spark reads just as our formats do, and a condition for all else.

JSON is read into the exact types. Whatever needs more than that (a number in text, a field in another spelling, what is
no JSON) is odd. So that nothing may stand behind the object, it is read as a field of one that goes on behind it. A
record's fields are spelt as the columns, or all in lower case.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats import Format
from pykafkad.pipelines.formats.delimited import DelimitedFormat
from pykafkad.pipelines.formats.json_format import JsonFormat
from pykafkad.pipelines.formats.kafka import KafkaFormat, NoneFormat
from pykafkad.pipelines.spark_sql.sql import SPARK_TYPES, NotCompiled, all_of, any_of, quoted
from pykafkad.pipelines.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP


class Reading(NamedTuple):
    parsed: str | None
    """The text of a column that the others are taken out of, where one is needed: it is called as it was asked for."""
    values: list[str]
    odd: list[str]
    """Conditions; one that is null counts as true."""


def reading(format: Format, raw: str, parsed: str, is_key: bool) -> Reading:
    """`raw` is the column of bytes, `parsed` the name of the column for what is read once."""
    if type(format) is NoneFormat or not format.columns:
        if type(format) not in (NoneFormat, KafkaFormat, JsonFormat, DelimitedFormat) or not is_key:
            raise NotCompiled(f"format {format.name} without columns")
        return Reading(None, [], [])
    if is_key and len(format.columns) > 1:
        raise NotCompiled("a key of several columns")
    if type(format) is JsonFormat:
        found = _json(format, raw, parsed)
    elif type(format) is DelimitedFormat:
        found = _delimited(format, raw, parsed)
    elif type(format) is KafkaFormat:
        found = _kafka(format, raw)
    else:
        raise NotCompiled(f"format {format.name}")
    if is_key:  # a record without one has null for it
        return found._replace(odd=[f"({raw} IS NOT NULL AND coalesce({any_of(*found.odd)}, true))"])
    return found._replace(odd=[f"{raw} IS NULL", *found.odd])


# --- JSON

STRICT = {
    "columnNameOfCorruptRecord": "bad",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
JSON_TYPES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, DATE, TIME, TIMESTAMP)
NUMBER = r"-?[0-9]+(?:[.][0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)"
REREAD = quoted(rf'^(?:[{{\[]|{NUMBER}$|-0$|"?-?Infinity)')


def _reread(value: str) -> str:
    """Of a STRING: it may have been no text, but an object, or a number that was written otherwise. How it begins is
    looked at first: comparisons are cheap, and a pattern is not."""
    first = " OR ".join(
        [f"{value} < ':'", *(f"({value} >= '{one}' AND {value} < '{after}')" for one, after in BEGINNINGS)]
    )
    return f"coalesce(({first}) AND rlike({value}, {REREAD}), false)"


BEGINNINGS = (("I", "J"), ("[", r"\\"), ("{", "|"))
"""How an object or an infinity begins, and the character behind. Digits, the minus and the quote are before the colon."""


def _capitals_in(names: list[str]) -> str:
    """Letters beyond ASCII whose capitals are ASCII and in a name: fields are found whatever their case."""
    found = (chr(code) for code in (*range(0x80, 0xD800), *range(0xE000, 0x10000)))
    return "".join(
        one for one in found if one.upper().isascii() and any(one.upper() in name for name in names)
    )


def _json(format: JsonFormat, raw: str, parsed: str) -> Reading:
    columns = format.columns
    for column in columns:
        if column.type not in JSON_TYPES or not re.fullmatch(r"[A-Za-z0-9_ $.-]+", column.name):
            raise NotCompiled(f"a JSON field {column.name} of type {column.type}")
    text = f"CAST({raw} AS STRING)"
    wrapped = format.wraps
    spelt = _spellings([column.name for column in columns]) if wrapped else {}
    of = _struct(columns, spelt) if wrapped else SPARK_TYPES[columns[0].type]
    schema = quoted(f"v {of}, e INT, bad STRING")
    options = ", ".join(f"'{name}', '{value}'" for name, value in STRICT.items())
    made = f"""from_json(concat('{{"v":', {text}, ',"e":1}}'), {schema}, map({options}))"""
    exact = [f"{parsed}.v.`{column.name}`" for column in columns] if wrapped else [f"{parsed}.v"]
    values = [
        f"coalesce({one}, {parsed}.v.`{spelt[column.name]}`)" if column.name in spelt else one
        for one, column in zip(exact, columns, strict=True)
    ]
    odd = [
        f"{parsed}.bad IS NOT NULL",
        f"{parsed}.e IS NULL",
        f"NOT is_valid_utf8({text})",
        # halves of characters, perhaps alone
        f"({_contains(text, ESCAPE)} AND ({_contains(text, ESCAPE + 'd')} OR {_contains(text, ESCAPE + 'D')}))",
    ]
    if wrapped:
        odd.append(f"{parsed}.v IS NULL")
        odd += _spelt_otherwise(text, exact, spelt)
    for value, column in zip(values, columns, strict=True):
        if column.type == STRING:
            odd.append(_reread(value))
        if column.type == DOUBLE:
            odd.append(f"coalesce(abs({value}) > CAST('1.7976931348623157E308' AS DOUBLE), false)")
    return Reading(made, values, odd)


def _struct(columns: tuple[Column, ...], spelt: dict[str, str]) -> str:
    fields = [(column.name, column.type) for column in columns]
    fields += [(spelt[column.name], column.type) for column in columns if column.name in spelt]
    return f"STRUCT<{', '.join(f'`{name}`: {SPARK_TYPES[of]}' for name, of in fields)}>"


def _spellings(names: list[str]) -> dict[str, str]:
    """The names that are also found in lower case. Those with small letters of their own are only found as they are."""
    found = {name: name.lower() for name in names if name == name.upper() != name.lower()}
    if taken := set(found.values()) & set(names):
        raise NotCompiled(f"fields that differ by case: {', '.join(sorted(taken))}")
    return found


def _spelt_otherwise(text: str, exact: list[str], spelt: dict[str, str]) -> list[str]:
    """Whether a field that is not found as it is named may be there in another spelling, or in two."""
    if not spelt:
        return []

    def others(names: list[str]) -> str:
        either = "|".join(map(re.escape, names))
        return f"""rlike({text}, {quoted(f'"(?!(?:{either})")(?i:{either})"')})"""

    all_there = all_of(*(f"{one} IS NOT NULL" for one in exact))
    in_lower_case = f"lower({text}) = {text}"  # a comparison is cheap, and a pattern is not
    one_spelling = any_of(in_lower_case, f"NOT {others(list(spelt.values()))}", f"NOT {others(list(spelt))}")
    return [f"NOT ({all_there} OR (NOT {_hidden(text, list(spelt))} AND {one_spelling}))"]


def _hidden(text: str, names: list[str]) -> str:
    """Whether a field's name may have letters that are escaped, or that are only ASCII's in upper case."""
    escaped = quoted(r'\\u0[^"]*"\s*:')
    found = f"({_contains(text, ESCAPE + '0')} AND rlike({text}, {escaped}))"
    if letters := _capitals_in(names):
        others = quoted(rf'[{letters}][^"]*"\s*:')
        found = any_of(found, f"(octet_length({text}) <> char_length({text}) AND rlike({text}, {others}))")
    return found


ESCAPE = "\\u"


def _contains(text: str, part: str) -> str:
    return f"contains({text}, {quoted(part)})"


# --- the others


def _delimited(format: DelimitedFormat, raw: str, parsed: str) -> Reading:
    text = f"CAST({raw} AS STRING)"
    made = f"split({text}, {quoted(re.escape(format.delimiter))})"
    values, odd = (
        [],
        [
            f"NOT is_valid_utf8({text})",
            f"rlike({text}, {quoted(LINES)})",
            f"size({parsed}) <> {len(format.columns)}",
        ],
    )
    for place, column in enumerate(format.columns):
        if column.type not in DELIMITED_READ:
            raise NotCompiled(f"a DELIMITED field of type {column.type}")
        field = f"nullif(get({parsed}, {place}), '')"
        pattern = DELIMITED_READ[column.type]
        if pattern is not None:
            odd.append(f"NOT coalesce(rlike({field}, {quoted(pattern)}), true)")
        values.append(field if pattern is None else f"CAST({field} AS {SPARK_TYPES[column.type]})")
    return Reading(made, values, odd)


LINES = r'["\n\r]'
INT_TEXT, LONG_TEXT = "^-?[0-9]{1,9}$", "^-?[0-9]{1,18}$"
DELIMITED_READ = {
    BOOLEAN: "^(?:true|false)$",
    INTEGER: INT_TEXT,
    BIGINT: LONG_TEXT,
    DOUBLE: "^-?[0-9]{1,300}([.][0-9]{1,300})?$",
    STRING: None,
    DATE: INT_TEXT,
    TIME: INT_TEXT,
    TIMESTAMP: LONG_TEXT,
}
"""What a field must look like to be read by Spark's own cast."""


def _kafka(format: KafkaFormat, raw: str) -> Reading:
    of = format.columns[0].type
    if of == STRING:
        text = f"CAST({raw} AS STRING)"
        return Reading(None, [text], [f"NOT is_valid_utf8({text})"])
    if of == INTEGER:
        number = f"CAST(CAST(conv(hex({raw}), 16, 10) AS BIGINT) AS INT)"
        return Reading(None, [number], [f"octet_length({raw}) <> 4"])
    if of == BIGINT:
        return Reading(None, [f"CAST(conv(hex({raw}), 16, -10) AS BIGINT)"], [f"octet_length({raw}) <> 8"])
    raise NotCompiled(f"format KAFKA of {of}")
