"""Stock tools by the names that `compat_tests/reference/kafka help` lists, run in one JVM.

Owns: the process that runs Toolbox.java, and which answer belongs to which command.
"""

from __future__ import annotations

import base64
import itertools
import os
import subprocess
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from compat_tests import needs, reference

SOURCE = Path(__file__).with_name("Toolbox.java")
SECONDS = 60
ANSWER_SECONDS = 30  # after the tool's own timeout
STOP_SECONDS = 10

_TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "acls": _TOOLS + "AclCommand",
    "broker-api-versions": _TOOLS + "BrokerApiVersionsCommand",
    "client-metrics": _TOOLS + "ClientMetricsCommand",
    "cluster": _TOOLS + "ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": _TOOLS + "consumer.ConsoleConsumer",
    "console-producer": _TOOLS + "ConsoleProducer",
    "consumer-groups": _TOOLS + "consumer.group.ConsumerGroupCommand",
    "consumer-perf": _TOOLS + "ConsumerPerformance",
    "delete-records": _TOOLS + "DeleteRecordsCommand",
    "dump-log": _TOOLS + "DumpLogSegments",
    "e2e-latency": _TOOLS + "EndToEndLatency",
    "features": _TOOLS + "FeatureCommand",
    "get-offsets": _TOOLS + "GetOffsetShell",
    "groups": _TOOLS + "GroupsCommand",
    "leader-election": _TOOLS + "LeaderElectionCommand",
    "log-dirs": _TOOLS + "LogDirsCommand",
    "metadata-quorum": _TOOLS + "MetadataQuorumCommand",
    "producer-perf": _TOOLS + "ProducerPerformance",
    "reassign": _TOOLS + "reassign.ReassignPartitionsCommand",
    "replica-verification": _TOOLS + "ReplicaVerificationTool",
    "streams-reset": _TOOLS + "StreamsResetter",
    "topics": _TOOLS + "TopicCommand",
    "transactions": _TOOLS + "TransactionsCommand",
    "verifiable-consumer": _TOOLS + "VerifiableConsumer",
    "verifiable-producer": _TOOLS + "VerifiableProducer",
}
# These register shutdown hooks with the JVM itself, and print half of their output in them.
IN_A_JVM_OF_ITS_OWN = frozenset({"verifiable-producer"})


class Printed(NamedTuple):
    """The output of one run; `code` is None if it did not end in time."""

    code: int | None
    out: str
    err: str


def encoded(data: bytes) -> str:
    return "=" + base64.b64encode(data).decode()


def decoded(word: str) -> str:
    return base64.b64decode(word[1:]).decode(errors="replace")


def run_alone(tool: str, arguments: tuple[str, ...], stdin: str, seconds: int) -> Printed:
    command = [str(reference.SCRIPT), tool, *arguments]
    quiet = {**os.environ, "KAFKA_LOG_LEVEL": "off"}
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False, env=quiet
        )
    except subprocess.TimeoutExpired as late:
        return Printed(None, *(bytes(part or b"").decode() for part in (late.stdout, late.stderr)))
    return Printed(done.returncode, done.stdout, done.stderr)


class Toolbox:
    """`start()` returns the future of a run; `run()` waits for it."""

    def __init__(self) -> None:
        needs.program("java")
        jars = subprocess.run(
            [str(reference.SCRIPT), "install"], check=True, capture_output=True, text=True
        ).stdout.strip()
        self._process = subprocess.Popen(
            [
                *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
                *("-cp", ":".join(map(str, sorted(Path(jars, "libs").glob("*.jar")))), str(SOURCE)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._alone = ThreadPoolExecutor()
        self._numbers = itertools.count()
        self._under_way: dict[int, Future[Printed]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, tool: str, *arguments: str, stdin: str = "", seconds: int = SECONDS) -> Future[Printed]:
        if tool in IN_A_JVM_OF_ITS_OWN:
            return self._alone.submit(run_alone, tool, arguments, stdin, seconds)
        assert self._process.stdin is not None
        words = [encoded(word.encode()) for word in (stdin, *arguments)]
        future: Future[Printed] = Future()
        with self._lock:
            number = next(self._numbers)
            self._under_way[number] = future
            self._process.stdin.write(" ".join([str(number), str(seconds), CLASSES[tool], *words]) + "\n")
            self._process.stdin.flush()
        return future

    def run(self, tool: str, *arguments: str, stdin: str = "", seconds: int = SECONDS) -> Printed:
        return self.start(tool, *arguments, stdin=stdin, seconds=seconds).result(seconds + ANSWER_SECONDS)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._alone.shutdown()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, code, out, err = line.split()
            printed = Printed(None if code == "late" else int(code), decoded(out), decoded(err))
            self._under_way.pop(int(number)).set_result(printed)
        for future in self._under_way.values():
            future.set_exception(RuntimeError("the tools' JVM ended"))
