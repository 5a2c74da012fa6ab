"""The transaction coordinator: the runtime over the partitions of `__transaction_state`, with what only transactions
need.

That is new producer ids, markers in the logs of the partitions that take part, transactions that take too long, and ids
that nobody uses any more. What a transaction may do is in pure/transactions.
"""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.cluster.features import TRANSACTION_VERSION
from pykafkad.cluster.topic_names import TRANSACTION_STATE
from pykafkad.coordinator.runtime.kind import MachineKind
from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime, translated
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.slices import GO_ON, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.markers import Markers
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.cluster.zookeeper.remote_markers import ClusterMarkers
    from pykafkad.config import BrokerConfig
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker, Response
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.coordinator.runtime.shard import Shard
    from pykafkad.coordinator.transaction_machine import TransactionMachine
    from pykafkad.pure.effects import Effects
    from pykafkad.pure.transactions.settings import TransactionSettings
    from pykafkad.pure.transactions.transaction import Partition, Transaction
    from pykafkad.slices import Work

    Codes = dict[Partition, int]
    TakeProducerId = Callable[[Callable[[int | KafkaError], None]], None]
    TransactionRuntime = CoordinatorRuntime[TransactionMachine]
else:
    TransactionRuntime = CoordinatorRuntime  # naming the machine's class would import it with every start

IMPLICIT_SINCE = 2  # the transaction version whose producers let partitions take part by writing to them
NO_ID = -1
NAMED = 10  # ids in one line of the log


