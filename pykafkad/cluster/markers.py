"""End markers of transactions: appended in the logs of the partitions that took part, as a transaction coordinator asks.

Our own coordinator asks `broker.markers`, that of another broker does so through WriteTxnMarkers. A marker for a
partition of `__consumer_offsets` goes through the group coordinator, whose pending offsets it ends.

Invariants: `done` is called once, in a pass of its own, with a code for each partition; a code of 0 says that the marker
is below the high watermark. What is not answered with 0 may be written all the same, and asked for again: a second marker
of one transaction changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.slices import GO_ON, each
from pykafkad.storage.log import markers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.coordinator.groups import GroupCoordinator
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.slices import Work
    from pykafkad.waiting import Moved, Waiting

    Partition = tuple[str, int]  # topic and index
    Codes = dict[Partition, int]
    Done = Callable[[Codes], None]

APPENDS_AT_ONCE = 8
NOT_GIVEN = -1  # as a producer's id or epoch, or a transaction version: there is none to end
# A transaction coordinator knows these of partitions with leaders alone: it asks again.
NOT_READY = (errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE)

log = logger("transactions")


class Marker(NamedTuple):
    """What ends a transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int  # from 2 on the epoch must be above that of the transaction's batches


class Markers:
    """Writes markers, any number at a time."""

    def __init__(
        self,
        image: Image,
        replicas: Replicas,
        group_coordinator: GroupCoordinator,
        loop: CoordinatorLoop,
        waiting: Waiting,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms`: for how long a marker may wait to be committed (REQUEST_TIMED_OUT)."""
        self.image = image
        self.replicas = replicas
        self.group_coordinator = group_coordinator
        self.loop = loop
        self.waiting = waiting
        self.timeout_ms = timeout_ms

    def write(self, marker: Marker, partitions: Iterable[Partition], done: Done) -> None:
        """Append the marker in each of these partitions, and tell `done` when it is committed there."""
        writing = Writing(self, marker, done)
        self.loop.in_slices(writing.append_all(partitions), writing.wait)


class Writing:
    """One marker on its way into some partitions."""

    __slots__ = ("codes", "done", "marker", "owner", "uncommitted")

    def __init__(self, owner: Markers, marker: Marker, done: Done) -> None:
        self.owner = owner
        self.marker = marker
        self.done = done
        self.codes: Codes = {}
        self.uncommitted: dict[Replica, int] = {}  # and the end of the log when the marker was appended

    def append_all(self, partitions: Iterable[Partition]) -> Work:
        for pause, partition in each(partitions, APPENDS_AT_ONCE):
            if pause:
                yield GO_ON
            if partition not in self.codes:  # it may be named twice
                self.codes[partition] = self.append(partition)

    def append(self, partition: Partition) -> int:
        replica = self.owner.replicas.get(partition)
        if replica is None:
            return self.missing(partition)
        try:
            self.append_in(replica)
        except KafkaError as error:
            return errors.NOT_LEADER_OR_FOLLOWER if error.code in NOT_READY else error.code
        except Exception as error:
            log.exception(
                f"{replica.name}: the end of the transaction of {self.marker} is not written", error
            )
            return errors.UNKNOWN_SERVER_ERROR
        self.uncommitted[replica] = replica.log_end_offset
        return errors.NONE

    def append_in(self, replica: Replica) -> None:
        producer_id, epoch, coordinator_epoch, committed, version = self.marker
        if NOT_GIVEN in (producer_id, epoch, version):
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
        replica.check_append(-1)
        if replica.topic == CONSUMER_OFFSETS:
            self.owner.group_coordinator.end_transaction(
                replica.index, (producer_id, epoch), coordinator_epoch, committed, version
            )
            return
        now_ms = self.owner.loop.clock.now_ms()
        data = markers.build((producer_id, epoch), coordinator_epoch, committed, now_ms)
        replica.append_built(data, now_ms, transaction_version=version)

    def missing(self, partition: Partition) -> int:
        """There is no replica. In a log directory that is offline it will be there again; else it is gone for good."""
        topic, index = partition
        known = self.owner.image.topics.get(topic)
        exists = known is not None and 0 <= index < len(known.partitions)
        return errors.KAFKA_STORAGE_ERROR if exists else errors.UNKNOWN_TOPIC_OR_PARTITION

    # -- the commit

    def wait(self, problem: Exception | None) -> None:
        """All is appended; some of it may be committed, when that took several passes."""
        if problem is not None:
            raise problem
        self.look(list(self.uncommitted))
        if self.uncommitted:
            waiter = self.owner.waiting.wait(
                list(self.uncommitted), self.owner.timeout_ms, self.attempt, self.cannot_tell
            )
            waiter.what = "end markers"
        else:
            self.tell()

    def attempt(self, expired: bool, moved: Moved) -> bool:
        self.look(list(self.uncommitted) if expired else [each for each in moved if each in self.uncommitted])
        if self.uncommitted and not expired:
            return False
        for replica in self.uncommitted:
            self.codes[replica.topic, replica.index] = errors.REQUEST_TIMED_OUT
        self.tell()
        return True

    def look(self, some: Iterable[Replica]) -> None:
        """Take out what is committed, or never will be."""
        for replica in some:
            partition = replica.topic, replica.index
            try:
                if self.owner.replicas.get(partition) is not replica:
                    raise KafkaError(self.missing(partition))
                if not replica.check_appended(self.uncommitted[replica], -1):
                    continue
            except KafkaError as error:
                self.codes[partition] = error.code
            del self.uncommitted[replica]

    def cannot_tell(self, problem: Exception) -> None:
        log.exception(f"whether the markers of {self.marker} are committed cannot be told", problem)
        for replica in self.uncommitted:
            self.codes[replica.topic, replica.index] = errors.UNKNOWN_SERVER_ERROR
        self.tell()

    def tell(self) -> None:
        """In a pass of its own: whoever asked may append what follows, and the appends of this one may be over."""
        self.owner.loop.call_soon(self.done, self.codes)
