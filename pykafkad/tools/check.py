"""`pykafkad check DIR…`: is a data directory whole, and what would a start do with it?

Reads every byte of the log directories of a stopped broker, ours or Apache Kafka's, and writes none: checksums, offsets
and sizes of all batches, indexes against their logs, leader epochs, producers' snapshots, checkpoints, the metadata
log. Exit code: 0 nothing is wrong, 1 something is, 2 a wrong command line. Owns the command line, the threads (the
reading is done without Python's lock) and the messages; the checks are in check_directory and check_partition.
"""

from __future__ import annotations

import os

from pykafkad.cluster.topic_names import INTERNAL
from pykafkad.storage.files import TopicPartition
from pykafkad.tools import check_directory, check_partition, output
from pykafkad.tools.check_report import Hints, Problem, Report
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.tools.check_directory import Directory

CLEAN, PROBLEMS, USAGE = 0, 1, 2
USAGE_TEXT = """\
usage: pykafkad check DIR... [--topic TOPIC]... [--json] [--threads COUNT]

Looks whether the log directories of one stopped broker are whole, and says what a start would do with them.
Nothing is written. Exit code: 0 nothing is wrong, 1 something is, 2 a wrong command line.

  --topic TOPIC    only the partitions of this topic; may be given again
  --json           the findings as one JSON object
  --threads COUNT  how many partitions are read at a time; as many as there are processors by default
"""
JSON_EXAMPLE = """\
{"cluster_id": "gBCFj69LRBia3RVeE5ms7g", "node_id": "1",
 "directories": [{"directory": "/data", "clean": true, "problems": [], "notes": [], "start": []}],
 "partitions": [{"partition": "orders-0", "path": "/data/orders-0", "segments": 1, "bytes": 71, "batches": 1,
  "records": 1, "log_start_offset": 0, "log_end_offset": 1,
  "problems": [{"file": "00000000000000000000.log", "what": "the checksum is wrong", "position": 0,
    "offsets": [0, 0]}],
  "notes": ["what is no problem"], "start": ["what a start would do"],
  "log_start_offset_after_start": 0, "log_end_offset_after_start": 0}],
 "problems": 1}
"""
JSON_NOTE = "position and offsets of a problem are null where it has none; the last problems is their number."


class Options:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.topics: set[str] = set()
        self.json = False
        self.threads = os.cpu_count() or 1


def main(arguments: Sequence[str]) -> int:
    if {"--help", "-h"} & set(arguments):
        output.text(USAGE_TEXT)
        return CLEAN
    try:
        options = read_options(arguments)
    except ValueError as problem:
        return refused(str(problem), "--json" in arguments)
    check = Check(options)
    if strange := check.strangers():
        text = f"{strange[0]} is no Kafka data directory: there is nothing of Kafka's in it"
        return refused(text, options.json)
    check.run()
    if options.json:
        output.json_document(check.fields())
    else:
        check.tell()
    return PROBLEMS if check.problems else CLEAN


def refused(text: str, as_json: bool) -> int:
    output.error(f"pykafkad check: {text}")
    if as_json:
        output.json_document({"error": {"name": "USAGE", "message": text}})
    return USAGE


def read_options(arguments: Sequence[str]) -> Options:
    """Read the command line; ValueError says what is wrong with it."""
    options = Options()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--json":
            options.json = True
        elif name in ("--topic", "--threads"):
            if not equals:
                if not rest:
                    raise ValueError(f"{name} needs a value")
                value = rest.pop(0)
            if name == "--topic":
                options.topics.add(value)
            elif value.isascii() and value.isdigit() and 0 < int(value) <= 1024:
                options.threads = int(value)
            else:
                raise ValueError(f"--threads {value}: a number from 1 to 1024 is allowed")
        elif argument.startswith("-"):
            question = nearest(argument, ("--topic", "--threads", "--json"))
            raise ValueError(f"unknown option {argument}; see pykafkad check --help{question}")
        elif not os.path.isdir(argument):
            raise ValueError(f"{argument} is no directory")
        else:
            options.paths.append(argument)
    if not options.paths:
        raise ValueError("which directory? see pykafkad check --help")
    return options


