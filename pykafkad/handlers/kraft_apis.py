"""The APIs of a broker beside controllers of Apache Kafka: a single node's, of which the controllers answer those that
change or describe what only they know; and those of users and tokens, which the controllers keep.
"""

from __future__ import annotations

from pykafkad.handlers import APIS as OF_A_SINGLE_NODE
from pykafkad.handlers import Api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIGS = frozenset({33, 44})
REFUSED = frozenset({38, 39, 40, 41})


class Elsewhere(Api):
    """Read and answered as itself, by another module."""

    __slots__ = ()

    def load(self) -> Any:
        from pykafkad.handlers import forwarded, kraft_configs, kraft_security

        if self.key in CONFIGS:
            return kraft_configs
        return kraft_security if self.key in REFUSED else forwarded


SECURITY = {
    38: Elsewhere(38, "create_delegation_token", (1, 3)),
    39: Elsewhere(39, "renew_delegation_token", (1, 2)),
    40: Elsewhere(40, "expire_delegation_token", (1, 2)),
    41: Elsewhere(41, "describe_delegation_token", (1, 3)),
    51: Elsewhere(51, "alter_user_scram_credentials", (0, 0)),
}
FORWARDED = frozenset({19, 20, 30, 31, 37, 43, 45, 46, 49, 51, 55, 57, 64, 80, 81})

APIS: dict[int, Api] = dict(
    sorted(
        {
            **{
                key: Elsewhere(key, api.module, api.versions, advertised=api.is_advertised)
                if key in FORWARDED | CONFIGS
                else api
                for key, api in OF_A_SINGLE_NODE.items()
            },
            **SECURITY,
        }.items()
    )
)