class TransactionCoordinator(TransactionRuntime):
    def __init__(
        self,
        config: BrokerConfig,
        loop: CoordinatorLoop,
        replicas: Replicas,
        image: Image,
        take_producer_id: TakeProducerId,
        markers: Callable[[], Markers | ClusterMarkers],
    ) -> None:
        kind = MachineKind(
            TRANSACTION_STATE,
            "transactional id",
            self._new_machine,
            load_buffer_bytes=config["transaction.state.log.load.buffer.size"],
        )
        kind.log = logger("transactions")
        super().__init__(kind, loop, replicas, image)
        self._config = config
        self._take_producer_id = take_producer_id
        self._markers = markers
        self._settings: TransactionSettings | None = None
        self._under_way: set[str] = set()  # periodic jobs

    def _new_machine(self) -> TransactionMachine:
        """The modules are imported with the first partition: a broker without transactions does not need them."""
        from pykafkad.coordinator.transaction_machine import TransactionMachine

        return TransactionMachine(self.settings)

    @property
    def settings(self) -> TransactionSettings:
        if self._settings is None:
            from pykafkad.pure.transactions.settings import TransactionSettings

            self._settings = TransactionSettings(
                self._config["transaction.max.timeout.ms"],
                self._config["transactional.id.expiration.ms"],
                lambda: self.transaction_version,
                self._write_markers,
            )
        return self._settings

    @property
    def transaction_version(self) -> int:
        """The finalized level of the feature."""
        return self._image.features.get(TRANSACTION_VERSION, 0)

    def publish(self, delta: Delta) -> None:
        if any(topic.name == TRANSACTION_STATE for topic in delta.deleted.values()):
            self.drop_all()
        self.follow(delta)

    # -- who writes to partitions asks for them

    def take_part(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        add: bool,
        done: Callable[[Codes], None],
    ) -> None:
        """Whether these partitions take part in the open transaction of this producer; `add`: let them, if they do not.
        `done` is called once, with an error code for each of them, when what it says is committed."""
        producer = producer_id, producer_epoch
        try:
            shard = self._shard_of.get(transactional_id) or self.shard_of(transactional_id)
            machine: TransactionMachine = shard.machine
            if add:
                now_ms, wanted = self.loop.clock.now_ms(), frozenset(partitions)
                shard.perform(machine.add(transactional_id, producer, wanted, IMPLICIT_SINCE, now_ms))
                codes = dict.fromkeys(partitions, errors.NONE)
            else:
                known = machine.taking_part(transactional_id, producer)
                codes = {
                    each: errors.NONE if each in known else errors.TRANSACTION_ABORTABLE
                    for each in partitions
                }
        except KafkaError as error:
            done(dict.fromkeys(partitions, translated(error).code))
            return
        refused = dict.fromkeys(partitions, errors.NOT_COORDINATOR)
        shard.after_commit(lambda: done(codes), lambda: done(refused))

    # -- new producer ids

    def ask_with_id(
        self,
        key: str,
        context: Context,
        operation: Callable[[TransactionMachine, Asker, int], Effects],
        refuse: Callable[[KafkaError], Response],
    ) -> Response | Context:
        """ask(), for an operation that may need a new producer id: then it is asked again with one."""
        from pykafkad.pure.transactions.transaction import ProducerIdNeeded

        def attempt(new_id: int) -> Response | Context:
            return self.ask(key, context, lambda machine, asker: operation(machine, asker, new_id), refuse)

        try:
            return attempt(NO_ID)
        except ProducerIdNeeded:
            context.defer()

        def taken(new_id: int | KafkaError) -> None:
            response = refuse(new_id) if isinstance(new_id, KafkaError) else attempt(new_id)
            if response is not context:
                context.answer(response)

        self._take_producer_id(taken)
        return context

    def _do_with_id(self, shard: Shard, operation: Callable[[TransactionMachine, int], Effects]) -> None:
        """The same where nobody waits for an answer."""
        from pykafkad.pure.transactions.transaction import ProducerIdNeeded

        def taken(new_id: int | KafkaError) -> None:
            if isinstance(new_id, KafkaError):
                self.kind.log.warn(f"{shard.name}: no producer id to fence a producer with: {new_id}")
            elif shard.is_active:
                shard.do(operation(shard.machine, new_id))

        try:
            shard.do(operation(shard.machine, NO_ID))
        except ProducerIdNeeded:
            self._take_producer_id(taken)

    # -- markers

    def _write_markers(
        self, transactional_id: str, prepared: Transaction, partitions: frozenset[Partition]
    ) -> None:
        from pykafkad.cluster.markers import Marker
        from pykafkad.pure.transactions.transaction import PREPARE_COMMIT

        shard = self.shard(self.partition_of(transactional_id))
        marker = Marker(
            prepared.producer_id,
            prepared.epoch,
            shard.leader_epoch,
            prepared.state == PREPARE_COMMIT,
            prepared.client_version,
        )
        self._markers().write(
            marker, list(partitions), partial(self._marked, shard, transactional_id, prepared)
        )

    def _marked(self, shard: Shard, transactional_id: str, prepared: Transaction, codes: Codes) -> None:
        if shard.is_active:
            machine: TransactionMachine = shard.machine
            shard.do(machine.marked(transactional_id, prepared, codes, self.loop.clock.now_ms()))

    # -- time

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """Periodic jobs: the interval in ms, and what to call."""
        abort_ms = self._config["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        expire_ms = self._config["transaction.remove.expired.transaction.cleanup.interval.ms"]
        return [
            (abort_ms, partial(self._begin_job, "timeouts", self._abort_overdue)),
            (expire_ms, partial(self._begin_job, "expiry", self._expire)),
        ]

    def _begin_job(self, what: str, job: Callable[[Shard], Work]) -> None:
        if what not in self._under_way and self.shards:
            self._under_way.add(what)
            self.loop.in_slices(self._everywhere(job), partial(self._ended_job, what))

    def _everywhere(self, job: Callable[[Shard], Work]) -> Work:
        for shard in self.shards:
            if shard.is_active:
                yield from job(shard)

    def _ended_job(self, what: str, result: Any) -> None:
        self._under_way.discard(what)
        if isinstance(result, Exception):
            self.kind.log.exception(f"the {what} of transactions are looked at again later", result)

    def _abort_overdue(self, shard: Shard) -> Work:
        machine: TransactionMachine = shard.machine
        late: list[str] = []
        for some in chunks(list(machine.open_ids)):
            yield GO_ON
            late += machine.overdue(some, self.loop.clock.now_ms())
        for transactional_id in late:
            if shard.is_active:
                self._do_with_id(shard, partial(self._abort, transactional_id))
            yield GO_ON
        if late:
            more = f" and {len(late) - NAMED} more" if len(late) > NAMED else ""
            self.kind.log.info(
                f"transactions that took longer than their timeouts are aborted: {', '.join(late[:NAMED])}{more}"
            )

    def _abort(self, transactional_id: str, machine: TransactionMachine, new_id: int) -> Effects:
        return machine.abort(transactional_id, self.loop.clock.now_ms(), new_id)

    def _expire(self, shard: Shard) -> Work:
        machine: TransactionMachine = shard.machine
        for some in chunks(list(machine.by_id)):
            for transactional_id in machine.expired(some, self.loop.clock.now_ms()):
                if shard.is_active:
                    shard.do(machine.forget(transactional_id))
            yield GO_ON
