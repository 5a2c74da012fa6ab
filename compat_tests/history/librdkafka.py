"""What every client of librdkafka here is configured with."""

from __future__ import annotations

from typing import Any

import confluent_kafka

REBOOTSTRAPS_SINCE = 0x020B0000


def basis(bootstrap: str) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": _ignore}
    if confluent_kafka.libversion()[1] >= REBOOTSTRAPS_SINCE:
        # When it forgets its only broker while that is down, a transactional producer may never find its coordinator
        # again (seen with 2.16.0: the broker's thread never ends, and TxnOffsetCommit is not sent).
        config["metadata.recovery.strategy"] = "none"
    return config


def _ignore(_error: confluent_kafka.KafkaError) -> None:
    """Without a callback a fatal error is raised wherever librdkafka is waited for, out of other callbacks too. The next
    call that it concerns tells it as well."""
