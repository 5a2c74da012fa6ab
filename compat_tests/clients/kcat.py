"""kcat behind the common interface: one process for each call.

It creates topics only by using them, sets no timestamps, and gives all records of one run the same headers. Keys and
values are lines of text here, and an empty value is sent as null.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from typing import IO

from .face import READ_TIMEOUT_S, Got, Sent, Start


class Kcat:
    sets_timestamps = False
    binary = False
    null_headers = False
    creates_partitions = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        command = ["kcat", "-b", self._bootstrap, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, timeout=2 * READ_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        assert partitions == 1, "kcat creates a topic by its first use, with the broker's num.partitions"
        deadline = time.monotonic() + READ_TIMEOUT_S
        self._run("-L", "-t", topic, "-X", "allow.auto.create.topics=true")
        while self.partition_count(topic) == 0:  # the answer that triggered it may come before it
            assert time.monotonic() < deadline, f"{topic} was not created"

    def partition_count(self, topic: str) -> int:
        (described,) = json.loads(self._run("-L", "-J", "-t", topic))["topics"]
        return len(described["partitions"])

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        for headers, group in itertools.groupby(records, key=lambda record: record.headers):
            header_arguments = [
                argument
                for name, value in headers
                for argument in ("-H", name if value is None else f"{name}={value.decode()}")
            ]
            self._run(
                *("-P", "-t", topic, "-p", "0", "-K", "\t", "-Z", "-z", codec),
                *("-X", f"enable.idempotence={str(idempotent).lower()}", "-X", "acks=all"),
                *header_arguments,
                stdin=b"".join((r.key or b"") + b"\t" + (r.value or b"") + b"\n" for r in group),
            )

    def reader(self, topic: str, start: Start) -> KcatReader:
        return KcatReader(self._bootstrap, topic, start)

    def close(self) -> None:
        pass


class KcatReader:
    """A running kcat. With `latest` it has reached the end, which it reports on stderr, when it is returned."""

    def __init__(self, bootstrap: str, topic: str, start: Start) -> None:
        offsets = {"earliest": "beginning", "latest": "end", "timestamp": f"s@{start.value}"}
        self._process = subprocess.Popen(
            [
                *("kcat", "-b", bootstrap, "-C", "-J", "-u", "-t", topic, "-p", "0"),
                *("-o", offsets.get(start.kind, str(start.value)), "-X", "fetch.wait.max.ms=100"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._positioned = threading.Event()
        self._watcher = threading.Thread(target=self._watch, args=(self._process.stderr,))
        self._watcher.start()
        if start.kind == "latest" and not self._positioned.wait(READ_TIMEOUT_S):
            self.close()
            raise AssertionError("kcat never said that it reached the end")

    def _watch(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            if b"Reached end of topic" in line:
                self._positioned.set()

    def read(self, count: int) -> list[Got]:
        killer = threading.Timer(READ_TIMEOUT_S, self._process.kill)
        killer.start()
        try:
            stdout = self._process.stdout
            assert stdout is not None
            lines = [line for line in (stdout.readline() for _ in range(count)) if line]
        finally:
            killer.cancel()
        return [self._got(json.loads(line)) for line in lines]

    def _got(self, record: dict[str, object]) -> Got:
        flat = [None if text is None else str(text) for text in record.get("headers", [])]  # type: ignore[attr-defined]
        pairs = zip(flat[::2], flat[1::2], strict=True)
        headers = tuple((str(name), None if value is None else value.encode()) for name, value in pairs)
        key, value = record["key"], record["payload"]
        return Got(
            int(str(record["offset"])),
            int(str(record["ts"])),
            str(key).encode() if key not in (None, "") else None,
            str(value).encode() if value is not None else None,
            headers,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._watcher.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
