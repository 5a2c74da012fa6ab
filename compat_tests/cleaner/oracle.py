"""Kafka's own cleaner as a process: Oracle.java, which takes commands and answers line by line.

Owns the process. Directories that are to be cleaned are on a file system where a sync costs nothing, if there is one.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from compat_tests import needs, reference

SOURCE = Path(__file__).with_name("Oracle.java")
MEMORY = Path("/dev/shm")
STOP_SECONDS = 10


class Oracle:
    def __enter__(self) -> Oracle:
        needs.program("java")
        libraries = reference.jars_home() / "libs"
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", "-Xmx512M", "-XX:+UseSerialGC", quiet, "-cp", f"{libraries}/*", str(SOURCE)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def clean(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "Kafka's cleaner ended"
        answer: dict[str, Any] = json.loads(line)
        return answer
