"""ZooKeeper for a cluster on one machine: one server, out of the jars of its release.

Owns where the jars are found: in the directory that ZOOKEEPER_LIBS names, or in the user's cache, into which Maven
brings them by their names the first time. It is the release that Kafka 3.9.2 comes with. It listens at the loopback
alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

from pykafkad.local_cluster.process import ClusterError, Process

VERSION = "3.8.4"
LIBS = "ZOOKEEPER_LIBS"
HOST = "127.0.0.1"
TICK_MS = 2000  # a session may be as short as two ticks and as long as twenty
MAVEN_S = 600
ANSWERS_S = 30.0
POLL_S = 0.02
# It is small, and starts twice as fast without the compiler that pays after minutes.
JAVA = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>[%d] %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="info"><appender-ref ref="out"/></root>
</configuration>
"""
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pykafkad</groupId><artifactId>zookeeper</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>{version}</version>
    </dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
  </dependencies>
</project>
"""


def jars() -> str:
    """The directory with the jars; ClusterError says what is missing."""
    if shutil.which("java") is None:
        raise ClusterError(
            "ZooKeeper needs Java, and there is no java on the PATH: install one (17, for example), or name a ZooKeeper"
            " that runs already with --zookeeper HOST:PORT"
        )
    named = os.environ.get(LIBS)
    if named:
        if not any(name.startswith("zookeeper-") for name in _listed(named)):
            raise ClusterError(f"{LIBS}={named}: there is no zookeeper-*.jar")
        return named
    cached = os.path.join(_cache(), f"zookeeper-{VERSION}")
    if not os.path.isdir(cached):
        _fetch(cached)
    return cached


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _cache() -> str:
    home = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "pykafkad")


def _fetch(target: str) -> None:
    """By Maven, beside the target, and renamed when all of it is there."""
    if shutil.which("mvn") is None:
        raise ClusterError(
            f"ZooKeeper's jars are not there yet, and there is no mvn on the PATH to fetch"
            f" org.apache.zookeeper:zookeeper:{VERSION}: install Maven, name a directory that has them with {LIBS},"
            " or a ZooKeeper that runs already with --zookeeper HOST:PORT"
        )
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target), prefix="zookeeper-") as work:
        pom, libs = os.path.join(work, "pom.xml"), os.path.join(work, "libs")
        with open(pom, "w", encoding="ascii") as file:
            file.write(POM.format(version=VERSION))
        command = ["mvn", "-q", "-B", "-f", pom, PLUGIN, f"-DoutputDirectory={libs}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_S, check=False)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"Maven did not bring ZooKeeper's jars in {MAVEN_S} s") from None
        if done.returncode:
            raise ClusterError(f"Maven brought no jars of ZooKeeper:\n{(done.stdout + done.stderr)[-2000:]}")
        with contextlib.suppress(OSError):  # somebody else was faster
            os.rename(libs, target)


class ZooKeeper:
    """The server whose files are in this directory."""

    def __init__(self, directory: str, port: int) -> None:
        self.directory = directory
        self.port = port
        self.process = Process("ZooKeeper", os.path.join(directory, "pid"))

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self, libs: str) -> None:
        """Without waiting: its clients try again until it answers."""
        os.makedirs(self.directory, exist_ok=True)
        config = self._write("zoo.cfg", self._config())
        logback = self._write("logback.xml", LOGBACK)
        command = ["java", *JAVA, "-cp", f"{libs}/*", f"-Dlogback.configurationFile={logback}"]
        command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", config]
        self.process.start(command, os.path.join(self.directory, "zookeeper.log"), os.environ)

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _config(self) -> str:
        lines = {
            "tickTime": TICK_MS,
            "dataDir": os.path.join(self.directory, "data"),
            "clientPortAddress": HOST,
            "clientPort": self.port,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,srvr",
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def wait(self) -> None:
        """Until it answers; ClusterError: it has ended, or does not."""
        deadline = time.monotonic() + ANSWERS_S
        while not answers(HOST, self.port):
            if not self.process.is_running:
                raise ClusterError(f"ZooKeeper ended at its start; see {self.directory}/zookeeper.log")
            if time.monotonic() > deadline:
                raise ClusterError(f"ZooKeeper does not answer; see {self.directory}/zookeeper.log")
            time.sleep(POLL_S)


def answers(host: str, port: int) -> bool:
    """Whether a ZooKeeper serves there."""
    try:
        with socket.create_connection((host, port), 1) as connection:
            connection.settimeout(5)
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(4096)
    except OSError:
        return False
