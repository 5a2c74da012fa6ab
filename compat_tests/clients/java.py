"""The Java client behind the common interface: one JVM for the session, which runs Driver.java."""

from __future__ import annotations

import base64
import itertools
import subprocess
from pathlib import Path

from .face import READ_TIMEOUT_S, Got, Sent, Start

JAVA = Path(__file__).parent.parent / "java"
DRIVER = JAVA / "src/main/java/pykafkad/Driver.java"


class JavaClient:
    sets_timestamps = True
    binary = True
    null_headers = True
    creates_partitions = True

    def __init__(self, bootstrap: str, jars: Path) -> None:
        self._ids = itertools.count()
        self._process = subprocess.Popen(
            [
                *("java", "-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
                *("-cp", f"{jars}/*", str(DRIVER), bootstrap),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *commands: str) -> list[list[str]]:
        """Send the commands, each of which is answered; returns the words of all answers except the OKs."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        answers: list[list[str]] = []
        for command in commands:
            stdin.write(command + "\n")
            stdin.flush()
            while (line := stdout.readline()) != "OK\n":
                assert line, "the Java client ended"
                assert not line.startswith("ERR"), line
                answers.append(line.split())
        return answers

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        self.ask(f"create {topic} {partitions}")

    def partition_count(self, topic: str) -> int:
        ((_, count),) = self.ask(f"count {topic}")
        return int(count)

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        for record in records:
            timestamp = "-" if record.timestamp_ms is None else record.timestamp_ms
            headers = [word(part) for name, value in record.headers for part in (name.encode(), value)]
            self.ask(
                " ".join(["send", topic, word(record.key), word(record.value), str(timestamp), *headers])
            )
        self.ask(f"flush {codec} {str(idempotent).lower()}")

    def reader(self, topic: str, start: Start) -> JavaReader:
        reader = JavaReader(self, next(self._ids))
        self.ask(f"open {reader.id} {topic} {start.kind} {start.value}")
        return reader

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(READ_TIMEOUT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


class JavaReader:
    def __init__(self, client: JavaClient, reader_id: int) -> None:
        self._client = client
        self.id = reader_id

    def read(self, count: int) -> list[Got]:
        return [
            parse(words) for words in self._client.ask(f"read {self.id} {count} {int(READ_TIMEOUT_S * 1000)}")
        ]

    def close(self) -> None:
        self._client.ask(f"close {self.id}")


def word(data: bytes | None) -> str:
    return "-" if data is None else "=" + base64.b64encode(data).decode()


def unword(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text[1:])


def parse(words: list[str]) -> Got:
    _, offset, timestamp, key, value, *flat = words
    names = [(unword(name) or b"").decode() for name in flat[::2]]
    headers = tuple(zip(names, map(unword, flat[1::2]), strict=True))
    return Got(int(offset), int(timestamp), unword(key), unword(value), headers)
