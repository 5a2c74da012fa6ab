"""PROTOBUF and PROTOBUF_NOSR: schemas as text, messages as bytes, and what Google's library says of both."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats import BadRecord, Format, MessageShape, make_format
from pykafkad.pipelines.formats import proto_codec as codec
from pykafkad.pipelines.formats.avro_schema import BadSchema
from pykafkad.pipelines.formats.proto_nodes import ProtoMessage
from pykafkad.pipelines.formats.proto_schema import columns_of, schema_for
from pykafkad.pipelines.formats.proto_text import parse
from pykafkad.pipelines.formats.registered import inferred
from pykafkad.pipelines.formats.registry import REGISTRIES, RegisteredSchema, Subject, header
from pykafkad.pipelines.syntax.parser import parse_type
from pykafkad.pipelines.testing import run_case
from tests.unit.test_sql_registered import MemoryRegistry

URL = "http://registry.test:8081"
SUBJECT = Subject(URL, "t-value")


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    REGISTRIES[URL] = known = MemoryRegistry()
    yield known
    del REGISTRIES[URL]


def columns(*types: str) -> list[Column]:
    return [Column(f"C{place}", parse_type(of)) for place, of in enumerate(types)]


def made(name: str, *types: str, nulls: str | None = None) -> Format:
    """The format, through a pickle as to a worker."""
    form = make_format(name, columns(*types), None, None, SUBJECT, MessageShape(nulls))
    loaded: Format = pickle.loads(pickle.dumps(form))
    return loaded


VALUES = [
    ("BOOLEAN", True),
    ("INT", -5),
    ("BIGINT", -(2**63)),
    ("DOUBLE", -0.0),
    ("DECIMAL(6, 2)", Decimal("-128.00")),
    ("VARCHAR", "\u00e9"),
    ("BYTES", b"\0\1"),
    ("DATE", -10),
    ("TIME", 65_001),
    ("TIMESTAMP", 1_526_075_913_123),
    ("TIMESTAMP", -1),
    ("ARRAY<INT>", [1, -1, 0]),
    ("ARRAY<VARCHAR>", ["", "x"]),
    ("ARRAY<STRUCT<F INT>>", [{"F": 1}, {"F": 2}]),
    ("MAP<VARCHAR, DOUBLE>", {"a": 1.5, "": 0.0}),
    ("MAP<VARCHAR, ARRAY<TIMESTAMP>>", {"a": [1, 2]}),
    ("MAP<VARCHAR, MAP<VARCHAR, INT>>", {"a": {"b": 1}}),
    ("STRUCT<F INT, G STRUCT<H VARCHAR, I MAP<VARCHAR, INT>>>", {"F": 1, "G": {"H": "x", "I": {"k": 2}}}),
]


@pytest.mark.parametrize("nulls", [None, "OPTIONAL", "WRAPPER"])
@pytest.mark.parametrize(("of", "value"), VALUES)
def test_values_come_back_and_so_do_their_types(
    registry: MemoryRegistry, nulls: str | None, of: str, value: Any
) -> None:
    for name in ("PROTOBUF", "PROTOBUF_NOSR"):
        written = made(name, of, "INT", nulls=nulls)
        data = written.serialise([value, None])
        assert data is not None
        assert written.parse(data) == [value, None if nulls else 0]
        assert written.from_plain(written.to_plain(data)) == (
            data if nulls else written.serialise([value, 0])
        )
    found = inferred("PROTOBUF", SUBJECT)
    assert isinstance(found, list)
    assert [str(column) for column in found] == [f"`C0` {parse_type(of)}", "`C1` INTEGER"]


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR", "AVRO", "JSON_SR"])
def test_decimals_of_many_digits_keep_them(registry: MemoryRegistry, name: str) -> None:
    value = Decimal("-123456789012345678901234567890123456.78")
    form = made(name, "DECIMAL(38, 2)", "INT")
    assert form.parse(form.serialise([value, 1])) == [value, 1]


DEFAULTS = {"BOOLEAN": False, "INT": 0, "BIGINT": 0, "DOUBLE": 0.0, "VARCHAR": "", "BYTES": b""}


@pytest.mark.parametrize("of", [*DEFAULTS, "TIMESTAMP", "DATE", "DECIMAL(4, 2)", "STRUCT<F INT>"])
def test_nulls(registry: MemoryRegistry, of: str) -> None:
    for nulls, expected in ((None, DEFAULTS.get(of)), ("OPTIONAL", None), ("WRAPPER", None)):
        form = made("PROTOBUF", of, nulls=nulls)
        assert form.parse(form.serialise([None])) == [expected]
    empty = made("PROTOBUF", "ARRAY<INT>", "MAP<VARCHAR, INT>")
    assert empty.parse(empty.serialise([None, None])) == [[], {}]
    assert (empty.serialise(None), empty.parse(None)) == (None, None)


@pytest.mark.parametrize(("of", "value"), [("ARRAY<INT>", [1, None]), ("MAP<VARCHAR, INT>", {"a": None})])
def test_nulls_within_arrays_and_maps_are_refused(registry: MemoryRegistry, of: str, value: Any) -> None:
    with pytest.raises(BadRecord, match="a null in an array or map"):
        made("PROTOBUF", of).serialise([value])


def test_the_schema_of_columns_is_as_ksqldb_registers_it() -> None:
    text = schema_for(
        columns("INT", "ARRAY<VARCHAR>", "MAP<VARCHAR, DOUBLE>", "STRUCT<F STRUCT<G INT>>", "STRUCT<H DATE>"),
        None,
        None,
    )
    assert text == (
        'syntax = "proto3";\n\nimport "google/type/date.proto";\n\nmessage ConnectDefault1 {\n  int32 C0 = 1;\n'
        "  repeated string C1 = 2;\n  repeated ConnectDefault2Entry C2 = 3;\n  ConnectDefault3 C3 = 4;\n"
        "  ConnectDefault5 C4 = 5;\n\n  message ConnectDefault2Entry {\n    string key = 1;\n    double value = 2;\n"
        "  }\n\n  message ConnectDefault3 {\n    ConnectDefault4 F = 1;\n\n    message ConnectDefault4 {\n"
        "      int32 G = 1;\n    }\n  }\n\n  message ConnectDefault5 {\n    google.type.Date H = 1;\n  }\n}\n"
    )
    assert "package a.b;\n\nmessage C {\n  optional int32 C0 = 1;\n}\n" in schema_for(
        columns("INT"), "OPTIONAL", "a.b.C"
    )
    assert "google.protobuf.Int32Value C0 = 1;" in schema_for(columns("INT"), "WRAPPER", None)


SHOP = """
// An order, as a shop has it.
syntax = "proto3";
package shop;
option java_package = "x";   /* nothing
  to do with data */
