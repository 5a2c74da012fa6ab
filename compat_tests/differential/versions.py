"""The versions at which every API is compared: those that pykafkad serves, which are those that Kafka 4.3.1 serves.

test_api_versions checks that both advertise the same, except for what meant.py names.
"""

from __future__ import annotations

import pytest

from pykafkad import messages
from pykafkad.handlers import APIS

API_KEYS = {api.name: key for key, api in APIS.items()}
ADVERTISED = {api.name: api.versions for api in APIS.values() if api.is_advertised}


def served(name: str) -> tuple[int, int]:
    """Produce is advertised from 0 for old librdkafka, but such versions no longer exist since Kafka 4.0."""
    lowest, highest = APIS[API_KEYS[name]].versions
    return max(lowest, getattr(messages, f"{name}Request").min_version), highest


SERVED = {name: served(name) for name in API_KEYS}


def versions(api: str, since: int = 0, until: int = 99) -> list[int]:
    low, high = SERVED[api]
    return list(range(max(low, since), min(high, until) + 1))


def at_every_version(api: str, since: int = 0, until: int = 99) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions(api, since, until))
