"""AVRO and JSON_SR: data with a schema's id in front, schemas in a registry, columns that a statement leaves to it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats import BadRecord, Format, make_format
from pykafkad.pipelines.formats.avro_codec import Input, long_bytes, reader
from pykafkad.pipelines.formats.avro_schema import BadSchema, columns_of, parse
from pykafkad.pipelines.formats.registered import inferred
from pykafkad.pipelines.formats.registry import REGISTRIES, RegisteredSchema, RegistryError, Subject, header
from pykafkad.pipelines.syntax.parser import parse_type
from pykafkad.pipelines.testing import run_case
from pykafkad.pipelines.types import BIGINT

URL = "http://registry.test:8081"
SUBJECT = Subject(URL, "t-value")


class MemoryRegistry:
    """Schemas by their ids, which count from 1."""

    def __init__(self) -> None:
        self.schemas: list[tuple[str, RegisteredSchema]] = []

    def by_id(self, schema_id: int) -> RegisteredSchema | None:
        return self.schemas[schema_id - 1][1] if 0 < schema_id <= len(self.schemas) else None

    def latest(self, subject: str) -> RegisteredSchema | None:
        return next((schema for name, schema in reversed(self.schemas) if name == subject), None)

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        if (subject, schema) not in self.schemas:
            self.schemas.append((subject, schema))
        return self.schemas.index((subject, schema)) + 1


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    REGISTRIES[URL] = known = MemoryRegistry()
    yield known
    del REGISTRIES[URL]


def made(name: str, *types: str, wrap: bool | None = None) -> Format:
    """The format, through a pickle as to a worker."""
    columns = [Column(f"C{place}", parse_type(of)) for place, of in enumerate(types)]
    loaded: Format = pickle.loads(pickle.dumps(make_format(name, columns, wrap, None, SUBJECT)))
    return loaded


VALUES = [
    ("BOOLEAN", True),
    ("INT", -5),
    ("BIGINT", -(2**63)),
    ("DOUBLE", 2.5),
    ("DECIMAL(6, 2)", Decimal("-128.00")),
    ("DECIMAL(6, 2)", Decimal("0.00")),
    ("VARCHAR", "\u00e9"),
    ("BYTES", b"\0\1"),
    ("DATE", 10),
    ("TIME", 65_000),
    ("TIMESTAMP", 1_526_075_913_000),
    ("ARRAY<INT>", [1, None, 3]),
    ("ARRAY<INT>", []),
    ("MAP<VARCHAR, DOUBLE>", {"a": 1.5, "b": None}),
    ("STRUCT<F INT, G STRUCT<H VARCHAR>>", {"F": 1, "G": {"H": "x"}}),
    ("STRUCT<F INT>", {"F": None}),
]


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
@pytest.mark.parametrize(("of", "value"), VALUES)
def test_values_come_back_and_so_do_their_types(
    registry: MemoryRegistry, name: str, of: str, value: Any
) -> None:
    written = made(name, of, "INT")
    data = written.serialise([value, None])
    assert data is not None and data[:5] == header(1)
    assert written.parse(data) == [value, None]
    assert written.from_plain(written.to_plain(data)) == data
    columns = inferred(name, SUBJECT)
    assert isinstance(columns, list)
    assert [str(column) for column in columns] == [f"`C0` {parse_type(of)}", "`C1` INTEGER"]


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
@pytest.mark.parametrize(("of", "value"), VALUES)
def test_bare_values(registry: MemoryRegistry, name: str, of: str, value: Any) -> None:
    bare = made(name, of, wrap=False)
    data = bare.serialise([value])
    assert data is not None
    assert bare.parse(data) == [value]
    assert (bare.serialise([None]), bare.serialise(None), bare.parse(None)) == (None, None, None)


FIXED = {"type": "fixed", "name": "Amount", "size": 2}


def test_avro_is_read_by_the_schema_that_it_was_written_with(registry: MemoryRegistry) -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "amount", "type": {**FIXED, "logicalType": "decimal", "precision": 4, "scale": 2}},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE"]}},
            {"name": "c0", "type": "float"},
            {"name": "tags", "type": {"type": "map", "values": "long"}},
            {"name": "next", "type": ["null", "Order"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }  # fmt: skip
    schema_id = registry.register("t-value", RegisteredSchema("AVRO", json.dumps(schema)))
    order = (
        b"\x04\xd2"
        + long_bytes(1)
        + b"\0\0\x20\x40"
        + long_bytes(-1)
        + long_bytes(4)
        + b"\2k"
        + long_bytes(9)
    )
    order += long_bytes(0) + long_bytes(0) + long_bytes(5_000_000)
    columns = [Column("AMOUNT", parse_type("DECIMAL(4, 2)")), Column("STATE", parse_type("VARCHAR"))]
    columns += [Column("C0", parse_type("DOUBLE")), Column("TAGS", parse_type("MAP<VARCHAR, BIGINT>"))]
    columns += [Column("AT", parse_type("TIMESTAMP")), Column("NEW", parse_type("INT"))]
    avro = make_format("AVRO", columns, None, None, SUBJECT)
    assert avro.parse(header(schema_id) + order) == [Decimal("12.34"), "DONE", 2.5, {"k": 9}, 5000, None]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "no schema's id"),
        (header(9) + b"\0", "has no Avro schema 9"),
        (header(1), "ends too early"),
        (header(1) + b"\2", "ends too early"),
        (header(1) + b"\2\x05", "ends too early"),
        (header(1) + b"\x06", "6 is none|3 is none"),
        (header(1) + b"\xff" * 12, "more than 64 bits"),
        (header(2) + b"{}", "has no Avro schema 2"),
        (header(3) + long_bytes(1 << 40), "items in"),
    ],
)
def test_bad_avro(registry: MemoryRegistry, data: bytes, why: str) -> None:
    avro = made("AVRO", "VARCHAR")
    avro.serialise(["x"])
    registry.register("other", RegisteredSchema("JSON", "{}"))
    registry.register("other", RegisteredSchema("AVRO", '{"type": "array", "items": "null"}'))
    with pytest.raises(BadRecord, match=why):
        avro.parse(data)


def test_what_is_cut_or_changed_is_a_bad_record_or_another_value(registry: MemoryRegistry) -> None:
    avro = made("AVRO", "VARCHAR", "ARRAY<INT>", "MAP<VARCHAR, DOUBLE>", "DECIMAL(6, 2)")
    data = avro.serialise(["text", [1, 2], {"a": 1.0}, Decimal("1.00")])
    assert data is not None
    for place in range(5, len(data)):
        for changed in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
            try:
                parsed = avro.parse(changed)
            except BadRecord:
                continue
            assert parsed is not None and len(parsed) == 4


def test_blocks_of_arrays_may_say_their_size() -> None:
    read = reader(parse('{"type": "array", "items": "int"}'))
    blocks = (
        long_bytes(-2)
        + long_bytes(2)
        + long_bytes(1)
        + long_bytes(2)
        + long_bytes(1)
        + long_bytes(3)
        + long_bytes(0)
    )
    assert read(Input(blocks)) == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '"nothing"',
        '{"type": "record", "name": "R"}',
        '["int", "string"]',
        '{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}',
        "[" * 200 + "]" * 200,
    ],
)
def test_schemas_that_are_no_columns(text: str) -> None:
    with pytest.raises(BadSchema):
        columns_of(text)


def test_json_of_a_registry_says_so(registry: MemoryRegistry) -> None:
    with pytest.raises(BadRecord, match="no schema's id"):
        made("JSON_SR", "INT").parse(b'{"C0": 1}')


AVRO_CASE = [
    f"SET 'ksql.schema.registry.url'='{URL}';",
    "CREATE STREAM S (K INT KEY, V VARCHAR, N BIGINT) WITH (kafka_topic='s', format='AVRO');",
    "CREATE STREAM O AS SELECT K, UCASE(V) AS V, N FROM S;",
    "CREATE STREAM J WITH (format='JSON_SR') AS SELECT K, N FROM S;",
]


def test_statements_write_what_they_register(registry: MemoryRegistry) -> None:
    outputs = run_case(AVRO_CASE, [{"topic": "s", "key": 1, "value": {"V": "x", "N": 5}}], host="local")
    assert [(out["topic"], out["key"], out["value"]) for out in outputs] == [
        ("O", 1, {"V": "X", "N": 5}),
        ("J", 1, {"N": 5}),
    ]
    assert {subject for subject, _ in registry.schemas} == {
        f"{topic}-{of}" for topic in ("s", "O", "J") for of in ("key", "value")
    }


def test_columns_that_a_statement_does_not_say_are_the_registrys(registry: MemoryRegistry) -> None:
    run_case(AVRO_CASE, [{"topic": "s", "key": 1, "value": {"V": "x", "N": 5}}], host="local")
    statements = [
        AVRO_CASE[0],
        "CREATE STREAM S WITH (kafka_topic='s', format='AVRO');",
        "CREATE STREAM T (K INT KEY) WITH (kafka_topic='J', key_format='KAFKA', value_format='JSON_SR');",
        "CREATE STREAM O AS SELECT ROWKEY, N * 2 AS M FROM S;",
        "CREATE STREAM P AS SELECT K, N + 1 AS M FROM T;",
    ]
    inputs = [
        {"topic": "s", "key": 2, "value": {"V": "y", "N": 7}},
        {"topic": "J", "key": 3, "value": {"N": 1}},
    ]
    outputs = run_case(statements, inputs, host="local")
    assert [(out["topic"], out["key"], out["value"]) for out in outputs] == [
        ("O", 2, {"M": 14}),
        ("P", 3, {"M": 2}),
    ]


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (
            ["CREATE STREAM S (V INT) WITH (kafka_topic='s', value_format='AVRO');"],
            "Format AVRO keeps its schemas in a schema registry: say where it is",
        ),
        (
            [AVRO_CASE[0], "CREATE STREAM S WITH (kafka_topic='none', value_format='JSON_SR');"],
            "The schema registry has no schema for the subject none-value.",
        ),
        (
            [AVRO_CASE[0], "CREATE STREAM S WITH (kafka_topic='other', value_format='AVRO');"],
            "The schema of other-value is JSON, not AVRO as AVRO needs it.",
        ),
        (
            [AVRO_CASE[0], "CREATE STREAM S WITH (kafka_topic='other', value_format='JSON_SR');"],
            "The schema of other-value cannot be read as columns",
        ),
        (
            ["SET 'ksql.schema.registry.url'='8081';"],
            "'8081' is not allowed for ksql.schema.registry.url: a URL is",
        ),
    ],
)
def test_refusals(registry: MemoryRegistry, statements: list[str], reason: str) -> None:
    registry.register("other-value", RegisteredSchema("JSON", '{"type": "null"}'))
    with pytest.raises(StatementError) as refused:
        run_case(statements, [], host="local")
    assert refused.value.reason.startswith(reason)


def test_a_registry_that_does_not_answer_makes_no_bad_records(registry: MemoryRegistry) -> None:
    def silent(schema_id: int) -> RegisteredSchema | None:
        raise RegistryError("no schema registry answers")

    registry.by_id = silent  # type: ignore[method-assign]
    with pytest.raises(RegistryError):
        made("AVRO", "INT").parse(header(1) + b"\0")


def test_numbers_are_zigzag() -> None:
    for number in (0, -1, 1, 63, -64, 64, 2**31, 2**63 - 1, -(2**63)):
        assert Input(long_bytes(number)).long() == number
    assert (long_bytes(-1), long_bytes(64)) == (b"\1", b"\x80\1")
    assert columns_of('"long"') == BIGINT
