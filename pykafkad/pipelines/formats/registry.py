"""A schema registry, as Confluent's REST API has it: schemas by their ids, and the newest of a subject.

`registry_at(url)` is the registry of a process for a URL, which remembers what it was told: a schema by its id
never changes. A registry that cannot be asked raises RegistryError, and no record is taken for bad because of that.
"""

from __future__ import annotations

import json
from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REGISTRY_URL = "ksql.schema.registry.url"
"""The property that says where the registry is."""

TIMEOUT_SECONDS = 30.0
MAX_ANSWER = 16 << 20
MAX_REFERENCES = 100


class RegisteredSchema(NamedTuple):
    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    imports: tuple[tuple[str, str], ...] = ()
    """The names and texts of the schemas that it refers to."""


class RegistryError(Exception):
    """The registry did not answer, or refused."""


class Registry(Protocol):
    def by_id(self, schema_id: int) -> RegisteredSchema | None:
        """None where it has no such schema."""
        ...

    def latest(self, subject: str) -> RegisteredSchema | None:
        """None where it has no such subject."""
        ...

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The schema's id, which it has got now if it had none."""
        ...


class HttpRegistry:
    """By HTTP or HTTPS, at one of several URLs separated by commas, with user:password@ where it asks for them."""

    def __init__(self, urls: str) -> None:
        self._urls = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
        self._by_id: dict[int, RegisteredSchema] = {}
        self._ids: dict[tuple[str, RegisteredSchema], int] = {}

    def by_id(self, schema_id: int) -> RegisteredSchema | None:
        if schema_id not in self._by_id:
            answer = self._ask(f"/schemas/ids/{schema_id}")
            if answer is None:
                return None
            self._by_id[schema_id] = self._schema_of(answer)
        return self._by_id[schema_id]

    def latest(self, subject: str) -> RegisteredSchema | None:
        answer = self._ask(f"/subjects/{_quoted(subject)}/versions/latest")
        return None if answer is None else self._schema_of(answer)

    def _schema_of(self, answer: dict[str, Any]) -> RegisteredSchema:
        text, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(text, str):
            raise RegistryError("the schema registry's answer has no schema")
        return RegisteredSchema(str(kind), text, tuple(self._referred(answer).items()))

    def _referred(self, answer: dict[str, Any]) -> dict[str, str]:
        """What a schema refers to, and what that refers to."""
        found: dict[str, str] = {}
        open_ones = _references(answer)
        while open_ones:
            name, subject, version = open_ones.pop()
            if name in found:
                continue
            referred = self._ask(f"/subjects/{_quoted(subject)}/versions/{version}")
            if referred is None or not isinstance(referred.get("schema"), str):
                raise RegistryError(f"the schema registry has no version {version} of {subject}")
            found[name] = referred["schema"]
            if len(found) > MAX_REFERENCES:
                raise RegistryError(f"a schema refers to more than {MAX_REFERENCES} others")
            open_ones += _references(referred)
        return found

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        known = self._ids.get((subject, schema))
        if known is None:
            body = {"schema": schema.text, "schemaType": schema.kind}
            answer = self._ask(f"/subjects/{_quoted(subject)}/versions", body)
            if answer is None or type(answer.get("id")) is not int:
                raise RegistryError(f"the schema registry gave no id for a schema of {subject}")
            known = self._ids[(subject, schema)] = answer["id"]
        return known

    def _ask(self, path: str, body: dict[str, str] | None = None) -> dict[str, Any] | None:
        """The first answer of the registries; None for what is not there."""
        problem = "no URL is given"
        for url in self._urls:
            try:
                return _request(url, path, body)
            except OSError as error:
                problem = f"{_without_password(url)}: {getattr(error, 'reason', None) or error}"
        raise RegistryError(f"no schema registry answers: {problem}")


def _request(url: str, path: str, body: dict[str, str] | None) -> dict[str, Any] | None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    bare, headers = _credentials(url)
    data = None if body is None else json.dumps(body).encode()
    request = Request(bare + path, data, {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE, **headers})
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return _parsed(answer.read(MAX_ANSWER))
    except HTTPError as error:
        if error.code == 404:
            return None
        said = _message(error.read(MAX_ANSWER))
        raise RegistryError(f"the schema registry answers {error.code} to {path}: {said}") from None


CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


def _credentials(url: str) -> tuple[str, dict[str, str]]:
    """The URL without user and password, and the header that says them."""
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RegistryError(f"{_without_password(url)} is no URL of a schema registry")
    who, at, host = parts.netloc.rpartition("@")
    bare = f"{parts.scheme}://{host}{parts.path}"
    return bare, {"Authorization": f"Basic {b64encode(unquote(who).encode()).decode()}"} if at else {}


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _quoted(subject: str) -> str:
    from urllib.parse import quote

    return quote(subject, safe="")


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RegistryError("the schema registry's answer is no JSON object")
    return answer


def _message(data: bytes) -> str:
    try:
        return str(_parsed(data).get("message", "no reason given"))
    except RegistryError:
        return "no reason given"


def _references(answer: dict[str, Any]) -> list[tuple[str, str, int]]:
    try:
        said = answer.get("references") or []
        return [(str(one["name"]), str(one["subject"]), int(one["version"])) for one in said]
    except (KeyError, TypeError, ValueError):
        raise RegistryError("the schema registry's answer has references that are none") from None


REGISTRIES: dict[str, Registry] = {}
"""Of this process, by their URLs."""


def registry_at(url: str) -> Registry:
    return REGISTRIES.setdefault(url, HttpRegistry(url))


class Subject(NamedTuple):
    """Where a topic's keys or values have their schemas. It pickles."""

    url: str
    name: str

    @property
    def registry(self) -> Registry:
        return registry_at(self.url)


# --- what a serializer puts in front of the data

MAGIC = 0
HEADER = 5


def header(schema_id: int) -> bytes:
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def schema_id_of(data: bytes) -> int | None:
    """The id in front of the data; None where there is none."""
    return int.from_bytes(data[1:HEADER], "big") if len(data) >= HEADER and data[0] == MAGIC else None
