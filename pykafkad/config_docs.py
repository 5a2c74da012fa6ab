"""What each config key is for, in our own words; DescribeConfigs shows it to those who ask. Loaded only then.

Each table is a text: `key: what it is for`, a blank at a line's start continuing the one before.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            found[name] += line
        else:
            name, _, said = line.partition(": ")
            found[name] = said
    return found


TOPIC = _table("""
segment.bytes: Size at which a segment file is closed and a new one begun. Retention and cleaning work on whole segments.
segment.ms: Age at which a segment is closed even if it is not full, so that its records can be deleted or compacted.
segment.jitter.ms: Upper bound of a random time by which segment.ms is shortened, so that not all logs roll at once.
segment.index.bytes: Size of the offset index of a segment; it is reserved in advance and cut when the segment is closed.
flush.messages: Number of records after which the log is forced to the disk. Replication is usually the better protection.
flush.ms: Time after which what was written is forced to the disk.
retention.bytes: Size of a partition above which its oldest segments are deleted; -1 is no limit.
retention.ms: Age at which a record may be deleted, where the cleanup policy says delete; -1 keeps records for ever.
max.message.bytes: Largest record batch that is taken, measured after compression.
index.interval.bytes: Bytes of records between two entries of the offset index.
delete.retention.ms: How long a tombstone stays in a compacted topic, which is how long a reader from the start has to
 finish.
min.compaction.lag.ms: Least time that a record stays untouched by compaction.
max.compaction.lag.ms: Greatest time that a record of a compacted topic may wait for compaction.
file.delete.delay.ms: Time between the renaming of a deleted file and its removal from the disk.
min.cleanable.dirty.ratio: Share of a log that must be uncompacted before the log is compacted.
cleanup.policy: What happens to old records: delete by age and size, compact to the last value of each key, both, or
 neither.
unclean.leader.election.enable: Whether a replica that is behind may lead when no other is left, at the price of lost
 records.
min.insync.replicas: Number of replicas that must have a record before a produce with acks=all is answered.
compression.type: Codec in which records are kept; producer keeps what was sent.
compression.gzip.level: Level at which gzip compresses, where compression.type is gzip.
compression.lz4.level: Level at which LZ4 compresses, where compression.type is lz4.
compression.zstd.level: Level at which Zstandard compresses, where compression.type is zstd.
preallocate: Whether a segment's file is given its whole size when it is created.
message.timestamp.type: Whether a record's timestamp is what its producer said or the time at which it was appended.
message.timestamp.before.max.ms: How far before the broker's clock a record's timestamp may be.
message.timestamp.after.max.ms: How far after the broker's clock a record's timestamp may be.
leader.replication.throttled.replicas: Replicas whose traffic is throttled on the leader's side, as
 [partition]:[broker],...; * for all.
follower.replication.throttled.replicas: Replicas whose traffic is throttled on the follower's side, as
 [partition]:[broker],...; * for all.
message.timestamp.difference.max.ms: How far before or after the broker's clock a record's timestamp may be, where neither
 direction has a bound of its own.
message.format.version: Format in which records were kept before Kafka 3.0; since then there is one.
message.downconversion.enable: Whether records are converted for consumers that know only older formats.
remote.storage.enable: Whether the topic's closed segments are also kept in remote storage.
local.retention.ms: Age at which a segment that is in remote storage is deleted here; -2 is what retention.ms says.
local.retention.bytes: Size above which segments that are in remote storage are deleted here; -2 is what
 retention.bytes says.
remote.log.copy.disable: Whether no more segments are copied to remote storage; those that are there can still be read.
remote.log.delete.on.disable: Whether what is in remote storage is deleted when remote storage is disabled for the topic.
internal.segment.bytes: Segment size below what segment.bytes allows, for tests.
""")

GROUP = _table("""
consumer.assignment.interval.ms: Least time between two assignments of a consumer group.
consumer.heartbeat.interval.ms: How often the members of a consumer group are told to send heartbeats.
consumer.session.timeout.ms: Time without a heartbeat after which a member of a consumer group counts as gone.
share.assignment.interval.ms: Least time between two assignments of a share group.
share.auto.offset.reset: Where a share group begins in a partition it has not read: earliest, latest, or
 by_duration:PERIOD.
