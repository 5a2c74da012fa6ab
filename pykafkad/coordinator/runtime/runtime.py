"""A coordinator: the shards of an internal topic's partitions, and how requests reach their machines.

A handler calls `coordinator.ask(key, context, operation, refuse)` and returns the result:

    return broker.group_coordinator.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.join(request, caller, broker.clock.now_ms()),
        lambda error: JoinGroupResponse(error_code=error.code),
    )

`operation` is called with the machine, and returns Effects or raises KafkaError. `refuse` makes the API's answer of a
KafkaError (error.code, error.text), which the machine raised, or the coordinator: NOT_COORDINATOR,
COORDINATOR_LOAD_IN_PROGRESS and others. If the operation does not reply to its caller, the context is deferred. Requests
about several keys use `asker()` and `look()`, and `do()` for changes:

    asker = broker.group_coordinator.asker_in_slices(context, lambda error: refused(request, error))
    for group_id in request.groups:
        try:
            answers.append(broker.group_coordinator.look(group_id, asker).describe(group_id))
        except KafkaError as error:
            ...
        yield
    return asker.answer(TheResponse(groups=answers))      # a refusal if a write has failed in between

The shard of a key is that of the partition to which the key hashes, as in Kafka. Which partitions this broker leads, and
in which epochs, the metadata says (`follow`, when the replicas have followed it): those with records are loaded when
they are won, the empty ones have a shard when a client asks for them.

Invariants: a partition has at most one shard; no operation sees a machine before its log was replayed; news of an older
leader epoch change nothing.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.java import as_int, concurrent_order, hash_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Generic, TypeVar

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker, AskerInSlices, Refuse, Response
    from pykafkad.coordinator.runtime.kind import MachineKind
    from pykafkad.coordinator.runtime.loading import Load
    from pykafkad.coordinator.runtime.long_work import LongWork
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.coordinator.runtime.shard import Shard
    from pykafkad.pure.effects import Effects, Work

    M = TypeVar("M")
else:
    M = "the machine"

    class Generic:
        """Without loading the module typing."""

        def __class_getitem__(cls, machine):
            return cls


REMEMBERED_KEYS = 20_000  # keys whose shard is found without hashing
NO_ABSOLUTE = 1 << 31  # the smallest int has no absolute value in Java


class CoordinatorRuntime(Generic[M]):
    def __init__(self, kind: MachineKind, loop: CoordinatorLoop, replicas: Replicas, image: Image) -> None:
        self.kind = kind
        self.loop = loop
        self._replicas = replicas
        self._image = image
        self._shards: dict[int, Shard] = {}
        self._shard_of: dict[str, Shard] = {}
        self._led_elsewhere: dict[int, int] = {}  # partition -> the leader epoch of another broker
        self._to_load: dict[int, Shard] = {}  # in this order
        self._load: Load | None = None
        self._partitions = 0  # the topic's number of partitions; 0 if it is not known or there is no topic
        self._long_work: LongWork | None = None  # made when it is needed
        self._is_started = self._stopped = False
        # False: who leads is told by `elected`, `resigned` and `removed`, before the metadata says it.
        self.follows_metadata = True

    # -- requests

    def ask(
        self,
        key: str,
        context: Context,
        operation: Callable[[M, Asker], Effects],
        refuse: Callable[[KafkaError], Response],
    ) -> Response | Context:
        """Perform an operation. Returns the response, or the deferred context."""
        try:
            shard = self._shard_of.get(key) or self.shard_of(key)
            asker = _asker_class(context, refuse)
            answer: Response | Context = shard.perform(operation(shard.machine, asker), asker)
            return answer
        except KafkaError as error:
            return refuse(translated(error))

    def perform(self, key: str, asker: Asker, operation: Callable[[M, Asker], Effects]) -> Any:
        """The same with the asker that is passed. Raises KafkaError if the operation is refused."""
        shard = self._shard_of.get(key) or self.shard_of(key)
        try:
            return shard.perform(operation(shard.machine, asker), asker)
        except KafkaError as error:
            if translated(error) is error:
                raise  # unchanged: an error that is its own cause, or is kept in a frame of its traceback, is never freed
            raise translated(error) from None

    def asker(self, context: Context, refuse: Refuse) -> Asker:
        return _asker_class(context, refuse)

    def asker_in_slices(self, context: Context, refuse: Refuse) -> AskerInSlices:
        from pykafkad.coordinator.runtime.callers import AskerInSlices

        return AskerInSlices(context, refuse)

    def look(self, key: str, asker: Asker) -> M:
        """The machine of a key, for a request that reads several. Raises KafkaError if it is not available."""
        shard = self._shard_of.get(key) or self.shard_of(key)
        shard.promise(asker)
        machine: M = shard.machine
        return machine

    def do(self, key: str, asker: Asker, operation: Callable[[M], Effects]) -> None:
        """Perform an operation that does not reply. Raises KafkaError if it is refused."""
        shard = self._shard_of.get(key) or self.shard_of(key)
        try:
            shard.perform(operation(shard.machine))
        except KafkaError as error:
            if translated(error) is error:
                raise  # as it is: an error that is its own cause, or is kept in a frame it went through, is never freed
            raise translated(error) from None
        shard.promise(asker)

    def end_transaction(
        self,
        index: int,
        producer: tuple[int, int],
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int,
    ) -> None:
        """Write the marker that ends a producer's transaction in a partition, as a transaction coordinator asks. Raises
        KafkaError if it is refused; whoever asks waits until the partition has committed it."""
        self._check_serving()
        shard = self._active(index)
        try:
            shard.end_transaction(producer, coordinator_epoch, committed, transaction_version)
        except KafkaError as error:
            raise KafkaError(translated(error).code) from None

    def look_everywhere(self, asker: Asker) -> list[M]:
        """All machines, in the order in which Kafka iterates over them. Raises COORDINATOR_LOAD_IN_PROGRESS while one is
        loading."""
        self._check_serving()
        found: list[M] = []
        for index in concurrent_order(range(self._partition_count()), self._hash_of_partition):
            partition = self._led(index)
            if index not in self._shards and (partition is None or is_empty(partition)):
                continue
            shard = self.shard(index)
            if shard.has_failed:
                continue
            if not shard.is_active:
                raise KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
            shard.promise(asker)
            found.append(shard.machine)
        return found

    # -- shards

    def partition_of(self, key: str) -> int:
        """The partition of a key, for requests that group keys by partition."""
        return partition_for(key, self._partition_count() or 1)

    def shard_of(self, key: str) -> Shard:
        """The active shard of a key. Raises KafkaError if there is none."""
        self._check_serving()
        count = self._partition_count()
        if not count:
            raise KafkaError(errors.NOT_COORDINATOR)
        shard = self._active(partition_for(key, count))
        if len(self._shard_of) >= REMEMBERED_KEYS:
            self._shard_of.clear()
        self._shard_of[key] = shard
        return shard

    def _active(self, index: int) -> Shard:
        shard = self.shard(index)
        if shard.has_failed:
            raise KafkaError(errors.NOT_COORDINATOR)
        if not shard.is_active:
            self._hurry(shard)
            raise KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def shard(self, index: int) -> Shard:
        """The shard of a partition, active or not. Raises KafkaError if this broker does not lead the partition."""
        shard = self._shards.get(index)
        if shard is not None:
            return shard
        partition = self._led(index)
        if partition is None:
            raise KafkaError(errors.NOT_COORDINATOR)
        return self._begin(partition, partition.leader_epoch)

    @property
    def shards(self) -> Iterable[Shard]:
        return list(self._shards.values())

    def _partition_count(self) -> int:
        """The number of partitions when it was first asked for: added ones count after a restart, as in Kafka."""
        if not self._partitions:
            topic = self._image.topics.get(self.kind.topic)
            self._partitions = len(topic.partitions) if topic is not None else 0
        return self._partitions

    def _hash_of_partition(self, index: int) -> int:
        """Java's TopicPartition.hashCode as an unsigned int."""
        return (31 * (31 + index) + hash_code(self.kind.topic)) & 0xFFFFFFFF

    def _check_serving(self) -> None:
        if self._stopped:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)

    def _led(self, index: int) -> Replica | None:
        """The partition, if this broker leads it and its log directory is online."""
        partition = self._replicas.get((self.kind.topic, index))
        if partition is None or partition.leadership is None or index in self._led_elsewhere:
            return None
        return partition if partition.is_online else None

    def do_long_work(self, shard: Shard, work: Work) -> None:
        if self._long_work is None:
            from pykafkad.coordinator.runtime.long_work import LongWork

            self._long_work = LongWork(self.kind, self.loop.in_slices, self.loop.clock)
        self._long_work.add(shard, work)

    # -- leadership

    def follow(self, delta: Delta) -> None:
        """What the metadata says of the leaders of the topic's partitions. A start loads them later, see start()."""
        topic = self._image.topics.get(self.kind.topic)
        if topic is None or not self._is_started or not self.follows_metadata:
            return
        for index in delta.leaders_of(topic):
            partition = topic.partitions[index]
            leads = partition.leader == self._replicas.node_id
            (self.elected if leads else self.resigned)(index, partition.leader_epoch)

    def elected(self, index: int, leader_epoch: int) -> None:
        """This broker has become the leader in this epoch: load the partition, unless its shard is active already."""
        if self._stopped or leader_epoch <= self._led_elsewhere.get(index, -1):
            return
        self._led_elsewhere.pop(index, None)
        shard = self._shards.get(index)
        if shard is not None:
            if leader_epoch <= shard.leader_epoch:
                return
            if shard.is_active:
                shard.leader_epoch = leader_epoch
                return
            self._unload(index)  # it is loading since an older epoch, or failed then
        partition = self._led(index)
        if partition is not None and not is_empty(partition):
            self._begin(partition, leader_epoch)

    def resigned(self, index: int, leader_epoch: int) -> None:
        """Another broker has become the leader in this epoch: refuse the requests that wait, and close the shard."""
        shard = self._shards.get(index)
        if shard is not None and shard.leader_epoch >= leader_epoch:
            return
        self._led_elsewhere[index] = max(leader_epoch, self._led_elsewhere.get(index, -1))
        self._unload(index)
        if shard is not None:
            self.loop.promises.fail(shard)

    def removed(self, index: int) -> None:
        """The partition is no longer here: what was known of it counts no more, should it come back."""
        shard = self._shards.get(index)
        self._led_elsewhere.pop(index, None)
        self._unload(index)
        if shard is not None:
            self.loop.promises.fail(shard)

    def drop_offline(self) -> None:
        """A log directory failed: close the shards whose partitions are in it."""
        for index, shard in list(self._shards.items()):
            if not shard.partition.is_online:
                self._unload(index)

    def drop_all(self) -> None:
        """The topic was deleted. It may be created again."""
        self._partitions = 0
        self._led_elsewhere.clear()
        for index in list(self._shards):
            self._unload(index)

    def stop(self) -> None:
        """Refuse the requests that wait, and all that come."""
        self._stopped = True
        for index in list(self._shards):
            self._unload(index)

    def _unload(self, index: int, *, is_written: bool = False) -> None:
        """Close a shard. Answers that promise what it replayed in this pass are refused, unless that is written."""
        shard = self._shards.pop(index, None)
        self._to_load.pop(index, None)
        self._shard_of.clear()
        if shard is None:
            return
        if self._load is not None and self._load.shard is shard:
            self._load.cancelled = True
            self._load = None
            self.loop.call_soon(self._load_more)
        shard.close()
        if not is_written:
            self.loop.promises.take_back(shard)

    # -- loading

    def start(self) -> None:
        """Begin to load all partitions in the next pass, while the broker serves other requests."""
        self._is_started = True
        if self.kind.topic in self._image.topics:
            self.loop.call_soon(self._load_all)

    def _load_all(self) -> None:
        for index in range(self._partition_count()):
            partition = self._led(index)
            if partition is not None and not is_empty(partition):
                self.shard(index)

    def _begin(self, partition: Replica, leader_epoch: int) -> Shard:
        from pykafkad.coordinator.runtime.shard import Shard

        index = partition.index
        shard = self._shards[index] = Shard(self, partition, self.kind.new(), leader_epoch)
        if is_empty(partition):
            shard.loaded()
        else:
            self._to_load[index] = shard
            self._load_more()
        return shard

    def _hurry(self, shard: Shard) -> None:
        """A client asks for this shard: it is loaded before the others."""
        index = shard.partition.index
        if index in self._to_load:
            self._to_load = {index: shard, **self._to_load}

    def _load_more(self) -> None:
        if self._load is None:
            self._load_next()

    def _load_next(self) -> None:
        from pykafkad.coordinator.runtime.loading import Load

        if not self._to_load:
            self._load = None
            return
        shard = self._to_load.pop(next(iter(self._to_load)))
        self._load = Load(shard, self._on_loaded)
        self._load.read()

    def _on_loaded(self, shard: Shard, error: Exception | None) -> None:
        name, log, nouns = shard.partition.name, self.kind.log, self.kind.nouns
        count = self._load.count if self._load is not None else 0
        try:
            if error is None:
                log.info(f"loaded {shard.loaded()} {nouns} from {count} records of {name}")
        except Exception as problem:
            error = problem
        if error is not None:
            shard.has_failed = True
            if isinstance(error, OSError):
                shard.partition.fail(error)
            log.exception(
                f"the {nouns} of {name} cannot be loaded, so their coordinator is not available", error
            )
        self._load_next()

    # -- the end of a pass

    def end_pass(self, shard: Shard) -> None:
        """After the storage's commit(): go on, or close the shard if the write failed."""
        index = shard.partition.index
        try:
            is_written = shard.writer.is_writable
            if is_written:
                shard.written()
            if shard.is_active and (shard.must_reload or not is_written):
                self._unload(index, is_written=is_written)
                if shard.writer.is_refused:
                    shard.has_failed = True
                    self._shards[index] = shard
        except Exception as error:
            self.kind.log.exception(
                f"{shard.partition.name}: the end of a pass failed; its {self.kind.nouns} are loaded anew",
                error,
            )
            if self._shards.get(index) is shard:
                self._unload(index)


def _make_asker(context: Context, refuse: Refuse) -> Asker:
    """The class is imported with the first request: a broker whose clients use no groups does not need it."""
    global _asker_class
    from pykafkad.coordinator.runtime.callers import Asker

    _asker_class = Asker
    return Asker(context, refuse)


_asker_class: Callable[[Context, Refuse], Asker] = _make_asker


def is_empty(partition: Replica) -> bool:
    return partition.log_end_offset == partition.log_start_offset


def translated(error: KafkaError) -> KafkaError:
    from pykafkad.pure.refusals import told_as

    code = told_as(error.code)
    return error if code == error.code else KafkaError(code)


def partition_for(key: str, partitions: int) -> int:
    """The absolute value of Java's String.hashCode of the key, modulo the number of partitions."""
    code = abs(as_int(hash_code(key)))
    return code % partitions if code != NO_ABSOLUTE else 0
