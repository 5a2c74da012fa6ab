"""The group coordinator: which shard a group belongs to, and the way of every request about groups to its machine.

A handler calls `broker.groups.ask(group_id, context, operation, refuse)` and returns what it gives back:

    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.join(request, caller, broker.clock.now_ms()),
        lambda error: JoinGroupResponse(error_code=error.code),
    )

`operation` gives Effects or raises KafkaError; `refuse` makes the API's answer of a KafkaError (error.code,
error.text): of the machine's, or NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS and what else the coordinator says.
The answer waits (the context is deferred) where the operation does not reply to its caller. Requests about several
groups go through `asker()` and `look()`, and `do()` for what they change:

    asker = broker.groups.asker(context, lambda error: refused(request, error))     # should the pass's write fail
    for group_id in request.groups:
        try:
            answers.append(broker.groups.look(group_id, asker).describe(group_id))
        except KafkaError as error:
            ...

A group's shard is that of the partition of `__consumer_offsets` which the group's id hashes to, as in Kafka.
Invariant: one shard a partition that is there; its groups are loaded from the log before they are shown to anybody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.storage.manager import LONGEST_INTERVAL_MS
from pykafkad.uuids import random_uuid, to_text

if TYPE_CHECKING:
    from pykafkad.clock import Clock
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.config import BrokerConfig
    from pykafkad.coordinator.loading import Load
    from pykafkad.coordinator.shard import Asker, Refuse, Shard
    from pykafkad.pure.groups.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.pure.groups.settings import GroupSettings
    from pykafkad.storage.manager import LogManager
    from pykafkad.storage.partition import Partition

    Operation = Callable[[Groups, Caller], Effects]
    Hold = Callable[[Partition, Any, Callable[[], None]], None]

GROUP_RESOURCE = 32
REMEMBERED_GROUPS = 20_000  # whose shard is known without hashing
EXPIRED_A_TURN = 500  # groups looked at for expiry before the loop serves others
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

log = logger("groups")


class GroupCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        storage: LogManager,
        image: Image,
        call_later: Callable[..., Any],
        call_soon: Callable[..., Any],
        submit: Callable[..., None],
    ) -> None:
        self.clock = clock
        self.call_later = call_later
        self.dirty: list[Shard] = []  # with records of this pass
        self.codec = CODECS[config["offsets.topic.compression.codec"]]
        self.call_soon = call_soon
        self._submit = submit
        self._config = config
        self._storage = storage
        self._image = image
        self._shards: dict[int, Shard] = {}
        self._shard_of: dict[str, Shard] = {}
        self._to_load: dict[int, Shard] = {}  # in the order in which they will be
        self._load: Load | None = None
        self._settings: GroupSettings | None = None
        self._partitions = 0  # of __consumer_offsets; 0: nobody looked yet, or there is none
        self._stopped = False

    # -- requests

    def ask(self, group_id: str, context: Any, operation: Operation, refuse: Refuse) -> Any:
        """Do an operation on a group: the response, or the context whose answer waits."""
        try:
            shard = self._shard_of.get(group_id) or self.shard_of(group_id)
            asker = _asker_class(context, refuse)
            return shard.perform(operation(shard.groups, asker), asker)
        except KafkaError as error:
            return refuse(translated(error))

    def asker(self, context: Any, refuse: Refuse) -> Asker:
        return _make_asker(context, refuse)

    def look(self, group_id: str, asker: Asker) -> Groups:
        """The groups among which this one is, or KafkaError: for one of several things a request is about."""
        shard = self._shard_of.get(group_id) or self.shard_of(group_id)
        shard.promise(asker)
        return shard.groups

    def do(self, group_id: str, asker: Asker, operation: Callable[[Groups], Effects]) -> None:
        """The same for a change; the answer is the handler's. KafkaError where it is refused."""
        shard = self._shard_of.get(group_id) or self.shard_of(group_id)
        try:
            shard.perform(operation(shard.groups))
        except KafkaError as error:
            raise translated(error) from error
        shard.promise(asker)

    def partition_of(self, group_id: str) -> int:
        """Where the group's records go; for requests that take groups by partition."""
        return partition_for(group_id, self._partition_count() or 1)

    def look_everywhere(self, asker: Asker) -> list[Groups]:
        """All groups there are; COORDINATOR_LOAD_IN_PROGRESS as long as some are not known yet."""
        self._check_serving()
        found = []
        for index in range(self._partition_count()):
            if index not in self._shards:
                partition = self._storage.get(CONSUMER_OFFSETS, index)
                if partition is None or not partition.log_directory.is_online:
                    continue
                if partition.high_watermark == partition.log_start_offset:
                    continue  # nothing in it
            shard = self.shard(index)
            if shard.has_failed:
                continue
            if not shard.is_loaded:
                raise KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
            shard.promise(asker)
            found.append(shard.groups)
        return found

    # -- shards

    def shard_of(self, group_id: str) -> Shard:
        """The loaded shard of a group, or KafkaError."""
        self._check_serving()
        count = self._partition_count()
        if not count:
            raise KafkaError(errors.NOT_COORDINATOR)
        shard = self.shard(partition_for(group_id, count))
        if shard.has_failed:
            raise KafkaError(errors.NOT_COORDINATOR)
        if not shard.is_loaded:
            self._hurry(shard)
            raise KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        if len(self._shard_of) >= REMEMBERED_GROUPS:
            self._shard_of.clear()
        self._shard_of[group_id] = shard
        return shard

    def _partition_count(self) -> int:
        """As it was when first looked at: partitions that are added count from the next start on, as in Kafka."""
        if not self._partitions:
            topic = self._image.topics.get(CONSUMER_OFFSETS)
            self._partitions = len(topic.partitions) if topic is not None else 0
        return self._partitions

    def _check_serving(self) -> None:
        if self._stopped:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)

    def shard(self, index: int) -> Shard:
        """The shard of a partition, loading or loaded; KafkaError where the partition is not here."""
        shard = self._shards.get(index)
        return shard if shard is not None else self._begin(index)

    def _begin(self, index: int) -> Shard:
        from pykafkad.coordinator.shard import Shard
        from pykafkad.pure.groups.registry import Groups

        partition = self._storage.get(CONSUMER_OFFSETS, index)
        if partition is None or not partition.log_directory.is_online:
            raise KafkaError(errors.NOT_COORDINATOR)
        shard = self._shards[index] = Shard(self, partition, Groups(self.settings))
        if partition.high_watermark == partition.log_start_offset:
            shard.loaded()
        else:
            self._to_load[index] = shard
            if self._load is None:
                self._load_next()
        return shard

    def _hurry(self, shard: Shard) -> None:
        """Somebody asks for it: it is loaded before those nobody asks for."""
        index = shard.partition.index
        if index in self._to_load:
            self._to_load = {index: shard, **self._to_load}

    # -- loading

    def start(self) -> None:
        """Load what there is, beginning with the next pass; the broker serves everything else meanwhile."""
        if CONSUMER_OFFSETS in self._image.topics:
            self.call_soon(self._load_all)

    def _load_all(self) -> None:
        for index in range(self._partition_count()):
            partition = self._storage.get(CONSUMER_OFFSETS, index)
            if partition is not None and partition.high_watermark > partition.log_start_offset:
                self.shard(index)

    def _load_next(self) -> None:
        from pykafkad.coordinator.loading import Load

        if not self._to_load:
            self._load = None
            return
        index = next(iter(self._to_load))
        shard = self._to_load.pop(index)
        buffer_bytes = self._config["offsets.load.buffer.size"]
        self._load = Load(shard, buffer_bytes, self._submit, self.call_soon, self._on_loaded)
        self._load.read()

    def _on_loaded(self, shard: Shard, error: Exception | None) -> None:
        name = shard.partition.name
        if error is not None:
            shard.has_failed = True
            if isinstance(error, OSError):
                shard.partition.fail(error)
            log.exception(
                f"the groups of {name} cannot be loaded, so their coordinator is not available", error
            )
        else:
            shard.loaded()
            count = self._load.count if self._load is not None else 0
            log.info(f"loaded {len(shard.groups.by_id)} groups from {count} records of {name}")
        self._load_next()

    # -- the end of a pass

    def flush(self) -> None:
        """Append what the pass's operations want written; before the storage's commit()."""
        for shard in self.dirty:
            shard.flush()

    def settle(self, hold: Hold) -> None:
        """After the storage's commit(): the answers may go, or are changed where nothing was written. With `hold`
        those wait that promise what is still on its way to the disk."""
        dirty, self.dirty = self.dirty, []
        for shard in dirty:
            if shard.is_written:
                shard.written(hold)
            if shard.is_loaded and (shard.must_reload or not shard.is_written):
                self._unload(shard.partition.index)
                if shard.has_failed:
                    self._shards[shard.partition.index] = shard

    def _unload(self, index: int) -> None:
        shard = self._shards.pop(index)
        self._to_load.pop(index, None)
        self._shard_of.clear()
        if self._load is not None and self._load.shard is shard:
            self._load.cancelled = True
            self._load = None
            self.call_soon(self._load_next)
        shard.unload()

    def drop_offline(self) -> None:
        """A log directory failed: groups whose partition is there have no coordinator."""
        for index, shard in list(self._shards.items()):
            if not shard.partition.log_directory.is_online:
                self._unload(index)

    def stop(self) -> None:
        """No more groups: who waits for one is told to look for another coordinator."""
        self._stopped = True
        for index in list(self._shards):
            self._unload(index)

    # -- topics that go, offsets that expire

    def topic_deleted(self, topic: Topic) -> None:
        if topic.name == CONSUMER_OFFSETS:
            self._partitions = 0
            for index in list(self._shards):
                self._unload(index)
            return
        for shard in self._shards.values():
            shard.delete_topic(topic.name)

    def expire(self) -> None:
        """Begin to look at all groups: which offsets, and which groups, have been there for long enough?"""
        for shard in list(self._shards.values()):
            if shard.is_loaded:
                self._expire_some(shard, list(shard.groups.by_id))

    def _expire_some(self, shard: Shard, group_ids: list[str]) -> None:
        if not shard.is_loaded:
            return
        shard.do(lambda groups: groups.expire(group_ids[:EXPIRED_A_TURN], self.clock.now_ms()))
        if len(group_ids) > EXPIRED_A_TURN:
            self.call_soon(self._expire_some, shard, group_ids[EXPIRED_A_TURN:])

    # -- configuration

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """(interval in ms, what to do): for the loop's timers."""
        interval_ms = self._config["offsets.retention.check.interval.ms"]
        return [(interval_ms, self.expire)] if interval_ms <= LONGEST_INTERVAL_MS else []

    @property
    def settings(self) -> GroupSettings:
        if self._settings is None:
            from pykafkad.pure.groups.settings import GroupSettings

            self._settings = GroupSettings(random_id, self._image, self._group_config, log.info)
            self._settings.new_short_id = lambda: to_text(random_uuid())
            self._settings.update(self._config.__getitem__)
        return self._settings

    def configs_changed(self, names: set[str]) -> None:
        """Dynamic configs of the broker have new values."""
        if self._settings is not None:
            self._settings.update(self._config.__getitem__)

    def _group_config(self, group_id: str) -> Mapping[str, Any]:
        """What is set for the group itself, typed."""
        texts = self._image.configs.get((GROUP_RESOURCE, group_id))
        return typed_group_configs(texts) if texts else {}


def _make_asker(context: Any, refuse: Refuse) -> Asker:
    """The class is imported with the first request: a broker without groups needs none of this."""
    global _asker_class
    from pykafkad.coordinator.shard import Asker

    _asker_class = Asker
    return Asker(context, refuse)


_asker_class: Callable[[Any, Refuse], Asker] = _make_asker


def typed_group_configs(texts: Mapping[str, str]) -> dict[str, Any]:
    from pykafkad.config_entities import GROUP

    types = {row[0]: row[1] for row in GROUP}
    return {key: int(text) if types.get(key) == "INT" else text for key, text in texts.items()}


def translated(error: KafkaError) -> KafkaError:
    from pykafkad.pure.groups.refusals import told_as

    code = told_as(error.code)
    return error if code == error.code else KafkaError(code)


def partition_for(group_id: str, partitions: int) -> int:
    """Java's String.hashCode of the id, without its sign, over the partitions."""
    value = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    if value > 0x80000000:
        value = 0x100000000 - value
    return value % partitions if value != 0x80000000 else 0


def random_id() -> str:
    """A random UUID as Java writes it."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
