"""Protocol buffers' schema language: the text of .proto files as messages, their fields and enums.

proto3, and of proto2 what is in messages without groups. What means nothing for data (options, services, extensions,
reserved names) is passed over.

    parse(text, imports) -> ProtoFile      imports: the texts of other files by the names that `import` says
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pykafkad.pipelines.formats.avro_schema import MAX_DEPTH, BadSchema
from pykafkad.pipelines.formats.proto_known import KNOWN
from pykafkad.pipelines.formats.proto_nodes import SCALARS, ProtoEnum, ProtoField, ProtoFile, ProtoMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_NUMBER = (1 << 29) - 1


def parse(text: str, imports: Mapping[str, str] | None = None) -> ProtoFile:
    file = ProtoFile()
    unresolved: list[tuple[str, ProtoField]] = []
    _load(text, {**KNOWN, **(imports or {})}, file, file.messages, unresolved, set())
    for scope, one in unresolved:
        _resolve(one, scope, file.types)
    return file


def _load(
    text: str,
    imports: Mapping[str, str],
    file: ProtoFile,
    messages: list[ProtoMessage],
    unresolved: list[tuple[str, ProtoField]],
    loaded: set[str],
) -> None:
    """What a file and its imports declare; an import that is not there is missed where a type of its is used."""
    reader = _Reader(text, file, unresolved)
    reader.file(messages)
    for said in reader.imports:
        name = said if said in imports else said.lower()  # Connect writes TimeOfDay.proto, too
        if name in imports and name not in loaded:
            loaded.add(name)
            if len(loaded) > MAX_DEPTH:
                raise BadSchema(f"more than {MAX_DEPTH} files are imported")
            _load(imports[name], imports, file, [], unresolved, loaded)


def _resolve(one: ProtoField, scope: str, types: Mapping[str, ProtoMessage | ProtoEnum]) -> None:
    """Gives a field the type that its name stands for: in its message, in what is around that, or from the top."""
    if one.type_name in SCALARS:
        one.kind = one.type_name
        one.packed = one.packed and one.kind not in ("string", "bytes")
        return
    found = types.get(one.type_name[1:]) if one.type_name.startswith(".") else None
    while found is None and not one.type_name.startswith("."):
        found = types.get(f"{scope}.{one.type_name}" if scope else one.type_name)
        if not scope:
            break
        scope = scope.rpartition(".")[0]
    if found is None:
        raise BadSchema(f"nothing declares the type {one.type_name} of the field {one.name}")
    if isinstance(found, ProtoEnum):
        one.kind, one.enum = "enum", found
    else:
        one.kind, one.message, one.packed = "message", found, False
        one.presence = True


_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<word>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
      | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
END = "the end"


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """Kind, text and place."""
    return [(m.lastgroup or "", m[0], m.start()) for m in _TOKEN.finditer(text) if m.lastgroup != "skip"]


class _Reader:
    """Recursive descent over the tokens of one file."""

    def __init__(self, text: str, into: ProtoFile, unresolved: list[tuple[str, ProtoField]]) -> None:
        self._text, self._tokens, self._at = text, _tokens(text), 0
        self._types, self._unresolved = into.types, unresolved
        self.imports: list[str] = []
        self._proto3, self._package = False, ""

    # --- tokens

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else END

    def _next(self) -> str:
        found = self._peek()
        self._at += 1
        return found

    def _fault(self, expected: str) -> BadSchema:
        at = min(self._at, len(self._tokens) - 1)
        line = self._text.count("\n", 0, self._tokens[at][2]) + 1 if self._tokens else 1
        return BadSchema(f"line {line}: expected {expected}, found {self._peek()[:50]}")

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._fault(sign)
        self._at += 1

    def _skip(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._at += 1
        return True

    def _of(self, kind: str, expected: str) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != kind:
            raise self._fault(expected)
        return self._next()

    def _name(self) -> str:
        return self._of("word", "a name")

    def _string(self) -> str:
        return self._of("text", "a string")[1:-1]

    def _number(self) -> int:
        text = self._of("number", "a number")
        try:
            return int(text, 0) if text.strip("+-")[:1] != "0" or "x" in text.lower() else int(text, 8)
        except ValueError:
            self._at -= 1
            raise self._fault("a whole number") from None

    def _pass_over(self) -> None:
        """To the end of a statement: a ; outside of braces, or the end of its braces."""
        depth = 0
        while (found := self._next()) != END:
            depth += (found == "{") - (found == "}")
            if depth <= 0 and (found == ";" or found == "}"):
                self._skip(";")
                return
        raise self._fault(";")

    # --- declarations

    def file(self, messages: list[ProtoMessage]) -> None:
        while (word := self._peek()) != END:
            if word == "syntax":
                self._syntax()
            elif word == "import":
                self._next()
                if self._peek() in ("public", "weak"):
                    self._next()
                self.imports.append(self._string())
                self._take(";")
            elif word == "package":
                self._next()
                self._package = self._name()
                self._take(";")
            elif word in ("option", "service", "extend"):
                self._pass_over()
            elif not self._skip(";"):
                self._type(messages, self._package, 0)

    def _syntax(self) -> None:
        self._next()
        self._take("=")
        said = self._string()
        if said not in ("proto2", "proto3"):
            raise BadSchema(f"syntax {said} is neither proto2 nor proto3")
        self._proto3 = said == "proto3"
        self._take(";")

    def _type(self, messages: list[ProtoMessage], scope: str, depth: int) -> None:
        word = self._peek()
        if word not in ("message", "enum"):
            raise self._fault("message or enum")
        self._next()
        full_name = f"{scope}.{self._name()}" if scope else self._name()
        if full_name in self._types:
            raise BadSchema(f"{full_name} is declared twice")
        if word == "enum":
            self._types[full_name] = self._enum(ProtoEnum(full_name))
        else:
            message = ProtoMessage(full_name)
            self._types[full_name] = message
            messages.append(message)
            self._message(message, depth)

    def _enum(self, enum: ProtoEnum) -> ProtoEnum:
        self._take("{")
        while not self._skip("}"):
            if self._peek() in ("option", "reserved"):
                self._pass_over()
            elif not self._skip(";"):
                name = self._name()
                self._take("=")
                enum.names.setdefault(self._number(), name)
                self._options()
                self._take(";")
        if not enum.names:
            raise BadSchema(f"the enum {enum.full_name} has no values")
        return enum

    def _message(self, message: ProtoMessage, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise BadSchema("messages in messages in messages")
        self._take("{")
        while not self._skip("}"):
            word = self._peek()
            if word in ("message", "enum") and self._braced():
                self._type(message.messages, message.full_name, depth + 1)
            elif word in ("option", "reserved", "extensions", "extend"):
                self._pass_over()
            elif word == "oneof" and self._braced():
                self._oneof(message)
            elif not self._skip(";"):
                message.fields.append(self._field(message))
        _check(message)

    def _braced(self) -> bool:
        """Whether `{` follows the next word: a type may have any name, these words also."""
        return self._at + 2 < len(self._tokens) and self._tokens[self._at + 2][1] == "{"

    def _oneof(self, message: ProtoMessage) -> None:
        self._next()
        name = self._name()
        message.oneofs.append(name)
        self._take("{")
        while not self._skip("}"):
            if self._peek() == "option":
                self._pass_over()
            elif not self._skip(";"):
                one = self._field(message)
                if one.repeated:
                    raise BadSchema(f"{one.name} is repeated in the oneof {name}")
                one.oneof, one.presence = name, True
                message.fields.append(one)

    def _field(self, message: ProtoMessage) -> ProtoField:
        label = self._peek() if self._peek() in ("optional", "required", "repeated") else None
        if label is not None:
            self._next()
        type_name = self._name()
        if type_name == "group":
            raise BadSchema("groups of proto2 are not read")
        entry = self._map(message) if type_name == "map" and self._peek() == "<" else None
        name = self._name()
        self._take("=")
        number = self._number()
        options = self._options()
        self._take(";")
        if entry is not None:
            type_name = self._entry(message, name, *entry)
        one = ProtoField(name, number, type_name, label == "repeated" or entry is not None, options=options)
        one.presence = not one.repeated and (label == "optional" or not self._proto3)
        one.packed = one.repeated and options.get("packed", "true" if self._proto3 else "false") == "true"
        self._unresolved.append((message.full_name, one))
        return one

    def _map(self, message: ProtoMessage) -> tuple[str, str]:
        self._take("<")
        key = self._name()
        if key not in SCALARS or key in ("double", "float", "bytes"):
            raise BadSchema(f"{key} is no type of a map's keys")
        self._take(",")
        value = self._name()
        self._take(">")
        return key, value

    def _entry(self, message: ProtoMessage, name: str, key: str, value: str) -> str:
        """A map is, on the wire, repeated messages of a key and a value."""
        entry = ProtoMessage(f"{message.full_name}.<{name}>", map_entry=True)
        entry.fields += [ProtoField("key", 1, key), ProtoField("value", 2, value)]
        self._unresolved += [(message.full_name, one) for one in entry.fields]
        self._types[entry.full_name] = entry
        return "." + entry.full_name

    # --- options of fields

    def _options(self) -> dict[str, str]:
        """`default`, `packed`, and every pair of a key and a value in braces."""
        found: dict[str, str] = {}
        if not self._skip("["):
            return found
        depth, pair = 1, dict[str, str]()
        while depth:
            word = self._next()
            if word == END:
                raise self._fault("]")
            depth += (word in "[{") - (word in "]}")
            if word in ("default", "packed") and depth == 1 and self._skip("="):
                found[word] = self._next().strip("\"'")
            elif word in ("key", "value") and self._skip(":"):
                pair[word] = self._next().strip("\"'")
                if len(pair) == 2:
                    found[pair["key"]] = pair["value"]
                    pair = {}
        return found


def _check(message: ProtoMessage) -> None:
    seen: dict[Any, str] = {}
    for one in message.fields:
        if not 0 < one.number <= MAX_NUMBER:
            raise BadSchema(f"{one.number} is no number of a field")
        for said in (one.number, one.name):
            if said in seen:
                raise BadSchema(f"{message.full_name} has two fields {said}")
            seen[said] = one.name
    names = [one.name for one in message.fields]
    if message.full_name.endswith("Entry") and names == ["key", "value"]:
        message.map_entry = True  # so Connect writes its maps