import "google/protobuf/timestamp.proto";
import 'google/protobuf/wrappers.proto';
import "confluent/meta.proto";
import "confluent/type/decimal.proto";

enum State { option allow_alias = true; OPEN = 0; DONE = 1 [deprecated = true]; ENDED = 1; BACK = -1; }
message Address { string street = 1; Order.Kind kind = 2; reserved 3, 5 to 7; }
message Order {
  enum Kind { NEW = 0; OLD = 5; }
  message Line { string what = 1; uint32 count = 2; fixed64 cents = 3; }
  uint64 id = 1; sint32 delta = 2;
  repeated Line lines = 3;
  map<string, .shop.Address> places = 4;
  State state = 5;
  oneof paid { string card = 6; double cash = 7; }
  optional int32 rating = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.BoolValue gift = 10;
  confluent.type.Decimal total = 11 [(confluent.field_meta) = { params: [
     { value: "4", key: "precision" }, { key: "scale", value: "2" } ] }];
  float weight = 12 [json_name = "w"];
  repeated sint64 marks = 13 [packed = false];
  extensions 100 to max;
}
service Shop { rpc Buy (Order) returns (Order) {} }
"""


def test_a_schema_is_read_as_columns() -> None:
    file = parse(SHOP)
    assert [f"{field.name} {field.type}" for field in columns_of(file.named("shop.Order"))] == [
        "PAID_0 STRUCT<`CARD` STRING, `CASH` DOUBLE>",
        "ID BIGINT",
        "DELTA INTEGER",
        "LINES ARRAY<STRUCT<`WHAT` STRING, `COUNT` BIGINT, `CENTS` BIGINT>>",
        "PLACES MAP<STRING, STRUCT<`STREET` STRING, `KIND` STRING>>",
        "STATE STRING",
        "RATING INTEGER",
        "AT TIMESTAMP",
        "GIFT BOOLEAN",
        "TOTAL DECIMAL(4, 2)",
        "WEIGHT DOUBLE",
        "MARKS ARRAY<BIGINT>",
    ]
    assert file.at([1, 0]).full_name == "shop.Order.Line"
    assert file.named(None).full_name == "shop.Address"


PROTO2 = """message Old {
  required int32 a = 1; optional string b = 2 [default = "it's"]; repeated int32 c = 3;
  optional bool d = 4; extend Old { optional int32 e = 100; } optional double f = 5 [default = 1e3];
}"""


def test_proto2_has_defaults_and_tells_what_is_not_there() -> None:
    read = codec.reader(parse(PROTO2).named(None))
    assert read(b"\x08\x01\x18\x05\x18\x06\x1a\x02\x07\x08", 0) == (
        {"a": 1, "b": "it's", "c": [5, 6, 7, 8], "d": None, "f": 1000.0}
    )


def test_what_a_schema_imports_is_the_registrys(registry: MemoryRegistry) -> None:
    logistics = 'syntax = "proto3"; import "event.proto"; message Logistics { Event event = 1; }'
    event = 'syntax = "proto3"; message Event { int64 at = 1; }'
    schema = RegisteredSchema("PROTOBUF", logistics, (("event.proto", event),))
    schema_id = registry.register("t-value", schema)
    assert [str(field) for field in inferred("PROTOBUF", SUBJECT)] == ["`EVENT` STRUCT<`AT` BIGINT>"]  # type: ignore[union-attr]
    form = make_format("PROTOBUF", [Column("EVENT", parse_type("STRUCT<AT BIGINT>"))], None, None, SUBJECT)
    assert form.parse(header(schema_id) + b"\0\x0a\x02\x08\x07") == [{"AT": 7}]


def test_indexes_say_which_message_a_record_is(registry: MemoryRegistry) -> None:
    schema_id = registry.register("t-value", RegisteredSchema("PROTOBUF", SHOP))
    form = make_format(
        "PROTOBUF",
        [Column("WHAT", parse_type("VARCHAR")), Column("COUNT", parse_type("BIGINT"))],
        subject=SUBJECT,
    )
    line = b"\x0a\x01x\x10\xff\xff\xff\xff\x0f"
    assert form.parse(header(schema_id) + b"\x04\x02\x00" + line) == ["x", 2**32 - 1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "no schema's id"),
        (header(9) + b"\0", "has no Protobuf schema 9"),
        (header(2) + b"\0", "has no Protobuf schema 2"),
        (header(1), "ends too early"),
        (header(1) + b"\x02\x09", "no message"),
        (header(1) + b"\x03", "-2 indexes"),
        (header(1) + b"\xfe\xff\x03", "indexes of messages"),
        (header(1) + b"\0\x0a\x7fx", "ends too early"),
        (header(1) + b"\0\x0a\x01\xff", "codec can't decode"),
        (header(1) + b"\0\x00\x01", "a field with the number 0"),
        (header(1) + b"\0\x0e\x01", "6 is no wire type"),
        (header(1) + b"\0\x14", "the end of a group"),
        (header(1) + b"\0\x13", "ends too early"),
        (header(1) + b"\0" + b"\xff" * 11, "more than 64 bits"),
    ],
)
def test_bad_messages(registry: MemoryRegistry, data: bytes, why: str) -> None:
    form = made("PROTOBUF", "VARCHAR")
    form.serialise(["x"])
    registry.register("other", RegisteredSchema("JSON", "{}"))
    with pytest.raises(BadRecord, match=why):
        form.parse(data)


def test_a_message_in_itself_is_read_so_deep_and_no_deeper() -> None:
    read = codec.reader(parse('syntax = "proto3"; message A { A a = 1; int32 n = 2; }').named(None))
    data = b"\x10\x05"
    for _ in range(50):
        data = b"\x0a" + bytes(codec_size(len(data))) + data
    for _ in range(50):
        found = read(data, 0)
    for _ in range(50):
        found = found["a"]
    assert found == {"a": None, "n": 5}
    for _ in range(60):
        data = b"\x0a" + bytes(codec_size(len(data))) + data
    with pytest.raises(ValueError, match="messages in messages"):
        read(data, 0)


def codec_size(size: int) -> bytes:
    from pykafkad.pipelines.formats.proto_writing import varint_bytes

    return varint_bytes(size)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no message is in it"),
        ("message", "line 1: expected a name, found the end"),
        ('syntax = "proto4";', "neither proto2 nor proto3"),
        ("message A {\n int32 a = 1\n}", "line 3: expected ;, found }"),
        ("message A { Nothing a = 1; }", "nothing declares the type Nothing"),
        ("message A { int32 a = 0; }", "0 is no number of a field"),
        ("message A { int32 a = 1; int32 b = 1; }", "two fields 1"),
        ("message A {} message A {}", "declared twice"),
        ("message A { optional group B = 1 {} }", "groups"),
        ("message A { map<double, int32> m = 1; }", "double is no type of a map's keys"),
        ("message A { oneof u { repeated int32 a = 1; } }", "repeated in the oneof"),
        ("enum E {} message A { E e = 1; }", "has no values"),
        ("message A { int32 a = 1.5; }", "expected a whole number, found 1.5"),
        ("message A { int32 a = 1 [default = ", "expected ]"),
        ("message A { " * 200, "messages in messages"),
        ('message A { string s = 1 [deprecated = "', "expected"),
    ],
)
def test_schemas_that_are_none(text: str, why: str) -> None:
    with pytest.raises(BadSchema, match=why):
        parse(text).named(None)


def test_a_message_in_itself_is_no_column() -> None:
    with pytest.raises(BadSchema, match="contains itself"):
        columns_of(parse("message A { optional A a = 1; }").named(None))


def test_any_change_of_a_schema_is_read_or_refused_and_soon() -> None:
    generator = random.Random(20)
    for _ in range(300):
        place, size = generator.randrange(len(SHOP)), generator.randrange(4)
        changed = (
            SHOP[:place]
            + generator.choice(["", "{", "}", ";", "=", "9", '"', "[", "map<"])
            + SHOP[place + size :]
        )
        try:
            columns_of(parse(changed).named(None))
        except BadSchema:
            continue
    began = time.process_time()
    with pytest.raises(BadSchema):
        parse("message A { string s = 1 [" + "{" * 200_000)
    assert time.process_time() - began < 5


# --- Google's library as the oracle


def descriptors(message: ProtoMessage) -> Any:
    """The class that Google's library makes of what our parser has read."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
    message_factory = pytest.importorskip("google.protobuf.message_factory")

    file = descriptor_pb2.FileDescriptorProto(name="t.proto", syntax="proto3")
    seen: set[str] = set()

    def flat(name: str) -> str:
        return name.replace(".", "_").replace("<", "").replace(">", "")

    def add(one: ProtoMessage) -> str:
        if one.full_name in seen:
            return flat(one.full_name)
        seen.add(one.full_name)
        into = file.message_type.add(name=flat(one.full_name))
        for oneof in one.oneofs:
            into.oneof_decl.add(name=oneof)
        kinds = descriptor_pb2.FieldDescriptorProto
        for field in one.fields:
            made = into.field.add(name=field.name, number=field.number)
            made.label = kinds.LABEL_REPEATED if field.repeated else kinds.LABEL_OPTIONAL
            if field.message is not None:
                made.type, made.type_name = kinds.TYPE_MESSAGE, "." + add(field.message)
            elif field.enum is not None:
                made.type, made.type_name = kinds.TYPE_ENUM, "." + flat(field.enum.full_name)
                if field.enum.full_name not in seen:
                    seen.add(field.enum.full_name)
                    enum = file.enum_type.add(name=flat(field.enum.full_name))
                    for number, name in field.enum.names.items():
                        enum.value.add(name=f"{enum.name}_{name}", number=number)
            else:
                made.type = kinds.Type.Value(f"TYPE_{field.kind.upper()}")
                if field.repeated and field.kind not in ("string", "bytes"):
                    made.options.packed = field.packed
            if field.oneof is not None:
                made.oneof_index = one.oneofs.index(field.oneof)
        return flat(one.full_name)

    name = add(message)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_googles_library_reads_what_we_write_and_writes_the_same(registry: MemoryRegistry) -> None:
    for of, value in VALUES:
        data = made("PROTOBUF_NOSR", of, "INT").serialise([value, 7])
        assert data is not None
        cls = descriptors(parse(schema_for(columns(of, "INT"), None, None)).named(None))
        read = cls.FromString(data)
        assert read.C1 == 7
        assert read.SerializeToString(deterministic=True) == data, of
    assert cls.FromString(data).C0.G.I[0].value == 2