share.delivery.count.limit: How often a record is delivered to a share group before it is given up.
share.heartbeat.interval.ms: How often the members of a share group are told to send heartbeats.
share.isolation.level: Whether a share group sees the records of transactions that are open or were aborted.
share.partition.max.record.locks: How many records of a partition may be with a share group's members at a time.
share.record.lock.duration.ms: How long a member of a share group may work on a record before another one gets it.
share.renew.acknowledge.enable: Whether members of a share group may ask for more time for a record.
share.session.timeout.ms: Time without a heartbeat after which a member of a share group counts as gone.
streams.assignment.interval.ms: Least time between two assignments of a streams group.
streams.heartbeat.interval.ms: How often the members of a streams group are told to send heartbeats.
streams.initial.rebalance.delay.ms: How long the first assignment of a streams group waits for more members.
streams.num.standby.replicas: How many standby copies of each stateful task a streams group keeps.
streams.session.timeout.ms: Time without a heartbeat after which a member of a streams group counts as gone.
""")

CLIENT_METRICS = _table("""
interval.ms: How often clients are told to push their metrics.
match: Which clients are meant, as ATTRIBUTE=REGULAR EXPRESSION; a client must match all of them.
metrics: Prefixes of the names of the metrics that clients are to push; * for all.
""")

BROKER = _table("""
remote.log.storage.system.enable: Whether segments can be kept in remote storage at all.
remote.log.storage.manager.impl.prefix: Prefix of the keys that are handed to the remote storage plugin.
remote.log.metadata.manager.impl.prefix: Prefix of the keys that are handed to the plugin that remembers remote segments.
remote.log.storage.manager.class.name: Class of the remote storage plugin.
remote.log.storage.manager.class.path: Where the classes of the remote storage plugin are.
remote.log.metadata.manager.class.name: Class of the plugin that remembers remote segments.
remote.log.metadata.manager.class.path: Where the classes of the plugin that remembers remote segments are.
remote.log.metadata.manager.listener.name: Listener that the plugin that remembers remote segments connects to.
remote.log.metadata.custom.metadata.max.bytes: Most that the remote storage plugin may have remembered of a segment.
remote.log.index.file.cache.total.size.bytes: Room for indexes of remote segments that are kept here to read from.
remote.log.index.file.cache.ttl.ms: How long an unused index of a remote segment is kept here; -1 is without end.
remote.log.manager.thread.pool.size: Threads for work on remote segments that has no pool of its own.
remote.log.manager.copier.thread.pool.size: Threads that copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size: Threads that delete expired remote segments.
remote.log.manager.follower.thread.pool.size: Threads that keep followers informed of remote segments.
remote.log.manager.task.interval.ms: How often it is looked whether segments are to be copied or deleted.
remote.log.manager.task.retry.backoff.ms: First pause after a failed request to remote storage.
remote.log.manager.task.retry.backoff.max.ms: Longest pause after failed requests to remote storage.
remote.log.manager.task.retry.jitter: Share by which the pauses after failed requests to remote storage vary.
remote.log.reader.threads: Threads that read from remote storage for fetches.
remote.log.reader.max.pending.tasks: Reads of remote storage that may wait for a thread; more are refused.
log.local.retention.ms: Age at which a segment that is in remote storage is deleted here; -2 is what log.retention.ms
 says.
log.local.retention.bytes: Size of a partition above which segments that are in remote storage are deleted here; -2 is
 what
 log.retention.bytes says.
