"""What a start makes of batches that it does not walk: producers' states behind a snapshot, epochs at the log's start."""

from __future__ import annotations

from pykafkad.hot.records import RecordsError
from pykafkad.hot.segment import CorruptSegment
from pykafkad.logs import logger
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.storage.recovery.walking import note_producer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.hot.segment import BatchHeader, Segment
    from pykafkad.storage.log.log import Log

log = logger("recovery")


def replay_producers(partition: Log, end_offset: int) -> None:
    """From where their state is on."""
    producers = partition.producers
    for segment in partition.segments:
        if segment.end_offset <= producers.end_offset or segment.base_offset >= end_offset:
            continue
        try:
            replay_segment(partition, segment, end_offset)
        except (CorruptSegment, RecordsError) as error:
            # Nobody walks it at this start, and it is served as it is.
            log.warn(f"{segment.path}: what its batches say of producers is not known: {error}")
    producers.end_offset = max(producers.end_offset, end_offset)


def replay_segment(partition: Log, segment: Segment, end_offset: int) -> None:
    header = segment.batch_reaching(partition.producers.end_offset)
    if header is None:
        return
    for each in segment.headers(header.position):
        if each.base_offset >= end_offset:
            break
        note_producer(partition, segment, each, index=False)


def cover_start(partition: Log) -> None:
    """The epochs may begin above the log's start, where a crash came before the checkpoint of a raised one; or
    there are none left, where it took the log's end with it."""
    known, start = partition.epochs.entries, partition.log_start_offset
    first = known[0][1] if known else partition.log_end_offset
    if first <= start:
        return
    epochs = LeaderEpochs()
    try:
        for header in headers_between(partition, start, first):
            if header.magic < 2 or header.leader_epoch < 0:
                return  # an old log: it had none at its start
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, max(start, header.base_offset))
    except CorruptSegment:
        return  # nobody walks it at this start
    for epoch, offset in known:
        if epoch > epochs.latest:
            epochs.assign(epoch, offset)
    partition.epochs = epochs


def headers_between(partition: Log, start: int, end: int) -> Iterator[BatchHeader]:
    for segment in partition.segments:
        if segment.end_offset <= start or segment.base_offset >= end:
            continue
        first = segment.batch_reaching(start)
        for header in segment.headers(first.position) if first is not None else ():
            if header.base_offset >= end:
                break
            yield header
