"""Two ways to start that others ask for: with the loop in plain Python, and with the lines of Kafka's log."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pykafkad.config_def import ConfigError
from pykafkad.hot import records
from pykafkad.messages import FetchRequest, ProduceRequest
from pykafkad.net import plain_loop
from pykafkad.net.loop import reactor_module
from pykafkad.testing import Broker

SECONDS = 30


def test_the_plain_loop_serves_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKAFKAD_LOOP", "plain")
    batch = records.build([(b"k", b"v", [], 1_795_000_000_000)])
    row = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[row])
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = FetchRequest.FetchTopic(topic="t", partitions=[part])
    with Broker(topics=["t"]) as broker, broker.client() as client:
        produced = client.call(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic]), 9)
        assert produced.responses[0].partition_responses[0].error_code == 0
        fetched = client.call(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[asked]), 12)
        found = records.read(bytes(fetched.responses[0].partitions[0].records))
        assert [each.value for each in found] == [b"v"]
        assert "PYKAFKAD_LOOP=plain: the loop in plain Python serves" in broker.log_text()


def test_which_loop_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKAFKAD_LOOP", "plain")
    assert reactor_module() is plain_loop
    monkeypatch.setenv("PYKAFKAD_LOOP", "uvloop")
    with pytest.raises(ConfigError, match="PYKAFKAD_LOOP=uvloop: there is no such loop"):
        reactor_module()


def test_kafkas_lines_come_when_the_broker_serves() -> None:
    command = [
        sys.executable,
        "-m",
        "pykafkad",
        "start",
        "--port",
        "0",
        "--ephemeral",
        "--log-format",
        "kafka",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=kept) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().startswith("pykafkad ready")
            process.terminate()
            _, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    running, started = (
        said.find(text) for text in ("Transitioning from RECOVERY to RUNNING", "Kafka Server started")
    )
    assert 0 <= running < started, said
    assert said.rstrip().endswith(")"), "each line ends with its logger's name"