remote.log.manager.copy.max.bytes.per.second: Bytes a second that may be copied to remote storage.
remote.log.manager.copy.quota.window.num: Windows that the rate of copying is measured over.
remote.log.manager.copy.quota.window.size.seconds: Length of such a window.
remote.log.manager.fetch.max.bytes.per.second: Bytes a second that may be read from remote storage.
remote.log.manager.fetch.quota.window.num: Windows that the rate of reading from remote storage is measured over.
remote.log.manager.fetch.quota.window.size.seconds: Length of such a window.
remote.fetch.max.wait.ms: How long a fetch waits for remote storage before it is answered without.
remote.list.offsets.request.timeout.ms: How long a search for offsets in remote segments may take.
broker.id: The node's id by its older name; node.id is the same.
message.max.bytes: Largest record batch that is taken, measured after compression; topics have max.message.bytes.
num.io.threads: Threads of a broker that handles requests in threads.
num.replica.alter.log.dirs.threads: Threads that move replicas between log directories.
background.threads: Threads for background work.
request.timeout.ms: How long a request that the broker itself sends may take.
socket.connection.setup.timeout.ms: How long a connection that the broker itself opens may take at first.
socket.connection.setup.timeout.max.ms: How long such a connection may take after several failures.
config.providers: Names of plugins that values of configs can be fetched from.
authorizer.class.name: Who decides by ACLs what somebody may do; empty for everybody everything.
early.start.listeners: Listeners that accept before the authorizer is ready.
broker.rack: Name of the rack, or zone, the broker stands in; replicas are spread over racks.
controlled.shutdown.enable: Whether the broker hands over its partitions before it stops.
delete.topic.enable: Whether topics can be deleted.
compression.type: Codec in which records are kept; producer keeps what was sent.
compression.gzip.level: Level at which gzip compresses, where compression.type is gzip.
compression.lz4.level: Level at which LZ4 compresses, where compression.type is lz4.
compression.zstd.level: Level at which Zstandard compresses, where compression.type is zstd.
max.incremental.fetch.session.cache.slots: Number of fetch sessions that are remembered.
fetch.max.bytes: Most that one fetch is answered with, whatever it asks for; a first batch that is larger is sent whole.
max.request.partition.size.limit: Most partitions that one DescribeTopicPartitions is answered with.
unstable.api.versions.enable: Whether versions of APIs that are still in the making are served.
unstable.feature.versions.enable: Whether levels of features that are still in the making can be set.
process.roles: What the process is: broker, controller, or both.
node.id: Number of this node in its cluster.
initial.broker.registration.timeout.ms: How long the first registration with the controller may take.
broker.heartbeat.interval.ms: How often a broker tells the controller that it is alive.
broker.session.timeout.ms: Time without a heartbeat after which the controller takes a broker for dead.
controller.listener.names: Listeners that belong to the controller.
sasl.mechanism.controller.protocol: SASL mechanism that brokers use towards the controller.
controller.performance.sample.period.ms: How often the controller logs how long its work took.
controller.performance.always.log.threshold.ms: Duration above which the controller logs each single piece of work.
server.max.startup.time.ms: How long a start may take before it is given up.
metadata.log.max.record.bytes.between.snapshots: Bytes of metadata records after which a snapshot is written.
metadata.log.max.snapshot.interval.ms: Longest time between two snapshots of the metadata; 0 is never by time.
metadata.log.dir: Directory of the metadata log; the first of log.dirs if not said.
metadata.log.segment.bytes: Size at which a segment of the metadata log is closed.
metadata.log.segment.ms: Age at which a segment of the metadata log is closed.
metadata.max.retention.bytes: Size of metadata log and snapshots above which the oldest are deleted.
metadata.max.retention.ms: Age at which segments and snapshots of the metadata are deleted.
metadata.max.idle.interval.ms: How often an idle controller writes a record that says nothing; 0 is never.
internal.metadata.log.segment.bytes: Segment size of the metadata log below what is allowed, for tests.
internal.metadata.max.batch.size.in.bytes: Largest batch of the metadata log, for tests.
internal.metadata.delete.delay.millis: How long deleted files of the metadata log stay, for tests.
listeners: Where the broker listens, as NAME://HOST:PORT; an empty host is every interface.
advertised.listeners: Where clients are told to connect, if that is not where the broker listens.
listener.security.protocol.map: Security protocol of each listener name, as NAME:PROTOCOL.
socket.send.buffer.bytes: Send buffer of the sockets; -1 leaves it to the system.
socket.receive.buffer.bytes: Receive buffer of the sockets; -1 leaves it to the system.
socket.request.max.bytes: Largest request that is read.
socket.listen.backlog.size: Connections that may wait to be accepted.
max.connections.per.ip: Connections that one address may have.
max.connections.per.ip.overrides: Connections that certain hosts or addresses may have, as HOST:COUNT.
max.connections: Connections the broker may have; with a listener's prefix, those of the listener.
max.connection.creation.rate: New connections a second; with a listener's prefix, those of the listener.
connections.max.idle.ms: Time without a request after which a connection is closed.
connection.failed.authentication.delay.ms: How long the answer to a failed authentication is held back.
queued.max.requests: Requests that may wait for a thread before no more are read.
queued.max.request.bytes: Bytes of requests that may wait before no more are read; -1 is no limit.
num.network.threads: Threads that read requests and send answers, for each listener.
controller.socket.timeout.ms: How long a request to the controller may take.
default.replication.factor: Replicas of a topic that is created without saying how many.
replica.lag.time.max.ms: Time that a follower may be behind, or silent, before it is no longer in sync.
replica.socket.timeout.ms: How long a follower's request may take.
replica.socket.receive.buffer.bytes: Receive buffer of a follower's connections.
replica.fetch.max.bytes: What a follower fetches of each partition at a time; a larger batch still comes whole.
replica.fetch.wait.max.ms: How long a follower's fetch may wait at the leader.
replica.fetch.backoff.ms: Pause of a follower after a partition had an error.
replica.fetch.min.bytes: Bytes that a follower's fetch waits for.
replica.fetch.response.max.bytes: Most that a follower's fetch is answered with.
num.replica.fetchers: Threads that fetch from each other broker.
replica.high.watermark.checkpoint.interval.ms: How often high watermarks are written to the disk.
fetch.purgatory.purge.interval.requests: Finished fetches after which the list of waiting ones is tidied.
producer.purgatory.purge.interval.requests: Finished produces after which the list of waiting ones is tidied.
delete.records.purgatory.purge.interval.requests: Finished deletions of records after which the list of waiting ones is
 tidied.
