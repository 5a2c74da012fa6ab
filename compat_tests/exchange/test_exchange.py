"""Hand-overs between pykafkad and Apache Kafka 4.3.1 on one directory, with writes in each turn.

EXCHANGE_ROUNDS=10 makes as many rounds (each a turn of both); by default two. Every turn begins by comparing everything
that is served with everything that the program before has written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from compat_tests.exchange.home import KAFKA, PYKAFKAD, Home
from compat_tests.exchange.world import World
from compat_tests.reference import SCRIPT
from pykafkad.cluster.features import NOT_SERVED
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_reading import read_directory
from pykafkad.messages import ApiVersionsRequest, DescribeQuorumRequest

DUMP_SECONDS = 120
ROUNDS = int(os.environ.get("EXCHANGE_ROUNDS", "2"))


def decoded(home: Home) -> None:
    """Stock dump-log reads every log and snapshot of either program without errors; ours prints the same."""
    files = [
        *home.data.glob("*-*/*.log"),
        *home.metadata.glob("*.checkpoint"),
        home.data / "bootstrap.checkpoint",
    ]
    metadata = [str(path) for path in files if path.parent == home.metadata or path.parent == home.data]
    others = [str(path) for path in files if str(path) not in metadata]
    for option, paths in (("--cluster-metadata-decoder", metadata), ("--deep-iteration", others)):
        arguments = [str(SCRIPT), "dump-log", option, "--files", ",".join(paths)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=DUMP_SECONDS, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-3000:]
        for wrong in ("isvalid: false", "invalid bytes", "Could not", "Exception", "mismatch"):
            assert wrong not in said, [line for line in said.splitlines() if wrong in line][:5]
        assert said.count("Dumping") == len(paths)
        command = [sys.executable, "-m", "pykafkad", *arguments[1:]]
        ours = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_SECONDS, check=False)
        assert ours.stdout == done.stdout


def turn(world: World, side: str, *, kill: bool = False) -> None:
    world.home.run(side)
    world.check()
    world.act()
    world.check()
    world.home.end(kill=kill)
    if not kill:
        clean_marker_fits(world.home)


def clean_marker_fits(home: Home) -> None:
    """In every directory it has the broker epoch of the last registration: with another one Kafka takes the logs for
    unclean."""
    image = Image()
    read_directory(str(home.metadata), image)
    for directory in home.directories:
        marker = json.loads((directory / ".kafka_cleanshutdown").read_text())
        assert marker == {"version": 0, "brokerEpoch": image.brokers[1].epoch}


def test_rounds(home: Home) -> None:
    world = World(home)
    for number in range(ROUNDS):
        turn(world, PYKAFKAD, kill=number % 3 == 1)
        turn(world, KAFKA, kill=number % 3 == 2)
    home.run(PYKAFKAD)
    world.check()
    home.end()
    decoded(home)


def quorum_shown(home: Home) -> tuple[dict[str, int], list[tuple[int, bytes]]]:
    """The finalized features that both serve, and the voters."""
    answer = home.client.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    kind = DescribeQuorumRequest
    topic = kind.TopicData(
        topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)]
    )
    quorum = home.client.ask(kind(topics=[topic]), 2).topics[0].partitions[0]
    return (
        {row.name: row.max_version_level for row in answer.finalized_features if row.name not in NOT_SERVED},
        [(voter.replica_id, voter.replica_directory_id) for voter in quorum.current_voters],
    )


def test_a_directory_of_kafkas_with_voters_in_its_log(home: Home) -> None:
    """A dynamic quorum (KIP-853) with two log directories: it comes from Kafka, and goes back to it."""
    home.make_dynamic()
    home.format()
    world = World(home)
    home.run(KAFKA)
    theirs = quorum_shown(home)
    home.end()
    turn(world, PYKAFKAD)
    home.run(PYKAFKAD)
    assert quorum_shown(home) == theirs
    home.end()
    turn(world, KAFKA)
    assert '"data_version":1' in (home.metadata / "quorum-state").read_text()


def test_a_directory_of_ours_with_voters_in_its_log(home: Home) -> None:
    """Properties that name no voters mean a dynamic quorum; if the log has no voters either, Kafka would wait for
    ever."""
    home.make_dynamic()
    home.pykafkad_config.update(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{home.port},CONTROLLER://127.0.0.1:{home.port + 1}",
            "controller.listener.names": "CONTROLLER",
            "process.roles": "broker,controller",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{home.port + 1}",
        }
    )
    world = World(home)
    turn(world, PYKAFKAD)
    turn(world, KAFKA)
    home.run(PYKAFKAD)
    world.check()
    home.end()