EVERY = """syntax = "proto3"; message Every {
  double a = 1; float b = 2; int32 c = 3; int64 d = 4; uint32 e = 5; sint32 f = 6; sint64 g = 7; fixed32 h = 8;
  sfixed32 i = 9; sfixed64 j = 10; bool k = 11; string l = 12; bytes m = 13; repeated sint64 n = 14;
  repeated float o = 15; repeated Every p = 16; Every q = 17; repeated bool r = 18 [packed = false]; }"""
BOUNDS = {
    "c": (-(2**31), 2**31),
    "d": (-(2**63), 2**63),
    "e": (0, 2**32),
    "f": (-(2**31), 2**31),
    "g": (-(2**63), 2**63),
    "h": (0, 2**32),
    "i": (-(2**31), 2**31),
    "j": (-(2**63), 2**63),
}


def filled(message: Any, generator: random.Random, depth: int = 0) -> None:
    for name, (low, high) in BOUNDS.items():
        if generator.random() < 0.7:
            setattr(message, name, generator.choice([low, high - 1, 0, generator.randrange(low, high)]))
    message.a, message.b = generator.uniform(-1e9, 1e9), generator.choice([0.5, -0.25, 0.0])
    message.k = generator.random() < 0.5
    message.l = "".join(generator.choice("a\u00e9\U0001f600") for _ in range(generator.randrange(200)))
    message.m = generator.randbytes(generator.randrange(300))
    message.n.extend(generator.randrange(-(2**63), 2**63) for _ in range(generator.randrange(20)))
    message.o.extend([1.5] * generator.randrange(3))
    message.r.extend(generator.random() < 0.5 for _ in range(3))
    if depth < 2:
        for _ in range(generator.randrange(3)):
            filled(message.p.add(), generator, depth + 1)
        filled(message.q, generator, depth + 1)


