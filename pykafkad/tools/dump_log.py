"""`pykafkad dump-log`: what kafka-dump-log does: logs and checkpoints, indexes, snapshots, as text.

Owns the options, the choice by the file's name and the loop over the batches of a log. How batches are read and shown
is in dump_batches, indexes and snapshots are in dump_indexes, the contents of records in dump_decoders.
"""

from __future__ import annotations

import os

from pykafkad.hot import records
from pykafkad.net.client import ClientError
from pykafkad.tools import dump_decoders, dump_indexes, output
from pykafkad.tools.dump_batches import INTEGER_MAX, LogFile, batch_line, header_of, record_text
from pykafkad.tools.options import INTEGER, Option, Options, flag, optional, run, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.hot.records import Batch, Record
    from pykafkad.tools.dump_decoders import Decoder

ABOUT = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment."
)
STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"

OPTIONS: tuple[Option, ...] = (
    flag("print-data-log", "Show keys and values; any decoder option includes it."),
    flag("verify-index-only", "Check indexes against their log and show only what does not fit."),
    flag("index-sanity-check", "Check indexes as a broker does when it starts."),
    value("files", "file1, file2, ...", "REQUIRED: the files, with commas."),
    value(
        "max-message-size",
        "size",
        "How large a batch may be, in checks of offset indexes.",
        kind=INTEGER,
        default="5242880",
    ),
    value("max-bytes", "size", "How much of a log to read.", kind=INTEGER, default=str(INTEGER_MAX)),
    flag("deep-iteration", "Show each record, not only batches; --print-data-log includes it."),
    optional(
        "value-decoder-class",
        "",
        "How values are read: " + dump_decoders.CLASSES_SHOWN,
        default=STRING_DECODER,
    ),
    optional("key-decoder-class", "", "How keys are read, likewise.", default=STRING_DECODER),
    flag("offsets-decoder", "The records are those of __consumer_offsets."),
    flag("transaction-log-decoder", "The records are those of __transaction_state."),
    flag("cluster-metadata-decoder", "The records are those of the cluster's metadata."),
    flag("remote-log-metadata-decoder", "The records are those of __remote_log_metadata."),
    flag("share-group-state-decoder", "The records are those of __share_group_state."),
    flag("skip-record-metadata", "Records without their offsets and sizes, and none of the control records."),
)
CONTENT_OPTIONS = (
    "print-data-log",
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "value-decoder-class",
    "key-decoder-class",
    "share-group-state-decoder",
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    options.require("files")
    dump = Dump(options)
    try:
        for path in options.text("files").split(","):
            dump.file(path)
    except OSError as problem:
        raise ClientError(f"{problem.filename}: {problem.strerror}") from problem
    dump.faults.report()
    return 0


class Dump:
    """What the options ask for, and the mismatches found so far."""

    def __init__(self, options: Options) -> None:
        self._shows_contents = options.has_any(CONTENT_OPTIONS)
        self._is_deep = self._shows_contents or options.has("deep-iteration")
        self._options = options
        self._decoder: Decoder | None = None  # chosen, as sizes are read, with the first log
        self._skips_metadata = options.has("skip-record-metadata")
        self._only_sanity = options.has("index-sanity-check")
        self._only_verify = options.has("verify-index-only")
        self.faults = dump_indexes.Faults()

    def file(self, path: str) -> None:
        if os.path.isdir(path):
            raise ClientError(f"{path} is a directory: --files takes the files in it, with commas")
        output.line(f"Dumping {path}")
        suffix = os.path.splitext(os.path.basename(path))[1]
        if suffix in (".log", ".checkpoint"):
            self._log(path)
        elif suffix == ".index":
            max_bytes = self._options.integer("max-message-size")
            dump_indexes.offset_index(path, self.faults, self._only_sanity, self._only_verify, max_bytes)
        elif suffix == ".timeindex":
            dump_indexes.time_index(path, self.faults, self._only_sanity, self._only_verify)
        elif suffix == ".snapshot":
            dump_indexes.producer_snapshot(path)
        elif suffix == ".txnindex":
            dump_indexes.transaction_index(path)
        else:
            output.error(f"Ignoring unknown file {path}")

    def _log(self, path: str) -> None:
        self._decoder = self._decoder or dump_decoders.choose(self._options)
        max_bytes = self._options.integer("max-bytes")
        output.line(title_of(path))
        with LogFile(path, max_bytes) as log:
            position, last_offset = 0, -1
            for data in log.batches():
                batch = header_of(data)
                output.line(batch_line(batch, data, position))
                if self._is_deep:
                    last_offset = self._records(path, batch, data, last_offset)
                position += len(data)
            left = log.size - position
        if left > 0 and max_bytes == INTEGER_MAX:
            output.line(f"Found {left} invalid bytes at the end of {os.path.basename(path)}")

    def _records(self, path: str, batch: Batch, data: bytes, last_offset: int) -> int:
        for record in records.batch_records(data):
            if record.offset != last_offset + 1:
                self.faults.gap(path, last_offset, record.offset)
            last_offset = record.offset
            if not self._skips_metadata:
                output.text(record_text(batch, record, data))
            if self._shows_contents and not batch.is_control:
                output.text(self._contents(record))
            output.line()
        return last_offset

    def _contents(self, record: Record) -> str:
        assert self._decoder is not None
        key, payload = self._decoder(record)
        prefix = "| " if self._skips_metadata else " "
        shown = ""
        if key is not None:
            shown, prefix = f"{prefix}key: {key}", " "
        if payload is not None:
            shown += f"{prefix}payload: {payload}"
        return shown


def title_of(path: str) -> str:
    """The first line of a log's dump, which its file name determines."""
    name = os.path.basename(path)
    if name.endswith(".log"):
        return f"Log starting offset: {dump_indexes.base_offset_of(path)}"
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    offset, dash, epoch = name.removesuffix(".checkpoint").partition("-")
    if not (dash and offset.isdecimal() and epoch.isdecimal()):
        raise ClientError(f"{path}: a snapshot is called OFFSET-EPOCH.checkpoint")
    return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"
