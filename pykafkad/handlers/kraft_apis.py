"""The APIs of a broker beside controllers of Apache Kafka: a single node's, of which the controllers answer those that
change or describe what only they know.
"""

from __future__ import annotations

from typing import Any

from pykafkad.handlers import APIS as OF_A_SINGLE_NODE
from pykafkad.handlers import Api

FORWARDED = frozenset({19, 20, 37, 43, 45, 46, 49, 55, 57, 64, 80, 81})
CONFIGS = frozenset({33, 44})


class Forwarded(Api):
    """Read and answered as itself, by another module."""

    __slots__ = ()

    def load(self) -> Any:
        from pykafkad.handlers import forwarded, kraft_configs

        return kraft_configs if self.key in CONFIGS else forwarded


APIS: dict[int, Api] = {
    key: Forwarded(key, api.module, api.versions, advertised=api.is_advertised)
    if key in FORWARDED | CONFIGS
    else api
    for key, api in OF_A_SINGLE_NODE.items()
}