def same(read: dict[str, Any] | None, message: Any) -> None:
    for name in "abcdefghijklm":
        assert read is not None and read[name] == getattr(message, name), name
    assert read is not None and (read["n"], read["o"], read["r"]) == (
        list(message.n),
        list(message.o),
        list(message.r),
    )
    assert len(read["p"]) == len(message.p)
    for one, other in zip(read["p"], message.p, strict=True):
        same(one, other)
    assert (read["q"] is not None) == message.HasField("q")
    if message.HasField("q"):
        same(read["q"], message.q)


def test_what_googles_library_writes_is_read() -> None:
    schema = parse(EVERY).named(None)
    cls, read = descriptors(schema), codec.reader(schema)
    generator = random.Random(15)
    for _ in range(60):
        message, second = cls(), cls()
        filled(message, generator)
        filled(second, generator)
        data = message.SerializeToString()
        same(read(data, 0), message)
        both = (
            data + b"\xa8\x1f\x01" + second.SerializeToString()
        )  # an unknown field, and then what is merged
        same(read(both, 0), cls.FromString(both))


def test_what_is_no_message_for_googles_library_is_none_for_us() -> None:
    schema = parse(EVERY).named(None)
    cls, read = descriptors(schema), codec.reader(schema)
    generator = random.Random(16)
    message = cls()
    filled(message, generator)
    data = message.SerializeToString()
    refused = 0
    for _ in range(2000):
        place = generator.randrange(min(len(data), 400))
        changed = data[:place] + bytes([generator.randrange(256)]) + data[place + 1 :]
        changed = changed[: generator.randrange(len(data))] if generator.random() < 0.3 else changed
        try:
            expected = cls.FromString(changed)
        except Exception:
            refused += 1
            with pytest.raises(ValueError, match=r"."):
                read(changed, 0)
        else:
            same(read(changed, 0), expected)
    assert refused > 100