auto.leader.rebalance.enable: Whether partitions go back to their preferred leaders by themselves.
leader.imbalance.check.interval.seconds: How often it is looked whether partitions have their preferred leaders.
unclean.leader.election.interval.ms: How often it is looked whether a partition without a leader may have an unclean one.
unclean.leader.election.enable: Whether a replica that is behind may lead when no other is left, at the price of lost
 records.
security.inter.broker.protocol: Security protocol between brokers; a listener can be named instead.
inter.broker.listener.name: Listener that brokers use among themselves.
replica.selector.class: Class that chooses the replica a consumer reads from.
follower.fetch.last.tiered.offset.enable: Whether a new follower begins where the leader's remote segments end.
group.coordinator.rebalance.protocols: Kinds of groups that are served.
group.coordinator.threads: Threads of a group coordinator that works in threads.
group.coordinator.background.threads: Threads for a group coordinator's long work, such as resolving regular expressions.
group.coordinator.append.linger.ms: How long a group coordinator gathers records before it writes them; -1 decides by
 itself.
offsets.commit.timeout.ms: How long a commit waits until all replicas have it.
offsets.load.buffer.size: Bytes that are read at a time while groups and offsets are loaded.
offsets.topic.replication.factor: Replicas of __consumer_offsets.
offsets.topic.num.partitions: Partitions of __consumer_offsets; not to be changed once it exists.
offsets.topic.segment.bytes: Segment size of __consumer_offsets.
offsets.topic.compression.codec: Codec of what the group coordinator writes, by its number.
group.coordinator.cached.buffer.max.bytes: Largest buffer that a group coordinator keeps for its next batch.
offset.metadata.max.bytes: Longest text that may be committed with an offset.
offsets.retention.minutes: How long offsets of a group without members, or of a topic it no longer reads, are kept.
offsets.retention.check.interval.ms: How often it is looked which offsets have expired.
group.min.session.timeout.ms: Shortest session timeout that a member of a classic group may ask for.
group.max.session.timeout.ms: Longest session timeout that a member of a classic group may ask for.
group.initial.rebalance.delay.ms: How long the first rebalance of a classic group waits for more members.
group.max.size: Members that a classic group may have.
group.consumer.session.timeout.ms: Time without a heartbeat after which a member of a consumer group counts as gone.
group.consumer.min.session.timeout.ms: Shortest session timeout that a consumer group may be given.
group.consumer.max.session.timeout.ms: Longest session timeout that a consumer group may be given.
group.consumer.heartbeat.interval.ms: How often the members of a consumer group are told to send heartbeats.
group.consumer.min.heartbeat.interval.ms: Shortest heartbeat interval that a consumer group may be given.
group.consumer.max.heartbeat.interval.ms: Longest heartbeat interval that a consumer group may be given.
group.consumer.max.size: Members that a consumer group may have.
group.consumer.assignors: Assignors that consumer groups may choose from; the first is the default.
group.consumer.migration.policy: Whether groups may change between the classic and the consumer protocol while they have
 members.
