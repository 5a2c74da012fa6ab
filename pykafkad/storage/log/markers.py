"""Transaction markers: the control batches that end a transaction, and what they do to a partition's state.

key    int16 version, int16 type (0 abort, 1 commit)
value  int16 version, int32 coordinator epoch
"""

from __future__ import annotations

from pykafkad.hot import records
from pykafkad.pure.producer_state import ABORT, COMMIT
from pykafkad.storage.log import transaction_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from pykafkad.pure.producer_state import ProducerState

VERSION = 0  # of the key and of the value


class Marker:
    __slots__ = ("coordinator_epoch", "kind", "timestamp")

    def __init__(self, kind: int, coordinator_epoch: int, timestamp: int) -> None:
        self.kind = kind  # ABORT or COMMIT
        self.coordinator_epoch = coordinator_epoch
        self.timestamp = timestamp


def read(data: ReadableBuffer) -> Marker | None:
    """The marker in a control batch; None for other control records, and when compaction left the batch
    empty."""
    for record in records.read(data):
        kind, value = record.control_type, record.value
        if kind not in (ABORT, COMMIT) or value is None or len(value) < 6:
            return None
        return Marker(kind, int.from_bytes(value[2:6], "big", signed=True), record.timestamp)
    return None


def build(producer: tuple[int, int], coordinator_epoch: int, committed: bool, now_ms: int) -> bytes:
    """A control batch that ends the transaction of a producer, given by its id and epoch."""
    kind = COMMIT if committed else ABORT
    key = VERSION.to_bytes(2) + kind.to_bytes(2)
    value = VERSION.to_bytes(2) + coordinator_epoch.to_bytes(4, signed=True)
    return records.build(
        [(key, value, (), now_ms)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        transactional=True,
        control=True,
    )


def apply(
    producers: ProducerState,
    directory: str | None,
    segment_base_offset: int,
    producer_id: int,
    epoch: int,
    offset: int,
    marker: Marker,
) -> bool:
    """The marker stands at `offset`, in that segment: its transaction is over, and listed there if it was
    aborted (no directory: it is listed already). Whether it was listed now."""
    completed = producers.append_marker(
        producer_id, epoch, marker.coordinator_epoch, marker.kind, offset, marker.timestamp
    )
    if completed is None:
        return False
    listed = completed.aborted and directory is not None
    if completed.aborted and directory is not None:
        stable = producers.last_stable_offset_after(completed)
        transaction_index.append(directory, segment_base_offset, completed, stable)
    producers.complete(completed)
    return listed