# --- statements


CASE = [
    f"SET 'ksql.schema.registry.url'='{URL}';",
    "CREATE STREAM S (K VARCHAR KEY, V VARCHAR, N BIGINT, T TIMESTAMP) WITH (kafka_topic='s', format='PROTOBUF');",
    "CREATE STREAM O AS SELECT K, UCASE(V) AS V, N FROM S;",
    "CREATE STREAM W WITH (value_protobuf_nullable_representation='WRAPPER', value_schema_full_name='a.W') AS "
    "SELECT K, V, T FROM S;",
    "CREATE STREAM B WITH (format='PROTOBUF_NOSR') AS SELECT K, N FROM S;",
    "CREATE TABLE C AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;",
]
INPUTS = [
    {"topic": "s", "key": {"K": "k"}, "value": {"V": "x", "N": 5, "T": 1000}},
    {"topic": "s", "key": {"K": None}, "value": {"V": None, "N": None, "T": None}},
]


def test_statements_write_what_they_register(registry: MemoryRegistry) -> None:
    outputs = run_case(CASE, INPUTS, host="local")
    assert sorted((out["topic"], str(out["key"]), str(out["value"])) for out in outputs) == [
        ("B", "{'K': ''}", "{'N': 0}"),
        ("B", "{'K': 'k'}", "{'N': 5}"),
        ("C", "{'V': ''}", "{'N': 1}"),
        ("C", "{'V': 'x'}", "{'N': 1}"),
        ("O", "{'K': ''}", "{'V': '', 'N': 0}"),
        ("O", "{'K': 'k'}", "{'V': 'X', 'N': 5}"),
        ("W", "{'K': ''}", "{'V': '', 'T': None}"),
        ("W", "{'K': 'k'}", "{'V': 'x', 'T': 1000}"),
    ]
    assert {
        (subject, "WRAPPER" if "Value" in schema.text else "") for subject, schema in registry.schemas
    } == {
        ("W-value", "WRAPPER"),
        *((f"{topic}-{of}", "") for topic in ("s", "O", "C") for of in ("key", "value")),
        ("W-key", ""),
    }


