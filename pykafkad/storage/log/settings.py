"""What a topic's configuration means to its logs, parsed once and shared by the topic's partitions."""

from __future__ import annotations

from pykafkad.hot.records import Rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class TopicConfig(Protocol):
        """Resolved topic configuration: the topic's own values over the broker's over the defaults."""

        def __getitem__(self, name: str, /) -> Any: ...


# Kafka allows indexes that have no room for an entry; every segment ends with one in its time index.
LEAST_INDEX_BYTES = 24
ENTRY_ROOM = 12  # bytes of the larger index entry
LEAST_BATCH = 26  # bytes, of format 0


class LogSettings:
    __slots__ = (
        "compacts",
        "config",
        "deletes",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "index_bytes",
        "index_interval_bytes",
        "min_insync_replicas",
        "own_rules",
        "preallocate",
        "retention_bytes",
        "retention_ms",
        "rules",
        "segment_bytes",
        "segment_jitter_ms",
        "segment_ms",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.segment_bytes: int = config["segment.bytes"]
        self.segment_ms: int = config["segment.ms"]
        self.segment_jitter_ms: int = config["segment.jitter.ms"]
        self.index_bytes: int = max(config["segment.index.bytes"], LEAST_INDEX_BYTES)
        self.index_interval_bytes: int = config["index.interval.bytes"]
        self.flush_messages: int = config["flush.messages"]
        self.flush_ms: int = config["flush.ms"]
        self.file_delete_delay_ms: int = config["file.delete.delay.ms"]
        self.preallocate: bool = config["preallocate"]
        self.retention_bytes: int = config["retention.bytes"]  # negative: no limit
        self.retention_ms: int = config["retention.ms"]
        self.deletes = "delete" in config["cleanup.policy"]
        self.compacts = "compact" in config["cleanup.policy"]
        if self.compacts:
            # Only closed segments are compacted: one that is written to must not stay open for longer than that.
            self.segment_ms = min(self.segment_ms, config["max.compaction.lag.ms"])
        self.min_insync_replicas: int = config["min.insync.replicas"]
        self.rules = rules_of(config, client=True)
        self.own_rules = rules_of(config, client=False)


def rules_of(config: TopicConfig, *, client: bool) -> Rules:
    compression: str = config["compression.type"]
    level = None
    if compression in ("gzip", "lz4", "zstd"):
        level = config[f"compression.{compression}.level"]
    return Rules(
        max_message_bytes=config["max.message.bytes"],
        compression=compression,
        compression_level=level,
        log_append_time=config["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=config["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=config["message.timestamp.after.max.ms"],
        compacted="compact" in config["cleanup.policy"],
        client=client,
    )


def index_room(size: int, interval_bytes: int) -> int:
    """Bytes that an index of a segment may need: no more than there can be batches, however small the interval."""
    return (size // max(LEAST_BATCH, interval_bytes) + 2) * ENTRY_ROOM