group.consumer.assignment.interval.ms: Least time between two assignments of a consumer group.
group.consumer.min.assignment.interval.ms: Shortest assignment interval that a consumer group may be given.
group.consumer.max.assignment.interval.ms: Longest assignment interval that a consumer group may be given.
group.consumer.regex.refresh.interval.ms: How often it is looked anew which topics a regular expression matches.
group.share.session.timeout.ms: Time without a heartbeat after which a member of a share group counts as gone.
group.share.min.session.timeout.ms: Shortest session timeout that a share group may be given.
group.share.max.session.timeout.ms: Longest session timeout that a share group may be given.
group.share.heartbeat.interval.ms: How often the members of a share group are told to send heartbeats.
group.share.min.heartbeat.interval.ms: Shortest heartbeat interval that a share group may be given.
group.share.max.heartbeat.interval.ms: Longest heartbeat interval that a share group may be given.
group.share.max.size: Members that a share group may have.
group.share.assignors: Assignors of share groups.
group.share.assignment.interval.ms: Least time between two assignments of a share group.
group.share.min.assignment.interval.ms: Shortest assignment interval that a share group may be given.
group.share.max.assignment.interval.ms: Longest assignment interval that a share group may be given.
group.share.initialize.retry.interval.ms: Pause before the state of a share group's partitions is set up again.
group.streams.session.timeout.ms: Time without a heartbeat after which a member of a streams group counts as gone.
group.streams.min.session.timeout.ms: Shortest session timeout that a streams group may be given.
group.streams.max.session.timeout.ms: Longest session timeout that a streams group may be given.
group.streams.heartbeat.interval.ms: How often the members of a streams group are told to send heartbeats.
group.streams.min.heartbeat.interval.ms: Shortest heartbeat interval that a streams group may be given.
group.streams.max.heartbeat.interval.ms: Longest heartbeat interval that a streams group may be given.
group.streams.max.size: Members that a streams group may have.
group.streams.num.standby.replicas: How many standby copies of each stateful task a streams group keeps.
group.streams.max.standby.replicas: Most standby copies that a streams group may be given.
group.streams.initial.rebalance.delay.ms: How long the first assignment of a streams group waits for more members.
group.streams.assignment.interval.ms: Least time between two assignments of a streams group.
group.streams.min.assignment.interval.ms: Shortest assignment interval that a streams group may be given.
group.streams.max.assignment.interval.ms: Longest assignment interval that a streams group may be given.
log.cleaner.threads: Threads that compact logs.
log.cleaner.io.max.bytes.per.second: Bytes a second that compaction may read and write.
log.cleaner.dedupe.buffer.size: Memory for the keys that compaction has seen, over all threads.
log.cleaner.io.buffer.size: Memory for what compaction reads and writes, over all threads.
log.cleaner.io.buffer.load.factor: How full the memory for keys may get; fuller means more keys at a time and more
 collisions.
log.cleaner.backoff.ms: Pause of compaction when no log needs it.
log.cleaner.min.cleanable.ratio: Share of a log that must be uncompacted before the log is compacted.
log.cleaner.enable: Whether logs are compacted at all.
log.cleaner.delete.retention.ms: How long a tombstone stays in a compacted topic.
log.cleaner.min.compaction.lag.ms: Least time that a record stays untouched by compaction.
log.cleaner.max.compaction.lag.ms: Greatest time that a record of a compacted topic may wait for compaction.
num.partitions: Partitions of a topic that is created without saying how many.
log.dir: Directory for the logs, where log.dirs is not set.
log.dirs: Directories for the logs.
cordoned.log.dirs: Directories that get no new partitions; * for all.
log.segment.bytes: Size at which a segment file is closed and a new one begun.
log.roll.ms: Age at which a segment is closed even if it is not full.
log.roll.hours: The same in hours, where log.roll.ms is not set.
log.roll.jitter.ms: Upper bound of a random time by which that age is shortened, so that not all logs roll at once.
log.roll.jitter.hours: The same in hours, where log.roll.jitter.ms is not set.
log.retention.ms: Age at which a record may be deleted; -1 keeps records for ever.
log.retention.minutes: The same in minutes, where log.retention.ms is not set.
log.retention.hours: The same in hours, where neither milliseconds nor minutes are set.
log.retention.bytes: Size of a partition above which its oldest segments are deleted; -1 is no limit.
log.retention.check.interval.ms: How often it is looked which segments can be deleted.
log.cleanup.policy: What happens to old records: delete by age and size, compact to the last value of each key, both, or
 neither.
