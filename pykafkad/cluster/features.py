"""Feature levels (KIP-584): what this broker supports, what a new cluster is given, and which record
versions follow.

Invariant: a record is never written in a version that the finalized metadata.version does not know, since an
Apache Kafka that takes the directory over would refuse it.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
TRANSACTION_VERSION = "transaction.version"

# name -> lowest and highest level; the order of Apache Kafka's own ApiVersions answer
SUPPORTED: dict[str, tuple[int, int]] = {
    "group.version": (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
}

# What is not served, and so is not advertised: the levels are only kept, for an Apache Kafka that takes the directory
# over. They are no client's business.
NOT_SERVED = frozenset(("share.version", "streams.version"))

# What formatting a directory with 4.3.1 gives, in the order of its records.
FORMATTED: dict[str, int] = {
    METADATA_VERSION: 30,
    ELIGIBLE_LEADER_REPLICAS: 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    TRANSACTION_VERSION: 2,
}

# metadata.version levels at which records grew
CONTROLLED_SHUTDOWN = 7  # 3.3-IV3
MIGRATION = 8  # 3.4-IV0
METADATA_TRANSACTIONS = 13  # 3.6-IV1
DIRECTORY_ASSIGNMENT = 17  # 3.7-IV2
ELR_RECORDS = 23  # 4.0-IV1
CORDONED_DIRECTORIES = 30  # 4.3-IV0


def register_broker_version(level: int) -> int:
    if level >= CORDONED_DIRECTORIES:
        return 4
    if level >= DIRECTORY_ASSIGNMENT:
        return 3
    return 2 if level >= MIGRATION else 1


def partition_version(level: int) -> int:
    """Of PartitionRecord and of PartitionChangeRecord."""
    if level >= ELR_RECORDS:
        return 2
    return 1 if level >= DIRECTORY_ASSIGNMENT else 0
