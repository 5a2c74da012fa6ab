"""Properties files and key=value arguments of the tools: the configs of a Kafka client.

Owns reading them and the refusal of configs that this client does not support, which speaks PLAINTEXT only. A config
that would change who can read the data in transit is refused, never ignored.
"""

from __future__ import annotations

import os
import re

from pykafkad.net.client import ClientError, addresses, whole_number
from pykafkad.tools import output
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


DEFAULT_BOOTSTRAP = "localhost:9092"


def bootstrap(given: str | None, configs: Mapping[str, str]) -> str:
    """The brokers to start from: those of --bootstrap-server, of the client's configs, of the environment."""
    named = given if given is not None else configs.get("bootstrap.servers")
    if named is not None:
        return named
    found = os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or DEFAULT_BOOTSTRAP
    try:
        addresses(found)
    except ClientError as problem:
        raise ClientError(f"KAFKA_BOOTSTRAP_SERVERS={found}: {problem}") from None
    return found


def load(path: str) -> dict[str, str]:
    """Load a .properties file; ClientError if Java's tool would fail to read it."""
    from pykafkad import properties

    try:
        return properties.load(path)
    except OSError as problem:
        raise ClientError(f"{path} ({problem.strerror})") from problem
    except properties.PropertiesError as problem:
        raise ClientError(f"{path}: {problem}") from problem


class Watched(dict[str, str]):
    """Properties that know which of them were asked for: a name that nobody asks for is misspelt or has no effect."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self._asked: set[object] = set()

    def __getitem__(self, key: str) -> str:
        self._asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._asked.add(key)
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return super().get(key, default)

    def warn_unused(self, typed: Iterable[str]) -> None:
        """Of those that were typed as key=value, name the ones that have no effect."""
        for name in typed:
            if name not in self._asked:
                question = nearest(name, map(str, self._asked))
                output.error(f"WARN {name} has no effect here{question}")


def pairs(arguments: Iterable[str]) -> dict[str, str]:
    """Configs from key=value arguments; a missing value is an empty one."""
    found = {}
    for argument in arguments:
        key, _, value = argument.partition("=")
        found[key] = value
    return found


def expression(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as problem:
        raise ClientError(f"--{option} {text}: {problem}") from None


def check_security(configs: Mapping[str, str]) -> None:
    protocol = configs.get("security.protocol", "PLAINTEXT")
    if protocol.upper() != "PLAINTEXT":
        raise ClientError(f"security.protocol={protocol}: this tool connects with PLAINTEXT only")


def number(configs: Mapping[str, str], key: str, default: int) -> int:
    return whole_number(key, configs[key]) if key in configs else default


def boolean(configs: Mapping[str, str], key: str, default: bool) -> bool:
    text = configs.get(key)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise ClientError(
            f"Invalid value {text} for configuration {key}: Expected value to be either true or false"
        )
    return text.strip().lower() == "true"