log.index.size.max.bytes: Size of the offset index of a segment.
log.index.interval.bytes: Bytes of records between two entries of the offset index.
log.flush.interval.messages: Number of records after which a log is forced to the disk.
log.segment.delete.delay.ms: Time between the renaming of a deleted file and its removal from the disk.
log.flush.scheduler.interval.ms: How often it is looked which logs must be forced to the disk.
log.flush.interval.ms: Time after which what was written is forced to the disk.
log.flush.offset.checkpoint.interval.ms: How often it is noted on the disk up to where logs are there for certain.
log.flush.start.offset.checkpoint.interval.ms: How often it is noted on the disk where logs begin.
log.preallocate: Whether a segment's file is given its whole size when it is created.
num.recovery.threads.per.data.dir: Threads for each log directory that load logs at start and flush them at the end.
auto.create.topics.enable: Whether a topic that is asked for and does not exist is created.
min.insync.replicas: Number of replicas that must have a record before a produce with acks=all is answered.
log.message.timestamp.type: Whether a record's timestamp is what its producer said or the time at which it was appended.
log.message.timestamp.difference.max.ms: How far before or after the broker's clock a record's timestamp may be, where
 neither direction has a bound of its own.
log.message.format.version: Format in which records were kept before Kafka 3.0; since then there is one.
log.message.downconversion.enable: Whether records are converted for consumers that know only older formats.
log.message.timestamp.before.max.ms: How far before the broker's clock a record's timestamp may be.
log.message.timestamp.after.max.ms: How far after the broker's clock a record's timestamp may be.
create.topic.policy.class.name: Class that may refuse the creation of a topic.
alter.config.policy.class.name: Class that may refuse the change of a config.
log.dir.failure.timeout.ms: How long a broker tries to tell the controller of a failed log directory before it stops.
log.initial.task.delay.ms: How long the periodic work on logs waits after a start.
group.share.delivery.count.limit: How often a record is delivered to a share group before it is given up.
group.share.max.delivery.count.limit: Greatest such limit that a share group may be given.
group.share.min.delivery.count.limit: Smallest such limit that a share group may be given.
group.share.record.lock.duration.ms: How long a member of a share group may work on a record before another one gets it.
group.share.min.record.lock.duration.ms: Shortest such time that a share group may be given.
group.share.max.record.lock.duration.ms: Longest such time that a share group may be given.
group.share.partition.max.record.locks: How many records of a partition may be with a share group's members at a time.
group.share.max.partition.max.record.locks: Greatest such number that a share group may be given.
group.share.min.partition.max.record.locks: Smallest such number that a share group may be given.
share.fetch.purgatory.purge.interval.requests: Finished share fetches after which the list of waiting ones is tidied.
group.share.max.share.sessions: Share sessions that are remembered.
group.share.persister.class.name: Class that keeps the state of share groups.
share.coordinator.state.topic.num.partitions: Partitions of __share_group_state; not to be changed once it exists.
share.coordinator.state.topic.replication.factor: Replicas of __share_group_state.
share.coordinator.state.topic.min.isr: Replicas that must have a record of __share_group_state before it counts.
share.coordinator.state.topic.segment.bytes: Segment size of __share_group_state.
share.coordinator.threads: Threads of a share coordinator that works in threads.
share.coordinator.snapshot.update.records.per.snapshot: Updates that a share coordinator writes before it writes all anew.
share.coordinator.load.buffer.size: Bytes that are read at a time while share groups' state is loaded.
share.coordinator.state.topic.compression.codec: Codec of what the share coordinator writes, by its number.
share.coordinator.append.linger.ms: How long a share coordinator gathers records before it writes them; -1 decides by
 itself.
share.coordinator.write.timeout.ms: How long a share coordinator's write waits until all replicas have it.
share.coordinator.state.topic.prune.interval.ms: How often what is no longer needed of __share_group_state is deleted.
share.coordinator.cold.partition.snapshot.interval.ms: How often the state of partitions that rest is written anew.
share.coordinator.cached.buffer.max.bytes: Largest buffer that a share coordinator keeps for its next batch.
transaction.state.log.min.isr: Replicas that must have a record of __transaction_state before it counts.
transaction.state.log.load.buffer.size: Bytes that are read at a time while transactions are loaded.
transaction.state.log.replication.factor: Replicas of __transaction_state.
transaction.state.log.num.partitions: Partitions of __transaction_state; not to be changed once it exists.
transaction.state.log.segment.bytes: Segment size of __transaction_state.
transaction.partition.verification.enable: Whether it is asked if a partition belongs to the transaction of what is
 produced
 to it.
