"""What a .proto file declares: messages, their fields and enums, as proto_text reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykafkad.pipelines.formats.avro_schema import BadSchema

NUMBERS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64")
FIXED = ("fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS = frozenset((*NUMBERS, *FIXED, "bool", "string", "bytes"))


@dataclass(slots=True, eq=False)
class ProtoEnum:
    full_name: str
    names: dict[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.full_name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class ProtoField:
    name: str
    number: int
    type_name: str
    """As it is written."""
    repeated: bool = False
    presence: bool = False
    """Whether a value that is not there differs from the type's default."""
    oneof: str | None = None
    """The name of the union that it is a member of."""
    kind: str = ""
    """The scalar's name, "enum" or "message"."""
    message: ProtoMessage | None = None
    enum: ProtoEnum | None = None
    options: dict[str, str] = field(default_factory=dict)
    """`default`, `packed`, and the parameters of confluent.field_meta."""
    packed: bool = False


@dataclass(slots=True, eq=False)
class ProtoMessage:
    full_name: str
    fields: list[ProtoField] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    """Those that are declared in it, in their order: a record's message indexes count them."""
    oneofs: list[str] = field(default_factory=list)
    map_entry: bool = False


@dataclass(slots=True)
class ProtoFile:
    messages: list[ProtoMessage] = field(default_factory=list)
    types: dict[str, ProtoMessage | ProtoEnum] = field(default_factory=dict)
    """Those of imported files, too."""

    def at(self, indexes: list[int]) -> ProtoMessage:
        """The message that a record's indexes lead to."""
        messages, found = self.messages, None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueError(f"the schema has no message {indexes}")
            found = messages[index]
            messages = found.messages
        if found is None:
            raise ValueError("no index of a message")
        return found

    def named(self, full_name: str | None) -> ProtoMessage:
        """The message of this name; the first where there is none."""
        if full_name is None:
            if not self.messages:
                raise BadSchema("no message is in it")
            return self.messages[0]
        found = self.types.get(full_name)
        if not isinstance(found, ProtoMessage):
            raise BadSchema(f"no message {full_name} is in it")
        return found
