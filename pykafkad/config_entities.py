"""The config keys of topics, groups, client metrics subscriptions and quotas in Kafka 4.3.1, as tables.

Owns the same facts as config_table does for brokers, and where an entity's default comes from: the broker's keys, in
the order in which they are looked at, each with the factor to the entity key's unit.
"""

from __future__ import annotations

# fmt: off
TOPIC: tuple[tuple[object, ...], ...] = (
    ("segment.bytes", "INT", 1073741824, "1048576..", "MEDIUM", ""),
    ("segment.ms", "LONG", 604800000, "1..", "MEDIUM", ""),
    ("segment.jitter.ms", "LONG", 0, "0..", "MEDIUM", ""),
    ("segment.index.bytes", "INT", 10485760, "4..", "MEDIUM", ""),
    ("flush.messages", "LONG", 9223372036854775807, "1..", "MEDIUM", ""),
    ("flush.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("retention.bytes", "LONG", -1, "", "MEDIUM", ""),
    ("retention.ms", "LONG", 604800000, "-1..", "MEDIUM", ""),
    ("max.message.bytes", "INT", 1048588, "0..", "MEDIUM", ""),
    ("index.interval.bytes", "INT", 4096, "0..", "MEDIUM", ""),
    ("delete.retention.ms", "LONG", 86400000, "0..", "MEDIUM", ""),
    ("min.compaction.lag.ms", "LONG", 0, "0..", "MEDIUM", ""),
    ("max.compaction.lag.ms", "LONG", 9223372036854775807, "1..", "MEDIUM", ""),
    ("file.delete.delay.ms", "LONG", 60000, "0..", "MEDIUM", ""),
    ("min.cleanable.dirty.ratio", "DOUBLE", 0.5, "0..1", "MEDIUM", ""),
    ("cleanup.policy", "LIST", ("delete",), "list? compact|delete", "MEDIUM", ""),
    ("unclean.leader.election.enable", "BOOLEAN", False, "", "MEDIUM", ""),
    ("min.insync.replicas", "INT", 1, "1..", "MEDIUM", ""),
    ("compression.type", "STRING", "producer", "in uncompressed|zstd|lz4|snappy|gzip|producer", "MEDIUM", ""),
    ("compression.gzip.level", "INT", -1, "1..9|-1", "MEDIUM", ""),
    ("compression.lz4.level", "INT", 9, "1..17", "MEDIUM", ""),
    ("compression.zstd.level", "INT", 3, "-131072..22", "MEDIUM", ""),
    ("preallocate", "BOOLEAN", False, "", "MEDIUM", ""),
    ("message.timestamp.type", "STRING", "CreateTime", "in CreateTime|LogAppendTime", "MEDIUM", ""),
    ("message.timestamp.before.max.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("message.timestamp.after.max.ms", "LONG", 3600000, "0..", "MEDIUM", ""),
    ("leader.replication.throttled.replicas", "LIST", (), "throttled", "MEDIUM", ""),
    ("follower.replication.throttled.replicas", "LIST", (), "throttled", "MEDIUM", ""),
    ("remote.storage.enable", "BOOLEAN", False, "", "MEDIUM", ""),
    ("local.retention.ms", "LONG", -2, "-2..", "MEDIUM", ""),
    ("local.retention.bytes", "LONG", -2, "-2..", "MEDIUM", ""),
    ("remote.log.copy.disable", "BOOLEAN", False, "", "MEDIUM", ""),
    ("remote.log.delete.on.disable", "BOOLEAN", False, "", "MEDIUM", ""),
    ("internal.segment.bytes", "INT", None, "", "MEDIUM", "", True),
)

# What 3.9 has besides, or otherwise.
TOPIC_OF_3_9: tuple[tuple[object, ...], ...] = (
    ("segment.bytes", "INT", 1073741824, "14..", "MEDIUM", ""),
    ("message.format.version", "STRING", "3.0-IV1", "release", "MEDIUM", ""),
    ("message.timestamp.difference.max.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("message.timestamp.after.max.ms", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("message.downconversion.enable", "BOOLEAN", True, "", "LOW", ""),
)

# topic key -> the broker keys its default comes from: the first one that is set wins
TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3600000)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3600000)),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60000),
        ("log.retention.hours", 3600000),
    ),
    "max.message.bytes": (("message.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "preallocate": (("log.preallocate", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
}

TOPIC_SYNONYMS_OF_3_9: dict[str, tuple[tuple[str, int], ...]] = {
    "message.format.version": (("log.message.format.version", 1),),
    "message.timestamp.difference.max.ms": (("log.message.timestamp.difference.max.ms", 1),),
    "message.downconversion.enable": (("log.message.downconversion.enable", 1),),
}

GROUP: tuple[tuple[object, ...], ...] = (
    ("consumer.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("consumer.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    ("consumer.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
    ("share.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("share.auto.offset.reset", "STRING", "latest", "reset", "MEDIUM", ""),
    ("share.delivery.count.limit", "INT", 5, "2..", "MEDIUM", ""),
    ("share.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    ("share.isolation.level", "STRING",
     "read_uncommitted", "in read_committed|read_uncommitted", "MEDIUM", ""),
    ("share.partition.max.record.locks", "INT", 2000, "100..", "MEDIUM", ""),
    ("share.record.lock.duration.ms", "INT", 30000, "1000..", "MEDIUM", ""),
    ("share.renew.acknowledge.enable", "BOOLEAN", True, "", "MEDIUM", ""),
    ("share.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
    ("streams.assignment.interval.ms", "INT", 1000, "0..", "MEDIUM", ""),
    ("streams.heartbeat.interval.ms", "INT", 5000, "1..", "MEDIUM", ""),
    ("streams.initial.rebalance.delay.ms", "INT", 3000, "0..", "MEDIUM", ""),
    ("streams.num.standby.replicas", "INT", 0, "0..", "MEDIUM", ""),
    ("streams.session.timeout.ms", "INT", 45000, "1..", "MEDIUM", ""),
)

GROUP_SYNONYMS: dict[str, str] = {
    "consumer.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
    "share.assignment.interval.ms": "group.share.assignment.interval.ms",
    "share.delivery.count.limit": "group.share.delivery.count.limit",
    "share.heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
    "share.partition.max.record.locks": "group.share.partition.max.record.locks",
    "share.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "share.session.timeout.ms": "group.share.session.timeout.ms",
    "streams.assignment.interval.ms": "group.streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms": "group.streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms": "group.streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas": "group.streams.num.standby.replicas",
    "streams.session.timeout.ms": "group.streams.session.timeout.ms",
}

CLIENT_METRICS: tuple[tuple[object, ...], ...] = (
    ("interval.ms", "INT", 300000, "", "MEDIUM", ""),
    ("match", "LIST", (), "list?", "MEDIUM", ""),
    ("metrics", "LIST", (), "list?", "MEDIUM", ""),
)

QUOTA_USER_CLIENT: tuple[tuple[object, ...], ...] = (
    ("consumer_byte_rate", "LONG", 9223372036854775807, "", "MEDIUM", ""),
    ("controller_mutation_rate", "DOUBLE", 2147483647.0, "", "MEDIUM", ""),
    ("producer_byte_rate", "LONG", 9223372036854775807, "", "MEDIUM", ""),
    ("request_percentage", "DOUBLE", 2147483647.0, "", "MEDIUM", ""),
)

QUOTA_IP: tuple[tuple[object, ...], ...] = (
    ("connection_creation_rate", "INT", 2147483647, "0..", "MEDIUM", ""),
)

QUOTA_BROKER: tuple[tuple[object, ...], ...] = (
    ("follower.replication.throttled.rate", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("leader.replication.throttled.rate", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "LONG", 9223372036854775807, "0..", "MEDIUM", ""),
)
# fmt: on

# Topic keys that this broker acts upon; the others are stored, shown and passed on, as in Kafka.
TOPIC_HONOURED: frozenset[str] = frozenset({
    "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
    "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
    "index.interval.bytes", "internal.segment.bytes", "max.compaction.lag.ms", "max.message.bytes",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.type",
    "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "preallocate",
    "retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
})  # fmt: skip
# Those that only a broker in a cluster acts upon besides.
TOPIC_HONOURED_IN_CLUSTER: frozenset[str] = frozenset({
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms", "unclean.leader.election.enable",
})  # fmt: skip