def test_columns_that_a_statement_does_not_say_are_the_registrys(registry: MemoryRegistry) -> None:
    run_case(CASE, INPUTS, host="local")
    statements = [
        CASE[0],
        "CREATE STREAM S (K VARCHAR KEY) WITH (kafka_topic='s', key_format='KAFKA', value_format='PROTOBUF');",
        "CREATE STREAM P WITH (value_format='JSON') AS SELECT K, N + 1 AS M, T FROM S;",
    ]
    outputs = run_case(
        statements, [{"topic": "s", "key": "a", "value": {"V": "y", "N": 7, "T": 5}}], host="local"
    )
    assert [(out["key"], out["value"]) for out in outputs] == [("a", {"M": 8, "T": 5})]


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("(V INT) WITH (kafka_topic='s', value_format='PROTOBUF', wrap_single_value=false);",
         "Format 'PROTOBUF' does not support 'WRAP_SINGLE_VALUE' set to 'false'."),
        ("(V MAP<INT, INT>) WITH (kafka_topic='s', value_format='PROTOBUF');",
         "PROTOBUF format only supports MAP types with STRING keys"),
        ("(V ARRAY<ARRAY<INT>>) WITH (kafka_topic='s', value_format='PROTOBUF_NOSR');",
         "The 'PROTOBUF_NOSR' format does not support type 'ARRAY' of 'ARRAY<INTEGER>'"),
        ("(`a-b` INT) WITH (kafka_topic='s', value_format='PROTOBUF');",
         "The 'PROTOBUF' format cannot name a field `a-b`"),
        ("WITH (kafka_topic='none', value_format='PROTOBUF');",
         "The schema registry has no schema for the subject none-value."),
        ("WITH (kafka_topic='other', value_format='PROTOBUF', value_schema_full_name='X');",
         "The schema of other-value cannot be read as columns: no message X is in it"),
        ("(V INT) WITH (kafka_topic='s', value_format='JSON', value_protobuf_nullable_representation='WRAPPER');",
         "JSON does not support the following configs: [nullableRepresentation]"),
        ("(V INT) WITH (kafka_topic='s', value_format='PROTOBUF', value_protobuf_nullable_representation='X');",
         "Failed to prepare statement: Configuration VALUE_PROTOBUF_NULLABLE_REPRESENTATION is invalid"),
        ("(V INT) WITH (kafka_topic='s', value_format='PROTOBUF', value_schema_full_name='1;');",
         "Failed to prepare statement: Configuration VALUE_SCHEMA_FULL_NAME is invalid"),
    ],
)  # fmt: skip
def test_refusals(registry: MemoryRegistry, rest: str, reason: str) -> None:
    registry.register(
        "other-value", RegisteredSchema("PROTOBUF", 'syntax = "proto3"; message A { int32 a = 1; }')
    )
    with pytest.raises(StatementError) as refused:
        run_case([CASE[0], f"CREATE STREAM S {rest}"], [], host="local")
    assert refused.value.reason.startswith(reason)
