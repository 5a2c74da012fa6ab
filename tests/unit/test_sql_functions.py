"""Scalar and table functions: their values, and what they are of null."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.functions.registry import AGGREGATE, FUNCTIONS, SCALAR, TABLE
from pykafkad.pipelines.functions.table_functions import compile_table_function
from pykafkad.pipelines.syntax.ast import FunctionCall
from pykafkad.pipelines.syntax.parser import parse_expression
from tests.unit.sql_kit import ROW, SCHEMA, refusal_of, type_of, value_of

NUMBERS = [
    ("ABS(-5)", 5),
    ("ABS(CAST('-2147483648' AS INT))", -2_147_483_648),
    ("ABS(-1.5)", Decimal("1.5")),
    ("SIGN(-D)", -1),
    ("CEIL(1.2E0)", 2.0),
    ("FLOOR(-M)", Decimal("-13.00")),
    ("ROUND(2.5E0)", 3),
    ("ROUND(-2.5E0)", -2),
    ("ROUND(-2.5)", Decimal("-2")),
    ("ROUND(1.2345E0, 2)", 1.23),
    ("ROUND(M, 1)", Decimal("12.50")),
    ("TRUNC(-1.9E0)", -1),
    ("TRUNC(12.59, -1)", Decimal("10.00")),
    ("SQRT(-1)", "NaN"),
    ("SQRT(16)", 4.0),
    ("CBRT(-27.0)", -3.0),
    ("EXP(1000)", math.inf),
    ("EXP(0)", 1.0),
    ("LN(0)", -math.inf),
    ("LOG(2, 8)", 3.0),
    ("LOG(1, 8)", "NaN"),
    ("POWER(2, 10)", 1024.0),
    ("POWER(-8, 0.5)", "NaN"),
    ("COT(0)", math.inf),
    ("ATAN2(0, -1)", math.pi),
    ("DEGREES(PI())", 180.0),
    ("RADIANS(180)", math.pi),
    ("SIN(0)", 0.0),
    ("ACOS(2)", "NaN"),
    ("GEO_DISTANCE(0, 0, 0, 180)", math.pi * 6371),
    ("GEO_DISTANCE(0, 0, 0, 180, 'miles')", math.pi * 3959),
    ("GEO_DISTANCE(91, 0, 0, 0)", None),
    ("GREATEST(I, L)", 3_000_000_000),
    ("GREATEST(I, 2.5E0)", 7.0),
    ("GREATEST(M, 1.2345)", Decimal("12.5000")),
    ("LEAST(NS, 'b', 'a')", "a"),
    ("GREATEST(NI, NULL, 3)", 3),
    ("GREATEST(DT, '2022-06-14')", 19_157),
    ("GENERATE_SERIES(1, 3)", [1, 2, 3]),
    ("GENERATE_SERIES(3, 1)", [3, 2, 1]),
    ("GENERATE_SERIES(1, 6, 2)", [1, 3, 5]),
    ("GENERATE_SERIES(1, 3, -1)", None),
    ("GENERATE_SERIES(0, 2147483647)", None),
]

TEXTS = [
    ("UCASE(S)", "SOME TEXT"),
    ("LCASE('ÄB')", "äb"),
    ("TRIM('\t a b \n')", "a b"),
    ("LEN(S)", 9),
    ("LEN(Y)", 2),
    ("INITCAP('the QUICK  fox')", "The Quick  Fox"),
    ("CONCAT('a', NULL, 'b')", "ab"),
    ("CONCAT(Y, NY, Y)", b"\0\1\0\1"),
    ("CONCAT_WS('-', 'a', NS, 'b')", "a-b"),
    ("CONCAT_WS(NS, 'a')", None),
    ("SUBSTRING(S, 6)", "text"),
    ("SUBSTRING(S, -4, 2)", "te"),
    ("SUBSTRING(S, 99)", ""),
    ("SUBSTRING(S, 0, 3)", "som"),
    ("SUBSTRING(S, NI)", None),
    ("SUBSTRING(Y, 2)", b"\1"),
    ("REPLACE(S, 'e', 'o')", "somo toxt"),
    ("REPLACE(S, NS, 'o')", None),
    ("INSTR('corporate floor', 'or')", 2),
    ("INSTR('corporate floor', 'or', 3)", 5),
    ("INSTR('corporate floor', 'or', -3)", 5),
    ("INSTR('corporate floor', 'or', -2)", 14),
    ("INSTR('corporate floor', 'or', 3, 2)", 14),
    ("INSTR('corporate floor', 'or', 3, 3)", 0),
    ("INSTR('corporate floor', 'or', 3, 0)", 0),
    ("INSTR('corporate floor', 'or', -99)", 0),
    ("INSTR(S, '', -1, 2147483647)", 0),
    ("INSTR(S, '', 1, 2147483647)", 0),
    ("LPAD('ab', 5, 'xy')", "xyxab"),
    ("LPAD('abcd', 2, 'x')", "ab"),
    ("RPAD('ab', 5, 'xy')", "abxyx"),
    ("RPAD('ab', -1, 'x')", None),
    ("RPAD('ab', 5, '')", None),
    ("LPAD('ab', 2147483647, 'x')", None),
    ("SPLIT('a,,b', ',')", ["a", "", "b"]),
    ("SPLIT('abc', '')", ["a", "b", "c"]),
    ("SPLIT_TO_MAP('a=1;b=2;c', ';', '=')", {"a": "1", "b": "2"}),
    ("CHR(75)", "K"),
    (r"CHR('\u004b')", "K"),
    (r"CHR('\ud83d\ude00')", "\N{GRINNING FACE}"),
    ("CHR('75')", None),
    ("MD5('r1')", "7c92cf1eee8d99cc85f8355a3d6e4b86"),
    ("UUID(CONCAT(Y,Y,Y,Y,Y,Y,Y,Y))", "00010001-0001-0001-0001-000100010001"),
    ("MASK('Ab1-')", "Xxn-"),
    ("MASK('Ab1-', '*', NULL, '#', '+')", "*b#+"),
    ("MASK_LEFT('Ab12', 3)", "Xxn2"),
    ("MASK_RIGHT('Ab12', 3)", "Axnn"),
    ("MASK_KEEP_LEFT('Ab12', 1)", "Axnn"),
    ("MASK_KEEP_RIGHT('Ab12', 1)", "Xxn2"),
    ("ELT(2, 'a', 'b')", "b"),
    ("ELT(3, 'a', 'b')", None),
    ("FIELD('b', 'a', 'b')", 2),
    ("FIELD(NS, 'a')", 0),
    ("REGEXP_EXTRACT('(.*) (.*)', S, 2)", "text"),
    ("REGEXP_EXTRACT('x+', S)", "x"),
    ("REGEXP_EXTRACT('(?<w>t.)', S)", "te"),
    ("REGEXP_EXTRACT('[', S)", None),
    (r"REGEXP_EXTRACT_ALL('(\w)e', S, 1)", ["m", "t"]),
    (r"REGEXP_REPLACE(S, '(\w+) (\w+)', '$2 $1')", "text some"),
    (r"REGEXP_SPLIT_TO_ARRAY('a1b22c', '\d+')", ["a", "b", "c"]),
]

COLLECTIONS = [
    ("ARRAY_LENGTH(A)", 3),
    ("ARRAY_CONTAINS(A, 2)", True),
    ("ARRAY_CONTAINS(NA, 2)", False),
    ("ARRAY_CONTAINS(AA, NULL)", True),
    ("ARRAY_DISTINCT(ARRAY[2, 1, 2, NULL, NULL])", [2, 1, None]),
    ("ARRAY_UNION(A, ARRAY[3, 4])", [1, 2, 3, 4]),
    ("ARRAY_INTERSECT(A, ARRAY[3, 1])", [1, 3]),
    ("ARRAY_EXCEPT(A, ARRAY[3, 1])", [2]),
    ("ARRAY_CONCAT(A, NA)", [1, 2, 3]),
    ("ARRAY_CONCAT(NA, NA)", None),
    ("ARRAY_REMOVE(AA, NULL)", ["x", "y"]),
    ("ARRAY_MAX(A)", 3),
    ("ARRAY_MIN(AA)", "x"),
    ("ARRAY_MAX(ARRAY[NI])", None),
    ("ARRAY_SORT(ARRAY[2, NULL, 1])", [1, 2, None]),
    ("ARRAY_SORT(A, 'desc')", [3, 2, 1]),
    ("ARRAY_SORT(A, 'sideways')", None),
    ("ARRAY_JOIN(AA, '|')", "x|null|y"),
    ("ARRAY_JOIN(ARRAY[1.5E0, 10000000E0])", "1.5,1.0E7"),
    ("ARRAY_JOIN(A, NS)", "123"),
    ("SLICE(A, 2, 3)", [2, 3]),
    ("SLICE(A, NULL, 2)", [1, 2]),
    ("SLICE(A, 2, 4)", None),
    ("AS_MAP(ARRAY['k', 'l'], A)", {"k": 1, "l": 2}),
    ("MAP_KEYS(MP)", ["a", "b"]),
    ("MAP_VALUES(MP)", [1, 2]),
    ("MAP_UNION(MP, MAP('b' := 5))", {"a": 1, "b": 5}),
    ("ENTRIES(MP, true)", [{"K": "a", "V": 1}, {"K": "b", "V": 2}]),
    ("ENTRIES(MP, true)[2]->V", 2),
    ("COALESCE(NI, NULL, 3)", 3),
    ("IFNULL(NI, L)", 3_000_000_000),
    ("NULLIF(I, 7)", None),
    ("NULLIF(I, 8)", 7),
    ("AS_VALUE(I + 1)", 8),
]

BYTES = [
    ("TO_BYTES('1aB2', 'hex')", b"\x1a\xb2"),
    ("TO_BYTES('xyz', 'hex')", None),
    ("TO_BYTES('é', 'utf8')", "é".encode()),
    ("FROM_BYTES(Y, 'hex')", "0001"),
    ("FROM_BYTES(Y, 'base64')", "AAE="),
    ("FROM_BYTES(Y, 'rot13')", None),
    ("ENCODE('4a', 'hex', 'ascii')", "J"),
    ("ENCODE('0x4a', 'hex', 'base64')", "Sg=="),
    ("ENCODE('X''4a''', 'hex', 'utf8')", "J"),
    ("INT_FROM_BYTES(TO_BYTES('000007e5', 'hex'))", 2021),
    ("INT_FROM_BYTES(TO_BYTES('e5070000', 'hex'), 'LITTLE_ENDIAN')", 2021),
    ("INT_FROM_BYTES(Y)", None),
    ("BIGINT_FROM_BYTES(TO_BYTES('ffffffffffffffff', 'hex'))", -1),
    ("DOUBLE_FROM_BYTES(TO_BYTES('4004000000000000', 'hex'))", 2.5),
]

JSON = [
    ("EXTRACTJSONFIELD('{\"a\": [{\"b\": 1.50}]}', '$.a[0].b')", "1.50"),
    ("EXTRACTJSONFIELD('{\"a\": [1]}', '$.a')", "[1]"),
    ("EXTRACTJSONFIELD('{\"a\": [1]}', '$.a[-1]')", None),
    ("EXTRACTJSONFIELD('{\"a b\": \"x\"}', '$[''a b'']')", "x"),
    ("EXTRACTJSONFIELD('no', '$.a')", None),
    ("IS_JSON_STRING('[1]')", True),
    ("IS_JSON_STRING('[')", False),
    ("IS_JSON_STRING(NS)", False),
    ("JSON_ARRAY_LENGTH('[1, [2]]')", 2),
    ("JSON_ARRAY_LENGTH('{}')", None),
    ("JSON_ARRAY_CONTAINS('[1, \"a\", 2.5, true]', 'a')", True),
    ("JSON_ARRAY_CONTAINS('[1, \"a\", 2.5, true]', 2.5E0)", True),
    ("JSON_ARRAY_CONTAINS('[1, \"a\", 2.5, true]', 2)", False),
    ("JSON_CONCAT('{\"a\": 1}', '{\"b\": 2}')", '{"a":1,"b":2}'),
    ("JSON_CONCAT('[1]', '2', '{}')", "[1,2,{}]"),
    ("JSON_CONCAT('1', '')", None),
    ("JSON_ITEMS('[{\"a\": 1}, 2]')", ['{"a":1}', "2"]),
    ('JSON_KEYS(\'{"a": 1, "b": 2}\')', ["a", "b"]),
    ('JSON_RECORDS(\'{"a": 1, "b": "x"}\')', {"a": "1", "b": "x"}),
    ("TO_JSON_STRING(ST)", '{"F":1,"G":{"H":"deep"}}'),
    ("TO_JSON_STRING(TS)", '"2018-05-11T21:58:33.000"'),
    ("TO_JSON_STRING(MP)", '{"a":1,"b":2}'),
    ("TO_JSON_STRING(ARRAY[DT])", '["2018-05-11"]'),
    ("TO_JSON_STRING(NULL)", "null"),
]

URLS = [
    ("URL_ENCODE_PARAM('?foo $bar~*')", "%3Ffoo+%24bar%7E*"),
    ("URL_DECODE_PARAM('a%20b+c')", "a b c"),
    ("URL_EXTRACT_PROTOCOL('https://u@h:8080/p?q=1#f')", "https"),
    ("URL_EXTRACT_HOST('https://u@Host:8080/p?q=1#f')", "Host"),
    ("URL_EXTRACT_PORT('https://u@h:8080/p?q=1#f')", 8080),
    ("URL_EXTRACT_PORT('https://h/p')", None),
    ("URL_EXTRACT_PATH('https://u@h:8080/p?q=1#f')", "/p"),
    ("URL_EXTRACT_QUERY('https://u@h:8080/p?q=1#f')", "q=1"),
    ("URL_EXTRACT_QUERY('http://h?q=a%20b')", "q=a b"),
    ("URL_EXTRACT_HOST('http://a b/')", None),
    ("URL_EXTRACT_FRAGMENT('https://u@h:8080/p?q=1#f')", "f"),
    ("URL_EXTRACT_PARAMETER('http://h/?one=a%20b&two', 'one')", "a b"),
    ("URL_EXTRACT_PARAMETER('http://h/?one=a&two', 'two')", None),
    ("URL_EXTRACT_PARAMETER('http://h/?one=a', 'three')", None),
]

DATES = [
    ("FORMAT_TIMESTAMP(TS, 'yyyy-MM-dd''T''HH:mm:ss.SSS')", "2018-05-11T21:58:33.000"),
    ("FORMAT_TIMESTAMP(TS, 'yyyy-MM-dd HH:mm:ss zzz', 'America/Los_Angeles')", "2018-05-11 14:58:33 PDT"),
    ("FORMAT_TIMESTAMP(TS, 'EEE, d MMM yy hh:mm a XXX', 'Asia/Kolkata')", "Sat, 12 May 18 03:28 AM +05:30"),
    ("FORMAT_TIMESTAMP(TS, 'EEEE MMMM D Q x')", "Friday May 131 2 +00"),
    ("FORMAT_TIMESTAMP(TS, 'jj')", None),
    ("FORMAT_TIMESTAMP(TS, 'yyyy', 'Nowhere/Else')", None),
    ("TIMESTAMPTOSTRING(ROWTIME, 'yyyy-MM-dd')", "2019-01-01"),
    ("FORMAT_DATE(DT, 'dd.MM.yyyy')", "11.05.2018"),
    ("DATETOSTRING(17662, 'yyyyMMdd')", "20180511"),
    ("FORMAT_TIME(TI, 'HH_mm_ss')", "21_58_33"),
    ("PARSE_TIMESTAMP('2018-05-11T21:58:33Z', 'yyyy-MM-dd''T''HH:mm:ssX')", 1_526_075_913_000),
    ("PARSE_TIMESTAMP('2018-05-11 14:58', 'yyyy-MM-dd HH:mm', 'America/Los_Angeles')", 1_526_075_880_000),
    ("PARSE_TIMESTAMP('11/05/18 9:58 pm', 'dd/MM/yy h:mm a')", 1_526_075_880_000),
    ("PARSE_TIMESTAMP('2018-05-11 PST', 'yyyy-MM-dd zzz')", 1_526_022_000_000),
    ("PARSE_TIMESTAMP('20180511215833123', 'yyyyMMddHHmmssSSS')", 1_526_075_913_123),
    ("STRINGTOTIMESTAMP('2018-05-11', 'yyyy-MM-dd')", 1_525_996_800_000),
    ("PARSE_DATE('11-MAY-2018', 'dd-MMM-yyyy')", 17_662),
    ("PARSE_DATE('2018-02-30', 'yyyy-MM-dd')", None),
    ("PARSE_DATE('x', 'yyyy-MM-dd')", None),
    ("PARSE_TIME('21:58:33', 'HH:mm:ss')", 79_113_000),
    ("DATEADD(DAYS, 10, DT)", 17_672),
    ("DATESUB(DAYS, 10, DT)", 17_652),
    ("DATEADD(HOURS, 23, DT)", 17_662),
    ("TIMEADD(HOURS, 3, TI)", 3_513_000),
    ("TIMESUB(HOURS, 22, TI)", 86_313_000),
    ("TIMESTAMPADD(MINUTES, 1, TS)", 1_526_075_973_000),
    ("TIMESTAMPSUB(SECOND, 1, TS)", 1_526_075_912_000),
    ("CONVERT_TZ(TS, 'UTC', '+03:00')", 1_526_086_713_000),
    ("CONVERT_TZ(TS, 'America/Los_Angeles', 'America/New_York')", 1_526_086_713_000),
    ("FROM_DAYS(17662)", 17_662),
    ("FROM_UNIXTIME(5)", 5),
    ("UNIX_DATE(DT)", 17_662),
    ("UNIX_TIMESTAMP(TS)", 1_526_075_913_000),
    ("UNIX_TIMESTAMP() > 1500000000000", True),
    ("UNIX_DATE() > 17000", True),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [*NUMBERS, *TEXTS, *COLLECTIONS, *BYTES, *JSON, *URLS, *DATES],
    ids=lambda of: str(of)[:60],
)
def test_functions(text: str, value: Any) -> None:
    got = value_of(text)
    if value == "NaN":
        assert math.isnan(got)
    elif isinstance(value, float) and math.isfinite(value):
        assert type(got) is float and math.isclose(got, value, rel_tol=1e-12)
    else:
        assert (type(got), got) == (type(value), value)


def test_random_values_differ() -> None:
    assert len({value_of("UUID()") for _ in range(5)}) == 5
    assert 0 <= value_of("RANDOM()") < 1


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("ROUND(D)", "BIGINT"),
        ("ROUND(M)", "DECIMAL(4, 0)"),
        ("ROUND(M, 1)", "DECIMAL(6, 2)"),
        ("GREATEST(M, 1.2345)", "DECIMAL(8, 4)"),
        ("IFNULL(I, L)", "BIGINT"),
        ("ENTRIES(MP, false)", "ARRAY<STRUCT<`K` STRING, `V` INTEGER>>"),
        ("AS_MAP(AA, A)", "MAP<STRING, INTEGER>"),
        ("STRINGTODATE('', '')", "INTEGER"),
        ("PARSE_DATE('', '')", "DATE"),
        ("SQRT(I)", "DOUBLE"),
    ],
)
def test_the_types_of_results(text: str, of: str) -> None:
    assert type_of(text) == of


@pytest.mark.parametrize(
    "text",
    ["DATEADD(DT, 5, DT)", "GEO_DISTANCE(D, D, 'foo', 0)", "LEAST()", "LEAST(*)", "LEN(1)", "CONCAT(1, 'a')"],
)
def test_arguments_of_other_types_are_refused(text: str) -> None:
    assert re.match("Function '[a-z_]+' does not accept parameters", refusal_of(text))


def rows_of(text: str) -> list[Any]:
    call = parse_expression(text)
    assert isinstance(call, FunctionCall)
    return compile_table_function(call, SCHEMA)(ROW)


def test_table_functions_give_rows() -> None:
    assert rows_of("EXPLODE(A)") == [1, 2, 3]
    assert rows_of("EXPLODE(NA)") == []
    assert rows_of("CUBE_EXPLODE(ARRAY[I, NI])") == [[None, None], [7, None]]
    assert len(rows_of("CUBE_EXPLODE(ARRAY[1, 2, 3])")) == 8
    with pytest.raises(StatementError, match="ABS is no table function"):
        rows_of("ABS(I)")


def test_every_function_describes_itself() -> None:
    assert {function.kind for function in FUNCTIONS.all()} == {SCALAR, AGGREGATE, TABLE}
    for function in FUNCTIONS.all():
        assert function.description.endswith("."), function.name
        assert function.variants, function.name


def test_of_nulls_almost_every_function_is_null() -> None:
    answering = {
        function.name
        for function in FUNCTIONS.all()
        for variant in (function.variants if function.kind == SCALAR else ())
        if (kinds := [parameter.pattern.kind for parameter in variant.signature.parameters])
        and all(kind in _NULL_OF for kind in kinds)
        and value_of(f"{function.name}({', '.join(f'CAST(NULL AS {_NULL_OF[kind]})' for kind in kinds)})")
        is not None
    }
    assert answering == {"CONCAT", "FIELD", "IS_JSON_STRING", "JSON_ARRAY_CONTAINS"}


_NULL_OF = {
    **{
        of: of
        for of in ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP", "BOOLEAN")
    },
    "DECIMAL": "DECIMAL(4, 2)",
}
