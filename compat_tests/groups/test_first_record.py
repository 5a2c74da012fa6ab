"""The first record of a new group on a new broker, with the configuration that a plain start has.

Kafka's group.initial.rebalance.delay.ms would make each of these groups wait longer than the test allows, and so would a
client that is refused while `__consumer_offsets` is made: librdkafka asks again after 3 s.
"""

from __future__ import annotations

import os
import time

import pytest

from compat_tests.tools.toolbox import Toolbox
from pykafkad.testing import Broker

from .flavours import BY_NAME, FLAVOURS, Flavour
from .stage import LONG_SESSION_MS, Stage, until

DELAY_SECONDS = 3.0  # by default, in Kafka
HEARTBEAT_SECONDS = 4.0  # of the 5 that are Kafka's default
ATTEMPTS = 3  # a busy machine may hold one up

pytestmark = pytest.mark.skipif(
    "BOOTSTRAP" in os.environ or os.environ.get("BROKER", "pykafkad") != "pykafkad",
    reason="starts brokers of its own",
)


def seconds_to_first_record(flavour: Flavour, toolbox: Toolbox) -> float:
    with Broker() as broker:
        stage = Stage(broker.bootstrap_servers, toolbox)
        try:
            partitions = stage.new_topic(1)
            (value,) = stage.produce(partitions)[partitions[0]]
            (member,) = stage.members(flavour, partitions[0].topic, "", session_ms=LONG_SESSION_MS)
            begun = time.monotonic()
            member.join()
            until("the first record is read", lambda: member.values({value}), lambda: member)
            return time.monotonic() - begun
        finally:
            stage.close()


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_the_first_record_comes_before_kafkas_delay_would_be_over(flavour: Flavour, toolbox: Toolbox) -> None:
    took: list[float] = []
    while len(took) < ATTEMPTS and (not took or took[-1] >= DELAY_SECONDS):
        took.append(seconds_to_first_record(flavour, toolbox))
    print(f"{flavour.name}: {min(took):.3f} s")
    assert min(took) < DELAY_SECONDS, took


def seconds_to_a_second_members_partition(flavour: Flavour, toolbox: Toolbox) -> float:
    with Broker() as broker:
        stage = Stage(broker.bootstrap_servers, toolbox)
        try:
            partitions = stage.new_topic(2)
            first, second = stage.members(flavour, partitions[0].topic, "", "", session_ms=LONG_SESSION_MS)
            first.join()
            stage.settled([first], partitions)
            begun = time.monotonic()
            second.join()
            until("the second member has a partition", lambda: second.owned, lambda: (first, second))
            return time.monotonic() - begun
        finally:
            stage.close()


def test_a_partition_changes_hands_before_kafkas_heartbeat_would_come(toolbox: Toolbox) -> None:
    """Of a KIP-848 group, where the broker says how often members ask."""
    flavour = BY_NAME["confluent-kafka-consumer"]
    took: list[float] = []
    while len(took) < ATTEMPTS and (not took or took[-1] >= HEARTBEAT_SECONDS):
        took.append(seconds_to_a_second_members_partition(flavour, toolbox))
    assert min(took) < HEARTBEAT_SECONDS, took
