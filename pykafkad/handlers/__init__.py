"""One module for each API, named after it, with `handle(broker, request, context)`. `APIS` lists which versions are
served.

Invariant: the versions are those that Apache Kafka 4.3.1 serves of that API. ApiVersions, the dispatcher's routes and
the README's table are made from `APIS`. A module is imported when the first request for it comes: most brokers are
never asked for most APIs, and importing all of them would make every start a fifth longer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.hot.wire import Range


class Unanswerable(Exception):
    """The request cannot be answered: its connection is closed and the text is logged."""


class Api:
    """An API that is served. Kafka serves some without advertising them."""

    __slots__ = ("is_advertised", "key", "listed_since", "module", "versions")

    def __init__(
        self,
        key: int,
        module: str,
        versions: tuple[int, int],
        *,
        advertised: bool = True,
        listed_since: int | None = None,
    ) -> None:
        """`listed_since`: the oldest version that ApiVersions says, if that is not the oldest that is served."""
        self.key = key
        self.module = module
        self.versions = versions
        self.is_advertised = advertised
        self.listed_since = versions[0] if listed_since is None else listed_since

    @property
    def name(self) -> str:
        """The name as Kafka spells it."""
        return self.module.title().replace("_", "")

    def load(self) -> Any:
        """Its module, which has `handle`, and `short_form` if the API has one."""
        return __import__(f"{__name__}.{self.module}", fromlist=["handle"])


APIS = {
    0: Api(0, "produce", (3, 13), listed_since=0),  # old librdkafka wants to see them (KIP-896)
    1: Api(1, "fetch", (4, 18)),
    2: Api(2, "list_offsets", (1, 11)),
    3: Api(3, "metadata", (0, 13)),
    8: Api(8, "offset_commit", (2, 10)),
    9: Api(9, "offset_fetch", (1, 10)),
    10: Api(10, "find_coordinator", (0, 6)),
    11: Api(11, "join_group", (0, 9)),
    12: Api(12, "heartbeat", (0, 4)),
    13: Api(13, "leave_group", (0, 5)),
    14: Api(14, "sync_group", (0, 5)),
    15: Api(15, "describe_groups", (0, 6)),
    16: Api(16, "list_groups", (0, 5)),
    18: Api(18, "api_versions", (0, 4)),
    19: Api(19, "create_topics", (2, 7)),
    20: Api(20, "delete_topics", (1, 6)),
    21: Api(21, "delete_records", (0, 2)),
    22: Api(22, "init_producer_id", (0, 5)),
    23: Api(23, "offset_for_leader_epoch", (2, 4)),
    24: Api(24, "add_partitions_to_txn", (0, 5)),
    25: Api(25, "add_offsets_to_txn", (0, 4)),
    26: Api(26, "end_txn", (0, 5)),
    27: Api(27, "write_txn_markers", (1, 2)),
    28: Api(28, "txn_offset_commit", (0, 5)),
    29: Api(29, "describe_acls", (1, 3)),
    30: Api(30, "create_acls", (1, 3)),
    31: Api(31, "delete_acls", (1, 3)),
    32: Api(32, "describe_configs", (1, 4)),
    33: Api(33, "alter_configs", (0, 2)),
    34: Api(34, "alter_replica_log_dirs", (1, 2)),
    35: Api(35, "describe_log_dirs", (1, 5)),
    37: Api(37, "create_partitions", (0, 3)),
    42: Api(42, "delete_groups", (0, 2)),
    43: Api(43, "elect_leaders", (0, 2)),
    44: Api(44, "incremental_alter_configs", (0, 1)),
    45: Api(45, "alter_partition_reassignments", (0, 1)),
    46: Api(46, "list_partition_reassignments", (0, 0)),
    47: Api(47, "offset_delete", (0, 0)),
    48: Api(48, "describe_client_quotas", (0, 1)),
    49: Api(49, "alter_client_quotas", (0, 1)),
    50: Api(50, "describe_user_scram_credentials", (0, 0)),
    55: Api(55, "describe_quorum", (0, 2)),
    57: Api(57, "update_features", (0, 2)),
    60: Api(60, "describe_cluster", (0, 2)),
    61: Api(61, "describe_producers", (0, 0)),
    64: Api(64, "unregister_broker", (0, 0)),
    65: Api(65, "describe_transactions", (0, 0)),
    66: Api(66, "list_transactions", (0, 2)),
    68: Api(68, "consumer_group_heartbeat", (0, 1)),
    69: Api(69, "consumer_group_describe", (0, 1)),
    71: Api(71, "get_telemetry_subscriptions", (0, 0), advertised=False),
    72: Api(72, "push_telemetry", (0, 0), advertised=False),
    74: Api(74, "list_config_resources", (0, 1)),
    75: Api(75, "describe_topic_partitions", (0, 0)),
    80: Api(80, "add_raft_voter", (0, 1)),
    81: Api(81, "remove_raft_voter", (0, 0)),
}


def api_versions_refusal(correlation_id: int) -> bytes | list[bytes | Range]:
    """The whole answer to an ApiVersions request whose version is not served."""
    from pykafkad.handlers.api_versions import refusal

    return refusal(correlation_id)
