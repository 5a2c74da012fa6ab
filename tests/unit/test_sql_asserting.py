"""ASSERT SCHEMA, with a registry that is none."""

from __future__ import annotations

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.formats import registry
from pykafkad.pipelines.formats.registry import RegisteredSchema
from pykafkad.pipelines.running.asserting import schema
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.parser import parse

URL = "http://a-registry"


class Known:
    """Subject x with schemas 1 and 2, of which 2 is the newer one."""

    def by_id(self, schema_id: int) -> RegisteredSchema | None:
        return RegisteredSchema("AVRO", str(schema_id)) if schema_id in (1, 2) else None

    def latest(self, subject: str) -> RegisteredSchema | None:
        return self.by_id(2) if subject == "x" else None

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        raise AssertionError("an assertion registers nothing")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.REGISTRIES, URL, Known())


def asserted(text: str, url: str | None = URL) -> str:
    statement = parse(f"{text} TIMEOUT 0 SECONDS")
    assert isinstance(statement, ast.AssertSchema)
    return schema(url, statement).text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("ASSERT SCHEMA SUBJECT x", "Schema of subject x exists."),
        ("ASSERT SCHEMA ID 1", "Schema 1 exists."),
        ("ASSERT SCHEMA SUBJECT x ID 2", "Schema 2 of subject x exists."),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT y", "Schema of subject y does not exist, as it should."),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT x ID 1", "Schema 1 of subject x does not exist, as it should."),
    ],
)
def test_what_is_so(text: str, answer: str) -> None:
    assert asserted(text) == answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ASSERT SCHEMA SUBJECT y", "Schema of subject y does not exist"),
        ("ASSERT SCHEMA ID 3", "Schema 3 does not exist"),
        ("ASSERT NOT EXISTS SCHEMA ID 1", "Schema 1 exists"),
    ],
)
def test_what_is_not_so(text: str, reason: str) -> None:
    with pytest.raises(StatementError) as caught:
        asserted(text)
    assert caught.value.reason == reason


def test_without_a_registry_it_is_said_how_to_name_one() -> None:
    with pytest.raises(StatementError, match=r"SET 'ksql\.schema\.registry\.url'"):
        asserted("ASSERT SCHEMA ID 1", None)
