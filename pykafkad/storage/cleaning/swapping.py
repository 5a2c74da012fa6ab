"""A cleaned segment takes the place of those it was made from, whatever moment a crash comes at.

    .cleaned                 written and synced by a thread: worth nothing yet
    .cleaned -> .swap        whole: from now on a start finishes what is left to do (storage/recovery/leftovers.py)
    old      -> .deleted     unlinked after file.delete.delay.ms
    .swap    -> the name

In that order for all files, the log first, as in Kafka's LocalLog.replaceSegments; the directory is synced by whoever
called. All of it happens in one turn of the loop: nobody reads a mixture, and who has a file open goes on with it.
"""

from __future__ import annotations

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import Segment
from pykafkad.storage import files
from pykafkad.storage.files import CLEANED, SWAP
from pykafkad.storage.log.removal import mark_deleted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.cleaner import Rewriter
    from pykafkad.storage.log.log import Log


def replace_segments(partition: Log, cleaned: Rewriter, old: list[Segment]) -> None:
    """`old`: neighbours, all of them in the log and none of them active. OSError: the directory has failed."""
    partition.aborted_bases = None
    stems = [path.removesuffix(CLEANED) for path in cleaned.paths]
    for stem in stems:
        files.rename(stem + CLEANED, stem + SWAP)
    deleted = []
    for segment in old:
        segment.release()
        # The first one's snapshot is the new segment's as well.
        replaced = segment.base_offset == cleaned.base_offset
        deleted += mark_deleted(partition.directory, segment.base_offset, snapshot=not replaced)
    for stem in stems:
        files.rename(stem + SWAP, stem)
    slot = partition.segments.index(old[0])
    end_offset = partition.bases[slot + len(old)]
    partition.segments[slot : slot + len(old)] = [
        segment_of(partition.directory, cleaned, old[0], end_offset)
    ]
    partition.bases[slot : slot + len(old)] = [cleaned.base_offset]
    directory = partition.log_directory
    partition.context.unlink_soon(directory, deleted, partition.settings.file_delete_delay_ms)


def segment_of(directory: str, cleaned: Rewriter, first: Segment, end_offset: int) -> Segment:
    base = cleaned.base_offset
    segment = Segment(directory, base, OffsetIndex(directory, base), TimeIndex(directory, base), cleaned.size)
    segment.end_offset = end_offset  # its last offsets may be gone, and are nobody else's
    segment.max_timestamp = cleaned.max_timestamp
    segment.max_timestamp_offset = cleaned.max_timestamp_offset
    segment.first_timestamp = cleaned.first_timestamp
    segment.created_ms = first.created_ms
    return segment
