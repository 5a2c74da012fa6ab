"""What the batches of a log say, when it is walked at a start: leader epochs, producers, aborted transactions."""

from __future__ import annotations

from pykafkad.storage.log import markers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.segment import BatchHeader, Segment
    from pykafkad.storage.log.log import Log


class Walk:
    """Follows a check through the segments: epochs and producers, batch by batch."""

    def __init__(self, partition: Log) -> None:
        self.partition = partition
        self.slot = 0
        self.epoch = -1
        self.rise: tuple[int, int, int] | None = None  # the last one: segment's slot, position, offset

    def begin(self, slot: int) -> None:
        self.slot = slot

    def batch(self, header: BatchHeader) -> None:
        epochs = self.partition.epochs
        epoch = header.leader_epoch
        if header.magic >= 2 and epoch > self.epoch:
            if self.epoch >= 0:
                self.rise = self.slot, header.position, header.base_offset
            self.epoch = epoch
            if epoch > epochs.latest:
                epochs.assign(epoch, header.base_offset)
        note_producer(self.partition, self.partition.segments[self.slot], header, index=True)


def note_producer(partition: Log, segment: Segment, header: BatchHeader, *, index: bool) -> None:
    """What a batch that is in the log means for its producer; `index`: list an aborted transaction
    (again)."""
    if header.producer_id < 0:
        return
    producers = partition.producers
    if not header.is_control:
        producers.append(header, header.base_offset, header.last_offset, header.max_timestamp)
        return
    marker = markers.read(segment.bytes_at(header.position, header.size))
    if marker is not None:
        directory = partition.directory if index else None
        base, offset = segment.base_offset, header.base_offset
        markers.apply(producers, directory, base, header.producer_id, header.producer_epoch, offset, marker)
