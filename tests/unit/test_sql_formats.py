"""Formats: rows to bytes and back, what is refused, what is a bad record."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats import BadRecord, Format, make_format
from pykafkad.pipelines.syntax.parser import parse_type


def columns(*types: str) -> list[Column]:
    return [Column(f"C{place}", parse_type(of)) for place, of in enumerate(types)]


def made(name: str, *types: str, wrap: bool | None = None, delimiter: str | None = None) -> Format:
    """The format, through a pickle as to a worker."""
    loaded: Format = pickle.loads(pickle.dumps(make_format(name, columns(*types), wrap, delimiter)))
    return loaded


@pytest.mark.parametrize(
    ("of", "value", "data"),
    [
        ("INT", -2, b"\xff\xff\xff\xfe"),
        ("BIGINT", 1, b"\0\0\0\0\0\0\0\1"),
        ("DOUBLE", 2.5, b"\x40\x04\0\0\0\0\0\0"),
        ("VARCHAR", "é", b"\xc3\xa9"),
        ("BYTES", b"\0\1", b"\0\1"),
    ],
)
def test_kafka(of: str, value: Any, data: bytes) -> None:
    kafka = made("kafka", of)
    assert kafka.serialise([value]) == data
    assert kafka.parse(data) == [value]
    assert kafka.from_plain(kafka.to_plain(data)) == data


def test_kafka_nulls_and_bad_records() -> None:
    kafka = made("KAFKA", "INT")
    assert (kafka.parse(None), kafka.serialise(None), kafka.serialise([None])) == (None, None, None)
    assert (kafka.to_plain(None), kafka.from_plain(None)) == (None, None)
    with pytest.raises(BadRecord, match="5 bytes are no INTEGER of format KAFKA"):
        kafka.parse(b"12345")
    with pytest.raises(BadRecord):
        made("KAFKA", "VARCHAR").parse(b"\xff")


@pytest.mark.parametrize("name", ["KAFKA", "JSON", "DELIMITED", "NONE"])
def test_without_columns_whatever_comes_is_ignored(name: str) -> None:
    nothing = made(name)
    assert (nothing.parse(b"anything"), nothing.parse(None), nothing.serialise([])) == ([], [], None)


JSON = [
    ("BOOLEAN", True, "true"),
    ("INT", -5, "-5"),
    ("BIGINT", 998_877_665_544_332_211, "998877665544332211"),
    ("DOUBLE", 1e-7, "1e-07"),
    ("DECIMAL(6, 4)", Decimal("12.3650"), "12.3650"),
    ("VARCHAR", 'a"\n\u20ac', '"a\\"\\n\u20ac"'),
    ("BYTES", b"\0\1", '"AAE="'),
    ("DATE", 10, "10"),
    ("TIME", 65_000, "65000"),
    ("TIMESTAMP", 1_526_075_913_000, "1526075913000"),
    ("ARRAY<INT>", [1, None], "[1,null]"),
    ("MAP<VARCHAR, DOUBLE>", {"a": 1.5, "b": None}, '{"a":1.5,"b":null}'),
    ("STRUCT<F INT, `g` VARCHAR>", {"F": 1, "g": None}, '{"F":1,"g":null}'),
    ("INT", None, "null"),
]


@pytest.mark.parametrize(("of", "value", "text"), JSON)
def test_json(of: str, value: Any, text: str) -> None:
    json = made("JSON", of)
    data = f'{{"C0":{text}}}'.encode()
    assert json.serialise([value]) == data
    assert json.parse(data) == [value]
    assert json.to_plain(json.from_plain(json.to_plain(data))) == json.to_plain(data)


@pytest.mark.parametrize(("of", "value", "text"), [case for case in JSON if case[1] is not None])
def test_json_that_is_not_wrapped(of: str, value: Any, text: str) -> None:
    json = made("JSON", of, wrap=False)
    assert json.serialise([value]) == text.encode()
    assert json.parse(text.encode()) == [value]
    assert (json.parse(b"null"), json.serialise([None]), json.parse(None)) == (None, None, None)


def test_json_of_several_columns_is_wrapped_whatever_is_said() -> None:
    assert made("JSON", "INT", "INT", wrap=False).serialise([1, None]) == b'{"C0":1,"C1":null}'


@pytest.mark.parametrize(
    ("of", "text", "value"),
    [
        ("INT", '"12"', 12),
        ("INT", "2.9", 2),
        ("INT", "2147483648", -2_147_483_648),
        ("DOUBLE", "3", 3.0),
        ("DOUBLE", '"2.5"', 2.5),
        ("DECIMAL(3, 1)", '"1.25"', Decimal("1.3")),
        ("DECIMAL(3, 1)", "2", Decimal("2.0")),
        ("VARCHAR", "1.50", "1.50"),
        ("VARCHAR", "true", "true"),
        ("VARCHAR", "1.0E999999999", "1.0E+999999999"),
        ("VARCHAR", '{"b": [1.10, null]}', '{"b":[1.10,null]}'),
        ("STRUCT<F INT>", '{"f": 1, "z": 2}', {"F": 1}),
        ("STRUCT<F INT>", "{}", {"F": None}),
        ("MAP<VARCHAR, VARCHAR>", '{"Key": 1}', {"Key": "1"}),
    ],
)
def test_json_reads_what_can_be_taken_for_the_type(of: str, text: str, value: Any) -> None:
    assert made("JSON", of).parse(f'{{"c0": {text}}}'.encode()) == [value]


def test_json_finds_fields_whatever_their_case_and_an_exact_name_first() -> None:
    fields = [Column("A", parse_type("INT")), Column("b", parse_type("INT"))]
    json = make_format("JSON", fields)
    assert json.parse(b'{"a": 1, "A": 2, "b": 3}') == [2, 3]
    assert json.parse(b'{"a": 1}') == [1, None]


def test_json_reads_behind_the_header_of_a_schema_registry() -> None:
    assert made("JSON", "INT").parse(b'\0\0\0\0\7{"C0": 1}') == [1]


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ("INT", '{"C0": "x"}'),
        ("INT", '{"C0": true}'),
        ("INT", '{"C0": [1]}'),
        ("BOOLEAN", '{"C0": 1}'),
        ("BYTES", '{"C0": "*"}'),
        ("BYTES", '{"C0": 1}'),
        ("DECIMAL(2, 1)", '{"C0": 100}'),
        ("ARRAY<INT>", '{"C0": {}}'),
        ("MAP<VARCHAR, INT>", '{"C0": []}'),
        ("STRUCT<F INT>", '{"C0": 1}'),
        ("INT", "[1]"),
        ("INT", "{"),
        ("INT", ""),
        ("DOUBLE", '{"C0": NaN}'),
        ("STRUCT<F INT, G VARCHAR>", '{"C0": {"F": 1.0E999999999}}'),
        ("DECIMAL(2, 1)", '{"C0": 1E999999999}'),
        ("INT", "[" * 100_000),
    ],
)
def test_bad_json(of: str, text: str) -> None:
    with pytest.raises(BadRecord, match="no value of format JSON"):
        made("JSON", of).parse(text.encode())


def test_json_says_what_has_no_number_as_text() -> None:
    assert made("JSON", "DOUBLE").serialise([float("nan")]) == b'{"C0":"NaN"}'
    assert made("JSON", "ARRAY<DOUBLE>").serialise([[float("-inf")]]) == b'{"C0":["-Infinity"]}'
    assert made("JSON", "MAP<VARCHAR, INT>").serialise([{None: 1}]) == b'{"C0":{"null":1}}'


DELIMITED = [
    (("VARCHAR", "INT"), ["a", 1], "a,1"),
    (("VARCHAR", "VARCHAR"), ["a,b", 'c"d'], '"a,b","c""d"'),
    (("INT", "INT"), [-1, -1], '"-1",-1'),
    (("VARCHAR", "INT"), [None, None], ","),
    (("DOUBLE", "DECIMAL(6, 4)"), [1e10, Decimal("1.0000")], "1.0E10,1.0000"),
    (("BYTES", "BOOLEAN"), [b"\0\1", True], "AAE=,true"),
    (("DATE", "TIME", "TIMESTAMP"), [10, 20, 30], "10,20,30"),
    (("VARCHAR", "VARCHAR"), ["\u00e9", " x "], '"\u00e9"," x "'),
    (("VARCHAR", "VARCHAR"), ["!", "#"], '"!","#"'),
    (("BIGINT", "VARCHAR"), [1, "two\nlines"], '1,"two\nlines"'),
]


@pytest.mark.parametrize(("types", "row", "text"), DELIMITED)
def test_delimited(types: tuple[str, ...], row: list[Any], text: str) -> None:
    delimited = made("DELIMITED", *types)
    assert delimited.serialise(row) == text.encode()
    assert delimited.parse(text.encode()) == row
    assert delimited.from_plain(delimited.to_plain(text.encode())) == text.encode()


@pytest.mark.parametrize(
    ("delimiter", "text"), [("|", "1|2"), ("TAB", "1\t2"), ("space", "1 2"), ("$", "1$2")]
)
def test_other_delimiters(delimiter: str, text: str) -> None:
    delimited = made("DELIMITED", "INT", "INT", delimiter=delimiter)
    assert delimited.serialise([1, 2]) == text.encode()
    assert delimited.parse(text.encode()) == [1, 2]


@pytest.mark.parametrize(
    ("types", "text", "why"),
    [
        (("INT",), "1,2", "Unexpected field count, csvFields: 2 schemaFields: 1"),
        (("INT",), "x", ""),
        (("INT",), "2147483648", "out of range"),
        (("DECIMAL(2, 1)",), "100", "must round to an absolute value less than 10"),
        (("DECIMAL(2, 1)",), "x", ""),
        (("BYTES",), "*", ""),
        (("VARCHAR",), '"x', ""),
        (("VARCHAR",), b"\xff", ""),
    ],
)
def test_bad_delimited_records(types: tuple[str, ...], text: str | bytes, why: str) -> None:
    with pytest.raises(BadRecord, match=f"format DELIMITED.*{why}"):
        made("DELIMITED", *types).parse(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("name", "types", "said", "reason"),
    [
        ("FOO", [], {}, "Unknown format: FOO"),
        ("JASON", [], {}, "Unknown format: JASON Did you mean JSON?"),
        ("KAFKA", ["ARRAY<INT>"], {}, "The 'KAFKA' format does not support type 'ARRAY', column: `C0`"),
        ("KAFKA", ["BOOLEAN"], {}, "The 'KAFKA' format does not support type 'BOOLEAN', column: `C0`"),
        ("KAFKA", ["INT", "VARCHAR"], {}, "The 'KAFKA' format only supports a single field. Got: ["),
        ("KAFKA", ["INT"], {"wrap": True}, "Format 'KAFKA' does not support 'WRAP_SINGLE_VALUE' set to 'true'."),
        ("DELIMITED", ["INT", "MAP<INT, INT>"], {}, "The 'DELIMITED' format does not support type 'MAP', column: `C1`"),
        ("DELIMITED", ["STRUCT<A INT>"], {}, "The 'DELIMITED' format does not support type 'STRUCT', column: `C0`"),
        ("DELIMITED", ["INT"], {"wrap": False}, "Format 'DELIMITED' does not support 'WRAP_SINGLE_VALUE' set to"),
        ("DELIMITED", ["INT"], {"delimiter": ""}, "Configuration VALUE_DELIMITER is invalid: Delimiter cannot be"),
        ("DELIMITED", ["INT"], {"delimiter": "<~>"}, "Configuration VALUE_DELIMITER is invalid: Invalid delimiter value"),
        ("JSON", ["INT"], {"delimiter": "|"}, "JSON does not support the following configs: [delimiter]"),
        ("JSON", ["ARRAY<MAP<INT, INT>>"], {}, "JSON only supports MAP types with STRING keys"),
        ("NONE", ["INT"], {}, "The 'NONE' format can only be used when no columns are defined. Got: [`C0` INTEGER KEY]"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_say_is_refused(
    name: str, types: list[str], said: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StatementError) as refused:
        made(name, *types, **said)
    assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize("name", ["KAFKA", "DELIMITED"])
def test_half_of_a_surrogate_pair_is_a_question_mark_as_java_writes_it(name: str) -> None:
    """JSON may say such text, "\\ud800", and a query must not stop at it."""
    assert made(name, "STRING").serialise(["a\ud800b"]) == b"a?b"


@pytest.mark.parametrize("wrap", [False, True])
def test_half_of_a_surrogate_pair_is_json_again(wrap: bool) -> None:
    whole = made("JSON", "STRING", wrap=wrap)
    assert whole.parse(whole.serialise(["a\ud800b"])) == ["a\ud800b"]