producer.id.expiration.ms: Time after its last batch at which a partition forgets an idempotent producer.
producer.id.expiration.check.interval.ms: How often it is looked which producers can be forgotten.
transactional.id.expiration.ms: Time after its last transaction at which a transactional id is forgotten.
transaction.max.timeout.ms: Longest transaction timeout that a producer may ask for.
transaction.abort.timed.out.transaction.cleanup.interval.ms: How often it is looked which transactions have taken too
 long.
transaction.remove.expired.transaction.cleanup.interval.ms: How often it is looked which transactional ids can be
 forgotten.
transaction.two.phase.commit.enable: Whether transactions may take part in two-phase commits.
controller.quorum.voters: The controllers that vote, as ID@HOST:PORT.
controller.quorum.bootstrap.servers: Where a node finds the controllers at first, as HOST:PORT.
controller.quorum.election.timeout.ms: Time without a leader's word after which controllers elect another.
controller.quorum.fetch.timeout.ms: Time without a fetch from the majority after which a leading controller resigns.
controller.quorum.election.backoff.max.ms: Longest pause before another election.
controller.quorum.append.linger.ms: How long the leading controller gathers records before it writes them.
controller.quorum.request.timeout.ms: How long a request between controllers may take.
controller.quorum.retry.backoff.ms: Pause before a request between controllers is sent again.
controller.quorum.auto.join.enable: Whether a controller joins the voters by itself.
controller.quorum.fetch.snapshot.max.bytes: Bytes of a snapshot that controllers fetch at a time.
controller.quorum.fetch.max.bytes: Bytes of the metadata log that controllers fetch at a time.
metrics.num.samples: Samples that metrics are computed from.
metrics.sample.window.ms: Length of a metric's sample.
metric.reporters: Classes that metrics are handed to.
metrics.recording.level: How much is measured: INFO, DEBUG or TRACE.
kafka.metrics.reporters: Classes that the older kind of metrics is handed to.
kafka.metrics.polling.interval.secs: How often the older kind of metrics is handed over.
telemetry.max.bytes: Most that a client may push of its metrics at a time, compressed.
quota.window.num: Windows that clients' rates are measured over.
replication.quota.window.num: Windows that the rate of replication is measured over.
alter.log.dirs.replication.quota.window.num: Windows that the rate of moves between log directories is measured over.
controller.quota.window.num: Windows that the rate of changes to topics is measured over.
quota.window.size.seconds: Length of a window of clients' rates.
replication.quota.window.size.seconds: Length of a window of the rate of replication.
alter.log.dirs.replication.quota.window.size.seconds: Length of a window of the rate of moves between log directories.
controller.quota.window.size.seconds: Length of a window of the rate of changes to topics.
client.quota.callback.class: Class that decides which quotas count for a client.
connections.max.reauth.ms: Time after which a client must authenticate again; 0 is never.
sasl.server.max.receive.size: Largest message of a SASL exchange.
security.providers: Classes of Java's security providers.
principal.builder.class: Class that says which principal a connection is.
ssl.client.auth: Whether clients must, may or need not show a certificate.
ssl.principal.mapping.rules: Rules that make a short name of a certificate's distinguished name.
ssl.allow.dn.changes: Whether a new certificate may have another distinguished name.
ssl.allow.san.changes: Whether a new certificate may lack alternative names of the old one.
ssl.protocol: TLS version that contexts are made for.
ssl.provider: Java's security provider for TLS.
ssl.enabled.protocols: TLS versions that are spoken.
ssl.keystore.type: Format of the key store.
ssl.keystore.location: File with the broker's key and certificate.
ssl.keystore.password: Password of the key store.
ssl.key.password: Password of the private key.
ssl.keystore.key: The private key itself, as PEM text.
ssl.keystore.certificate.chain: The certificates themselves, as PEM text.
ssl.truststore.type: Format of the trust store.
ssl.truststore.location: File with the certificates that are trusted.
ssl.truststore.password: Password of the trust store.
ssl.truststore.certificates: The trusted certificates themselves, as PEM text.
ssl.keymanager.algorithm: Algorithm that Java chooses keys by.
ssl.trustmanager.algorithm: Algorithm that Java checks certificates by.
ssl.endpoint.identification.algorithm: How the name in a server's certificate is checked; empty is not at all.
ssl.secure.random.implementation: Source of random numbers for TLS.
ssl.cipher.suites: Cipher suites that are offered; empty for all that are enabled.
ssl.engine.factory.class: Class that makes TLS engines.
sasl.mechanism.inter.broker.protocol: SASL mechanism between brokers.
sasl.enabled.mechanisms: SASL mechanisms that clients may use.
sasl.server.callback.handler.class: Class that checks what clients authenticate with.
sasl.kerberos.principal.to.local.rules: Rules that make a short name of a Kerberos principal.
sasl.jaas.config: Login modules of a SASL mechanism, in the format of JAAS files.
sasl.client.callback.handler.class: Class that gives what the broker itself authenticates with.
sasl.login.class: Class that logs in to SASL mechanisms.
sasl.login.callback.handler.class: Class that gives what a login needs.
sasl.kerberos.service.name: Kerberos principal that brokers run as.
sasl.kerberos.kinit.cmd: Path of the kinit command.
sasl.kerberos.ticket.renew.window.factor: Share of a ticket's life after which it is renewed.
sasl.kerberos.ticket.renew.jitter: Share by which that time varies.
sasl.kerberos.min.time.before.relogin: Least time between two logins to Kerberos.
sasl.login.refresh.window.factor: Share of a credential's life after which it is refreshed.
sasl.login.refresh.window.jitter: Share by which that time varies.
sasl.login.refresh.min.period.seconds: Least time before a credential is refreshed.
sasl.login.refresh.buffer.seconds: Time before a credential's end that a refresh keeps free.
sasl.login.connect.timeout.ms: How long the connection to an authentication provider may take.
sasl.login.read.timeout.ms: How long the answer of an authentication provider may take.
sasl.login.retry.backoff.max.ms: Longest pause between attempts to log in.
sasl.login.retry.backoff.ms: First pause between attempts to log in.
sasl.oauthbearer.jwt.retriever.class: Class that fetches tokens.
sasl.oauthbearer.jwt.validator.class: Class that checks tokens.
sasl.oauthbearer.scope: Scope that is asked for with a token.
sasl.oauthbearer.client.credentials.client.id: Client id that a token is asked for with.
sasl.oauthbearer.client.credentials.client.secret: Secret that a token is asked for with.
sasl.oauthbearer.assertion.algorithm: Algorithm that assertions are signed with.
sasl.oauthbearer.assertion.claim.aud: Audience of an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds: How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss: Issuer of an assertion.
sasl.oauthbearer.assertion.claim.jti.include: Whether an assertion has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds: How long before it was made an assertion is valid.
sasl.oauthbearer.assertion.claim.sub: Subject of an assertion.
sasl.oauthbearer.assertion.file: File with a ready assertion.
sasl.oauthbearer.assertion.private.key.file: File with the key that assertions are signed with.
sasl.oauthbearer.assertion.private.key.passphrase: Passphrase of that key.
sasl.oauthbearer.assertion.template.file: File with headers and claims for assertions.
sasl.oauthbearer.scope.claim.name: Name of the claim that holds the scope.
sasl.oauthbearer.sub.claim.name: Name of the claim that holds the subject.
sasl.oauthbearer.token.endpoint.url: Where tokens are fetched.
sasl.oauthbearer.jwks.endpoint.url: Where the keys that tokens are checked with are fetched.
sasl.oauthbearer.jwks.endpoint.refresh.ms: How often those keys are fetched anew.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms: First pause between attempts to fetch them.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms: Longest pause between attempts to fetch them.
sasl.oauthbearer.clock.skew.seconds: By how much clocks may differ when a token's times are checked.
sasl.oauthbearer.expected.audience: Audiences that a token may be for.
sasl.oauthbearer.expected.issuer: Issuer that a token must be from.
delegation.token.secret.key: Key that delegation tokens are made and checked with.
delegation.token.max.lifetime.ms: Longest life of a delegation token, however often it is renewed.
delegation.token.expiry.time.ms: How long a delegation token is valid before it must be renewed.
delegation.token.expiry.check.interval.ms: How often it is looked which delegation tokens have expired.
add.partitions.to.txn.retry.backoff.max.ms: How long adding a partition to a transaction is tried again.
add.partitions.to.txn.retry.backoff.ms: Longest pause before adding a partition to a transaction is tried again.
""")
