"""The schemas, the tools that check and print them, and the reader that needs no JSON library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot import wire

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "protocol" / "messages"
PACKAGE = Path(messages.__file__).parent  # where it is installed, which need not be beside the tests


def tool(name: Any, *arguments: Any) -> Any:
    return subprocess.run(
        [sys.executable, ROOT / "protocol" / name, *arguments], capture_output=True, text=True, check=False
    )


def test_the_schemas_are_sound() -> None:
    result = tool("check.py")
    assert (result.returncode, result.stdout) == (0, "280 schemas, 0 complaints\n")


def test_the_stub_is_what_the_schemas_say() -> None:
    assert tool("stubs.py").stdout == (PACKAGE / "messages.pyi").read_text()


SOUND = {
    "name": "XRequest",
    "type": "request",
    "key": 0,
    "versions": "0-2",
    "flexible": 1,
    "fields": [{"name": "A", "type": "int8"}],
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"colour": 1}, "XRequest: unknown keys ['colour']"),
        ({"flexible": 5}, "becomes flexible outside its versions"),
        ({"fields": [{"name": "A", "type": "int9"}]}, "XRequest.A: no struct int9"),
        ({"fields": [{"name": "A", "type": "int8", "default": 128}]}, "default 128 is no int8"),
        (
            {"fields": [{"name": "A", "type": "string", "default": None}]},
            "null by default, but never nullable",
        ),
        ({"fields": [{"name": "A", "type": "int8", "versions": "3+"}]}, "are not within its parent's"),
        ({"fields": [{"name": "A", "type": "int8", "tag": 0}]}, "tags in version 0, which is not flexible"),
        ({"fields": [{"name": "A", "type": "int8"}] * 2}, "attribute a is taken"),
        ({"fields": [{"name": "From", "type": "int8"}]}, "attribute from is taken"),
        ({"fields": [{"name": "ApiKey", "type": "int8"}]}, "hides the class attribute api_key"),
        ({"fields": [{"name": "A", "type": "S"}], "structs": []}, "no struct S"),
        ({"structs": [{"name": "S", "fields": []}]}, "struct S is not used"),
        (
            {
                "fields": [{"name": "A", "type": "S"}],
                "structs": [{"name": "S", "fields": [{"name": "B", "type": "[]S"}]}],
            },
            "S holds itself",
        ),
    ],
)
def test_the_checker_finds(tmp_path: Path, change: Any, complaint: Any) -> None:
    (tmp_path / "XRequest.json").write_text(json.dumps(SOUND | change))
    response = SOUND | {"name": "XResponse", "type": "response"}
    (tmp_path / "XResponse.json").write_text(json.dumps(response))
    result = tool("check.py", str(tmp_path))
    assert result.returncode == 1
    assert complaint in result.stdout


def test_the_reader_reads_the_schemas_as_json_does() -> None:
    for path in SCHEMAS.glob("*.json"):
        text = path.read_bytes()
        assert wire.read_schema(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"a"', b'{"a": }', b'"a\\n"', b"[1, 2", b'"a', b"nothing", b"{1: 2}"]
)
def test_what_is_no_schema_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="not a schema"):
        wire.read_schema(text)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("MaxWaitMs", "max_wait_ms"),
        ("Isr", "isr"),
        ("ISRNodes", "isr_nodes"),
        ("TopicID", "topic_id"),
        ("A", "a"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
    ],
)
def test_names_become_attributes(name: str, attribute: Any) -> None:
    assert wire.attribute_name(name) == attribute


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys; from pykafkad import messages; before = set(vars(messages)); messages.FetchRequest; "
        "print(sorted(set(vars(messages)) - before), 'json' in sys.modules, 're' in sys.modules)"
    )
    result = subprocess.run(  # without warnings, which free-threaded Pythons import modules to show
        [sys.executable, "-W", "ignore", "-S", "-c", code],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "['FetchRequest'] False False\n"


def test_all_messages_have_a_class_of_their_name() -> None:
    assert len(messages.names()) == 280
    for name in messages.names():
        assert getattr(messages, name).__name__ == name