class Check:
    """All directories of a broker, and what was found in them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.directories: list[Directory] = [check_directory.inspect(path) for path in options.paths]
        self.reports: list[Report] = []
        self._compacted: set[str] = set()  # topics that exist according to the metadata

    @property
    def problems(self) -> list[Problem]:
        found = [problem for directory in self.directories for problem in directory.problems]
        return found + [problem for report in self.reports for problem in report.problems]

    def strangers(self) -> list[str]:
        return [each.path for each in self.directories if not each.is_kafkas]

    def run(self) -> None:
        self._identities()
        known = self._known()
        jobs = []
        found: dict[TopicPartition, Directory] = {}
        for directory in self.directories:
            for key, path in sorted(directory.partitions.items()):
                self._place(directory, key, known, found)
                if not self.options.topics or key[0] in self.options.topics:
                    hints = directory.hints(key)
                    hints.topic_id = known.get(key) if known is not None else None
                    hints.compacted |= key[0] in INTERNAL or key[0] in self._compacted
                    jobs.append((f"{key[0]}-{key[1]}", path, hints))
        if known is not None:
            self._missing(sorted(known.keys() - found.keys()))
        self.reports = self._inspect_all(jobs)

    def _identities(self) -> None:
        """Whether all directories are of one broker of one cluster, and no two are the same."""
        first = self.directories[0]
        for key in ("cluster.id", "node.id", "broker.id"):
            for other in self.directories[1:]:
                mine, theirs = first.identity.get(key), other.identity.get(key)
                if first.identity and other.identity and mine != theirs:
                    other.problem("meta.properties", f"{key} is {theirs}, in {first.path} it is {mine}")
        ids = [each.identity["directory.id"] for each in self.directories if "directory.id" in each.identity]
        if len(set(ids)) != len(ids):
            first.problem("meta.properties", "another directory has the same directory.id")

    def _known(self) -> dict[TopicPartition, bytes] | None:
        """The partitions that should be here according to the metadata log, by topic id; None if there is no metadata
        log, or it cannot be read."""
        holders = [directory for directory in self.directories if directory.metadata is not None]
        if not holders:
            return None
        image = check_directory.read_metadata(holders[0])
        if image is None:
            return None
        self._compacted = {
            name
            for name, topic in image.topics.items()
            if "compact" in topic.configs.get("cleanup.policy", "")
        }
        node = holders[0].identity.get("node.id", "")
        return {
            (name, index): topic.id
            for name, topic in image.topics.items()
            for index, partition in enumerate(topic.partitions)
            if not node.isdecimal() or int(node) in partition.replicas
        }

    def _place(
        self,
        directory: Directory,
        key: TopicPartition,
        known: dict[TopicPartition, bytes] | None,
        found: dict[TopicPartition, Directory],
    ) -> None:
        name = f"{key[0]}-{key[1]}"
        if key in found:
            directory.problem(name, f"the partition lies in {found[key].path} as well")
        found[key] = directory
        if known is not None and key not in known:
            if directory.clean:  # a crash may have come between the record of the deletion and the deletion
                directory.problem(name, "the metadata knows no such partition here")
            directory.start.append(f"set {name} aside as stray")

    def _missing(self, keys: list[TopicPartition]) -> None:
        """Partitions of the metadata that are in none of the directories. After a clean stop they are lost; a crash may
        have come before they were created."""
        first = self.directories[0]
        for topic, index in keys:
            if all(directory.clean for directory in self.directories):
                text = f"the partition {topic}-{index} of the metadata is in none of the directories"
                first.problem(check_directory.METADATA_DIRECTORY, text)
            first.start.append(f"create {topic}-{index}, which the metadata names")

    def _inspect_all(self, jobs: list[tuple[str, str, Hints]]) -> list[Report]:
        progress = output.Progress()
        reports = []
        if self.options.threads == 1 or len(jobs) < 2:
            for number, job in enumerate(jobs):
                if progress.due:
                    progress.show(f"{number} of {len(jobs)} partitions")
                reports.append(inspect(*job))
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(self.options.threads) as pool:
                for number, report in enumerate(pool.map(lambda job: inspect(*job), jobs)):
                    if progress.due:
                        progress.show(f"{number} of {len(jobs)} partitions")
                    reports.append(report)
        progress.clear()
        return reports

    # -- messages --------------------------------------------------------------------------------------------

    def fields(self) -> dict[str, Any]:
        first = self.directories[0].identity
        return {
            "cluster_id": first.get("cluster.id"),
            "node_id": first.get("node.id", first.get("broker.id")),
            "directories": [directory.fields() for directory in self.directories],
            "partitions": [report.fields() for report in self.reports],
            "problems": len(self.problems),
        }

    def tell(self) -> None:
        for directory in self.directories:
            output.line(
                f"{directory.path}: {'stopped cleanly' if directory.clean else 'no clean-shutdown marker'}"
            )
            say(directory.problems, directory.notes, directory.start)
        for report in self.reports:
            segments = f"{len(report.segments)} segment(s)"
            offsets = f"offsets {report.log_start_offset} to {report.log_end_offset}"
            output.line(
                f"{report.name}: {segments}, {report.size} bytes, {report.batches} batches, {offsets}"
            )
            say(report.problems, report.notes, report.start)
        size = sum(report.size for report in self.reports)
        count = len(self.problems)
        found = "nothing is wrong" if not count else f"{count} problem(s)"
        output.line(f"{len(self.reports)} partition(s), {size} bytes: {found}")


def say(problems: list[Problem], notes: list[str], start: list[str]) -> None:
    for problem in problems:
        output.line(f"  problem: {problem}")
    for note in notes:
        output.line(f"  note: {note}")
    for step in start:
        output.line(f"  a start would {step}")


def inspect(name: str, path: str, hints: Hints) -> Report:
    """Check one partition; if it cannot be read, that is a finding as well."""
    try:
        return check_partition.inspect(name, path, hints)
    except OSError as error:
        report = Report(name, path)
        report.problems.append(
            Problem(os.path.basename(str(error.filename or path)), f"cannot be read: {error.strerror}")
        )
        return report
