"""The versions at which every API is compared: those that pykafkad serves, which are those that Kafka 4.3.1 serves.

test_api_versions checks that both advertise the same, except for what meant.py names.
"""

from __future__ import annotations

import pytest

from pykafkad.handlers import APIS

API_KEYS = {api.name: key for key, api in APIS.items()}
ADVERTISED = {api.name: (api.listed_since, api.versions[1]) for api in APIS.values() if api.is_advertised}
SERVED = {api.name: api.versions for api in APIS.values()}


def versions(api: str, since: int = 0, until: int = 99) -> list[int]:
    low, high = SERVED[api]
    return list(range(max(low, since), min(high, until) + 1))


def at_every_version(api: str, since: int = 0, until: int = 99) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions(api, since, until))
