"""The disk of one broker is full: its log directory fails, it ends, others lead, and it comes back when there is room."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.cluster.brokers import Kinds, MixedCluster, chosen
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all
from pykafkad.local_cluster.cluster import Launch
from pykafkad.local_cluster.home import BrokerHome
from pykafkad.testing.errors import BrokerError

TOPIC, FILLER, PARTITIONS = "written", "filler", 3
FILE_BYTES = 1 << 20
TMPFS_BYTES = 4 << 20
PIECE = "x" * 100_000
PIECES_MAX = 300


class SmallDisk(Kinds):
    """The data of broker 0 are in a file system of so many bytes, which goes with its process."""

    size: int | None = TMPFS_BYTES

    def launch(self, broker: BrokerHome) -> Launch:
        found = super().launch(broker)
        if broker.id != 0 or self.size is None:
            return found
        mount = f'mkdir -p "$0" && mount -t tmpfs -o size={self.size} none "$0" && exec "$@"'
        return Launch(
            ["unshare", "--mount", "sh", "-c", mount, broker.data, *found.command], found.environment
        )


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    return not subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode


def test_a_broker_whose_files_may_not_grow_any_more() -> None:
    with MixedCluster() as cluster:

        def limit() -> None:
            pid = cluster.home.broker(0).process.pid
            assert pid is not None
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, resource.RLIM_INFINITY))

        nothing_is_lost(cluster, limit, lambda: None)


@pytest.mark.long
def test_a_broker_whose_disk_is_full_and_replaced() -> None:
    if not may_mount():
        pytest.skip("no file system may be mounted here")
    disk = SmallDisk([chosen()] * 3)
    with MixedCluster(disk) as cluster:

        def replace() -> None:
            disk.size = None

        nothing_is_lost(cluster, lambda: None, replace)


def nothing_is_lost(cluster: MixedCluster, begin: Callable[[], None], make_room: Callable[[], None]) -> None:
    for topic in (TOPIC, FILLER):
        cluster.create_topic(topic, PARTITIONS)
    cluster.until_in_sync()
    with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
        writer.goes_on()
        begin()
        fill(cluster)
        writer.goes_on()
        cluster.until_led()
        make_room()
        cluster.start(0)
        cluster.until_in_sync()
        writer.goes_on()
    assert "log directories have failed" in cluster.log_text(0)
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    for id in (1, 2):  # what was made good is all there is
        cluster.stop(id)
    check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


def fill(cluster: MixedCluster) -> None:
    """Until broker 0 has ended."""
    for _ in range(PIECES_MAX):
        if not runs(cluster.status()):
            return
        try:
            cluster.produce(FILLER, *[PIECE] * PARTITIONS, timeout=30)
        except BrokerError:  # it went to the broker that has just ended
            continue
    cluster.until("broker 0 ends", lambda status: not runs(status))


def runs(status: dict[str, Any]) -> bool:
    return any(row["id"] == 0 and row["state"] == "running" for row in status["brokers"])
