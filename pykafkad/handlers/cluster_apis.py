"""The APIs of a broker in a cluster on ZooKeeper: those of Apache Kafka 3.9's brokers there, in its versions.

What brokers ask each other is served here alone. Of the others the newest version is 3.9's, and the oldest, too, where
OLDEST has it; else it is 4.3.1's, which dropped what clients of before 2016 ask for. Left out: what only a quorum of
controllers has.
"""

from __future__ import annotations

from pykafkad.handlers import APIS as OF_A_SINGLE_NODE
from pykafkad.handlers import Api

# The newest version of each API that 3.9.2 advertises on ZooKeeper.
NEWEST = {
    0: 11, 1: 17, 2: 9, 3: 12, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 16: 5, 18: 4, 19: 7, 20: 6,
    21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4, 27: 1, 28: 4, 29: 3, 30: 3, 31: 3, 32: 4, 33: 2, 34: 2, 35: 4, 37: 3, 42: 2,
    43: 2, 44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 60: 1, 61: 0, 65: 0, 66: 1, 68: 0, 69: 0,
}  # fmt: skip

# Where 4.0 dropped versions. What they have not is the schemas' matter: the handlers see its default, and answer alike.
OLDEST = {0: 0, 1: 0, 2: 0, 8: 0, 9: 0, 19: 0, 20: 0, 23: 0, 27: 0, 29: 0, 30: 0, 31: 0, 32: 0, 34: 0, 35: 0}

BETWEEN_BROKERS = {
    4: Api(4, "leader_and_isr", (0, 7)),
    5: Api(5, "stop_replica", (0, 4)),
    6: Api(6, "update_metadata", (0, 8)),
    7: Api(7, "controlled_shutdown", (0, 3)),
    56: Api(56, "alter_partition", (0, 3)),
    67: Api(67, "allocate_producer_ids", (0, 0)),
}

APIS: dict[int, Api] = dict(
    sorted(
        {
            **{
                key: Api(
                    key,
                    api.module,
                    (OLDEST.get(key, api.versions[0]), NEWEST[key]),
                    advertised=api.is_advertised,
                )
                for key, api in OF_A_SINGLE_NODE.items()
                if key in NEWEST
            },
            **BETWEEN_BROKERS,
        }.items()
    )
)
