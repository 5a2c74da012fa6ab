"""How rows are bytes in topics: KAFKA, JSON, DELIMITED and NONE; AVRO, JSON_SR and PROTOBUF with a schema
registry; PROTOBUF_NOSR.

    make_format(name, columns, wrap=..., delimiter=...) -> Format, which pickles and refuses what it cannot say:
        parse(bytes | None) -> list of values | None     serialise(row | None) -> bytes | None
        from_plain(JSON value) -> bytes | None           to_plain(bytes | None) -> JSON value, as in files of test cases

`columns` are those of the key or of the value alone. A row that cannot be parsed raises BadRecord.
Without columns parse() is always [].
"""

from pykafkad.pipelines.formats.base import NO_SHAPE, BadRecord, Format, MessageShape
from pykafkad.pipelines.formats.making import FORMATS, UNWRAPPED_KEYS, WITH_REGISTRY, make_format

__all__ = [
    "FORMATS",
    "NO_SHAPE",
    "UNWRAPPED_KEYS",
    "WITH_REGISTRY",
    "BadRecord",
    "Format",
    "MessageShape",
    "make_format",
]
