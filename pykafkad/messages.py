"""The messages of the Kafka protocol and of Kafka's own logs, as classes.

`from pykafkad.messages import FetchRequest` reads protocol/messages/FetchRequest.json on first use and makes a class
from it (hot.wire.define); nothing is loaded before. messages.pyi, printed by protocol/stubs.py, has the fields for
editors and mypy.
"""

from __future__ import annotations

import os

from pykafkad.hot import wire

SCHEMAS = os.path.join(os.path.dirname(__file__), "schemas")


def __getattr__(name: str) -> type[wire.Struct]:
    if not name.isidentifier() or name.startswith("_"):
        raise AttributeError(name)
    try:
        with open(os.path.join(SCHEMAS, name + ".json"), "rb", buffering=0) as file:
            text = file.read()
    except FileNotFoundError:
        raise AttributeError(f"no message is called {name}") from None
    made = wire.define(wire.read_schema(text))
    globals()[name] = made
    return made


def names() -> list[str]:
    """The names of all messages."""
    return sorted(entry.removesuffix(".json") for entry in os.listdir(SCHEMAS) if entry.endswith(".json"))
