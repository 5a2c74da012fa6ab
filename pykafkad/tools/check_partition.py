"""`pykafkad check`, one partition: every byte of its segments, the files beside them, and what a start would do.

Nothing is opened for writing. The rules about a start are those of storage's recovery and leftovers, applied in the
same order. A problem is what is damaged or contradicts the log. What a killed broker leaves behind without any loss (no
clean-shutdown marker, indexes that were not truncated to their size) is a note.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import pairwise

from pykafkad.hot.segment import Inspection, Verdict
from pykafkad.pure.leader_epochs import LeaderEpochs
from pykafkad.pure.producer_state import ProducerEntry, ProducerState
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log import markers, snapshots, transaction_index
from pykafkad.storage.recovery import leftovers
from pykafkad.tools.check_report import Hints, Problem, Report, Segment
from pykafkad.tools.check_start import foresee

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.hot.segment import BatchHeader

FAULTS_A_SEGMENT = 10  # more than these are only counted
READ_BYTES = 1 << 16
OFFSET_ENTRY, TIME_ENTRY = 8, 12


def inspect(name: str, path: str, hints: Hints) -> Report:
    """Check one partition's directory. OSError if it cannot be read."""
    report = Report(name, path)
    _Inspector(report, hints).run()
    return report


class _Inspector:
    def __init__(self, report: Report, hints: Hints) -> None:
        self.report = report
        self.hints = hints
        self.path = report.path
        self.present: dict[str, str] = {}  # the files that a start finds: name then -> name now
        self.bases: list[int] = []
        self.trusted = 0  # how many segments a start need not walk, if they are whole
        self.walked = 0  # the first segment that a start walks in any case
        self.epoch = -1  # the leader epoch of the walked segments so far
        self.rise: tuple[int, int] | None = None  # where it last rose: segment and position
        self.epochs = LeaderEpochs()  # as the batches show them
        self.producers = ProducerState()
        self.aborted: list[tuple[int, int]] = []  # (producer id, offset of the end marker), in one segment
        self.with_records: set[int] = set()  # producers that have records since their last end marker
        self.believes = True  # no bad batch so far, so epochs and producers of the batches can be relied on

    def run(self) -> None:
        self.present = self.plan()
        logs = (files.offset_of(name, files.LOG) for name in self.present)
        self.bases = sorted(base for base in logs if base is not None)
        history = self.read_epochs()
        self.choose(history)
        for slot, base in enumerate(self.bases):
            self.segment(slot, base)
        self.between_segments()
        self.settle_offsets()
        if history is not None:
            self.compare_epochs(history)
        self.topic_id()
        self.snapshot_files()
        foresee(self.report, self.hints, self.walked)

    def problem(
        self, file: str, text: str, position: int | None = None, offsets: tuple[int, int] | None = None
    ) -> None:
        self.report.problems.append(Problem(file, text, position, offsets))

    def choose(self, history: LeaderEpochs | None) -> None:
        """Choose the segments that a start walks: after a kill those from the recovery point on, or from a missing
        index on."""
        count = len(self.bases)
        self.trusted = count
        if not self.hints.clean and count:
            self.trusted = max(0, bisect_right(self.bases, self.hints.recovery_point) - 1)
        self.walked = self.trusted
        if history is None:
            self.walked = 0
        for slot in range(self.walked):
            if not self.is_indexed(self.bases[slot]):
                self.walked = slot
                return

    def is_indexed(self, base: int) -> bool:
        if any(
            files.offset_name(base, suffix) not in self.present for suffix in (files.INDEX, files.TIME_INDEX)
        ):
            return False
        try:
            self.listed_aborts(base)
        except transaction_index.TransactionIndexError:
            return False
        return True

    def listed_aborts(self, base: int) -> set[tuple[int, int]]:
        data = self.read(files.offset_name(base, files.TRANSACTION_INDEX)) or b""
        return {(producer_id, last) for producer_id, _, last, _ in transaction_index.parse(data, base)}

    # -- leftovers -------------------------------------------------------------------------------------------

    def plan(self) -> dict[str, str]:
        """The files as they will be after leftovers.tidy: their name then -> their name now."""
        names, others = leftovers.look(self.path)
        todo = leftovers.plan(self.path, names)
        report = self.report
        for name in filter(leftovers.is_ours, sorted(others)):
            self.problem(name, "is no file")
            report.start.append(f"set {name} aside")
        for name, target in todo.renames:
            report.start.append(f"rename {name} to {target}: a cleaning came so far")
        if todo.unlinks:
            shown = ", ".join(sorted(todo.unlinks)[:3]) + (", …" if len(todo.unlinks) > 3 else "")
            report.start.append(f"remove {len(todo.unlinks)} leftover file(s): {shown}")
        aside = sorted(name for name in todo.names if name.endswith(files.CORRUPT))
        if aside:
            report.notes.append(f"an earlier recovery set aside {', '.join(aside)}")
        return todo.names

    def read(self, name: str) -> bytes | None:
        actual = self.present.get(name)
        return None if actual is None else files.read_file(f"{self.path}/{actual}")

    # -- segments --------------------------------------------------------------------------------------------

    def segment(self, slot: int, base: int) -> None:
        name = files.offset_name(base, files.LOG)
        segment = Segment(base, name, f"{self.path}/{self.present[name]}")
        if slot and self.report.segments[-1].end_offset == base:
            self.believes = True  # there are only unreadable bytes between them
        self.report.segments.append(segment)
        self.snapshot(base)
        self.aborted = []
        offsets = self.index_bytes(slot, base, files.INDEX)
        times = self.index_bytes(slot, base, files.TIME_INDEX)
        epoch = self.epoch if slot >= self.walked else -1
        inspection = Inspection(segment.path, base, segment.size, offsets, times, epoch)
        self.walk(slot, segment, inspection)
        segment.batches, segment.records = inspection.batches, inspection.records
        segment.gaps = inspection.gaps
        if segment.cut_at is None:
            segment.end_offset = inspection.end_offset
            self.index_faults(segment, inspection)
        if slot >= self.walked:
            self.epoch = inspection.epoch
        self.transaction_index(slot, segment)

    def walk(self, slot: int, segment: Segment, inspection: Inspection) -> None:
        """Walk all batches, also those behind a bad one, as far as their sizes can be right."""
        faults = 0
        while True:
            for header in inspection.turn():
                if self.believes:
                    self.note(slot, segment, inspection, header)
            if not inspection.is_over:
                continue
            fault = inspection.fault
            if fault is None:
                return
            if segment.cut_at is None:
                segment.cut_at, segment.end_offset = fault.position, inspection.end_offset
                segment.verdict = fault.verdict
                if self.believes and slot >= self.walked and fault.verdict == Verdict.EPOCH:
                    self.blame_rise()
                self.believes = False
            faults += 1
            if faults <= FAULTS_A_SEGMENT:
                self.problem(segment.name, str(fault), fault.position, fault.offsets)
            if not inspection.skip():
                return

    def blame_rise(self) -> None:
        """If the leader epoch falls, the batch at which it last rose is taken to be the damaged one, so the log is good
        up to there."""
        if self.rise is None:
            return
        slot, position = self.rise
        segment = self.report.segments[slot]
        inspection = Inspection(segment.path, segment.base, position)
        while not inspection.is_over:
            inspection.turn()
        segment.cut_at, segment.end_offset = position, inspection.end_offset

    def note(self, slot: int, segment: Segment, inspection: Inspection, header: BatchHeader) -> None:
        """Note the leader epoch and the producer of a good batch."""
        if header.leader_epoch > self.epochs.latest:
            if self.epochs.entries and slot >= self.walked:
                self.rise = slot, header.position
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id < 0:
            return
        if not header.is_control:
            self.producers.append(header, header.base_offset, header.last_offset, header.max_timestamp)
            if header.count:
                self.with_records.add(header.producer_id)
            return
        marker = markers.read(inspection.bytes_at(header.position, header.size))
        if marker is None:
            return
        completed = self.producers.append_marker(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            marker.kind,
            header.base_offset,
            marker.timestamp,
        )
        if completed is not None:
            if completed.aborted and header.producer_id in self.with_records:
                self.aborted.append((header.producer_id, header.base_offset))
            self.producers.complete(completed)
        self.with_records.discard(header.producer_id)

    def between_segments(self) -> None:
        segments = self.report.segments
        was_cleaned = self.hints.compacted or any(segment.gaps for segment in segments)
        for before, after in pairwise(segments):
            if before.end_offset > after.base:
                text = (
                    f"ends at offset {before.end_offset - 1}, and the next segment begins with {after.base}"
                )
                self.problem(before.name, text)
            elif before.end_offset < after.base and before.cut_at is None and not was_cleaned:
                gap = f"the offsets {before.end_offset} to {after.base - 1} are in no segment"
                self.report.notes.append(f"{gap}: one may be lost, if the topic was never compacted")

    # -- indexes ---------------------------------------------------------------------------------------------

    def index_bytes(self, slot: int, base: int, suffix: str) -> bytes | None:
        """The bytes of an index without the zeros it was preallocated with; None if it cannot be compared."""
        if slot >= self.trusted:
            return None  # a start creates it anew
        name = files.offset_name(base, suffix)
        if name not in self.present:
            self.problem(name, "is missing")
            return None
        width = OFFSET_ENTRY if suffix == files.INDEX else TIME_ENTRY
        size, data = read_entries(f"{self.path}/{self.present[name]}")
        if size % width:
            self.problem(name, f"{size} bytes are no whole entries")
        return data

    def index_faults(self, segment: Segment, inspection: Inspection) -> None:
        suffixes = (files.INDEX, files.TIME_INDEX)
        for suffix, (wrong, first), entries in zip(
            suffixes, inspection.index_faults, inspection.index_entries, strict=True
        ):
            if wrong:
                text = f"{wrong} of {entries} entries do not fit the log, the first of them is number {first}"
                self.problem(files.offset_name(segment.base, suffix), text)

    def transaction_index(self, slot: int, segment: Segment) -> None:
        name = files.offset_name(segment.base, files.TRANSACTION_INDEX)
        if slot >= self.trusted:
            return
        try:
            listed = self.listed_aborts(segment.base)
        except transaction_index.TransactionIndexError as error:
            self.problem(name, str(error))
            return
        if segment.cut_at is not None:
            return
        for producer_id, offset in self.aborted:
            if (producer_id, offset) not in listed:
                text = f"the transaction that producer {producer_id} aborted at offset {offset} is not listed"
                self.problem(name, text)
        if any(last >= segment.end_offset for _, last in listed):
            self.problem(name, f"an entry lies behind the segment's end {segment.end_offset}")

    # -- producers' snapshots --------------------------------------------------------------------------------

    def snapshot(self, offset: int) -> None:
        """Compare a producers' snapshot with the batches, when the walk has come to its offset."""
        name = files.offset_name(offset, files.SNAPSHOT)
        data = self.read(name)
        if data is None or not self.believes:
            return
        try:
            entries = snapshots.decode(data)
        except snapshots.SnapshotError:
            return  # reported by snapshot_files
        for entry in entries:
            known = self.producers.producers.get(entry.producer_id)
            if entry.last_offset >= offset:
                text = f"producer {entry.producer_id} is at offset {entry.last_offset}, behind the snapshot's"
                self.problem(name, text)
            elif known is not None and known.batches and entry.batches:
                self.compare_producer(name, entry, known)

    def compare_producer(self, name: str, entry: ProducerEntry, known: ProducerEntry) -> None:
        """A snapshot may have later batches than the log, since compaction may have removed them, but never earlier
        ones."""
        said, seen = entry.last_offset, known.last_offset
        same = entry.epoch == known.epoch and entry.last_sequence == known.last_sequence
        if said < seen or (said == seen and not same):
            text = (
                f"producer {entry.producer_id} is at epoch {entry.epoch}, sequence {entry.last_sequence}, "
                f"offset {said}, in the log at epoch {known.epoch}, sequence {known.last_sequence}, offset {seen}"
            )
            self.problem(name, text)

    def snapshot_files(self) -> None:
        report = self.report
        bases = {segment.base for segment in report.segments}
        end = report.log_end_offset
        if end not in bases:
            self.snapshot(end)
        for offset in snapshots.offsets(self.present):
            name = files.offset_name(offset, files.SNAPSHOT)
            try:
                snapshots.decode(self.read(name) or b"")
            except snapshots.SnapshotError as error:
                self.problem(name, f"{error}: no snapshot of producers")
            if offset > end and self.hints.clean and self.believes:
                self.problem(name, f"lies behind the log's end {end}")

    # -- offsets, epochs, the topic --------------------------------------------------------------------------

    def settle_offsets(self) -> None:
        report, hints = self.report, self.hints
        first = report.segments[0].base if report.segments else 0
        report.log_start_offset = max(hints.log_start_offset or 0, first)
        end = report.segments[-1].end_offset if report.segments else 0
        if not self.believes:
            return
        if hints.log_start_offset is not None and hints.log_start_offset > end:
            text = f"{report.name} is at {hints.log_start_offset}, and the log ends at {end}"
            self.problem(checkpoints.LOG_STARTS, text)
        for name, offset in (
            (checkpoints.RECOVERY_POINTS, hints.recovery_point),
            (checkpoints.HIGH_WATERMARKS, hints.high_watermark or 0),
        ):
            if offset > end:
                self.problem(name, f"{report.name} is at {offset}, and the log ends at {end}")

    def read_epochs(self) -> LeaderEpochs | None:
        """The entries of the leader epoch checkpoint; None if they have to be taken from the batches."""
        name = files.LEADER_EPOCHS
        try:
            history = LeaderEpochs(checkpoints.read_epochs(self.path))
        except (checkpoints.CheckpointError, ValueError) as error:
            self.problem(name, str(error).removeprefix(f"{self.path}/"))
            return None
        if history.entries or not self.has_epochs():
            return history
        if self.hints.clean:
            self.problem(name, "is missing or empty, and the batches have leader epochs")
        else:  # a power failure may lose it: it is synced together with the segments
            self.report.notes.append(
                f"{name} is missing or empty: the leader epochs are read from the batches"
            )
        return None

    def has_epochs(self) -> bool:
        """Whether the first batch has a leader epoch."""
        for base in self.bases:
            name = self.present[files.offset_name(base, files.LOG)]
            inspection = Inspection(f"{self.path}/{name}", base)
            inspection.turn(1)
            is_damaged = inspection.fault is not None
            if inspection.batches or is_damaged:
                return inspection.epoch >= 0 or is_damaged
        return False

    def compare_epochs(self, history: LeaderEpochs) -> None:
        name = files.LEADER_EPOCHS
        start = self.report.log_start_offset
        for epoch, offset in self.epochs.entries:
            if offset >= start and history.epoch_at(offset) != epoch:
                text = f"the batch at offset {offset} is of epoch {epoch}, not {history.epoch_at(offset)}"
                self.problem(name, text)
                break
        if history.entries and self.believes and self.hints.clean:
            epoch, offset = history.entries[-1]
            if offset > self.report.log_end_offset:
                self.problem(name, f"epoch {epoch} begins at {offset}, behind the log's end")

    def topic_id(self) -> None:
        name = files.PARTITION_METADATA
        topic_id = checkpoints.read_topic_id(self.path)
        expected = self.hints.topic_id
        if topic_id is None:
            if name in self.present:
                self.problem(name, "holds no topic id")
                self.report.start.append(f"write {name} with the topic id of the cluster's metadata")
            elif expected is not None:
                self.problem(name, "is missing")
                self.report.start.append(f"write {name} with the topic id of the cluster's metadata")
            else:
                self.report.notes.append(f"{name} is missing, as in the directories of brokers before 2.8")
        elif expected is not None and topic_id != expected:
            from pykafkad.uuids import to_text

            text = f"topic id {to_text(topic_id)}, and in the cluster's metadata it is {to_text(expected)}"
            self.problem(name, text)
            self.report.start.append("set the directory aside as stray")


def read_entries(path: str) -> tuple[int, bytes]:
    """An index file's size, and its bytes up to the zeroes that it was preallocated with."""
    parts: list[bytes] = []
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        while data := file.read(READ_BYTES):
            parts.append(data)
            if not data.strip(b"\0"):
                break
    return size, b"".join(parts)
