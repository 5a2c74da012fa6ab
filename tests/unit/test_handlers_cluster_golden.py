"""What a running 4.3.1 broker answered, request by request, and what we answer to the same bytes.

tests/golden/metadata/answers.jsonl.gz was recorded from one broker, in order: Metadata, CreateTopics, DeleteTopics,
DescribeCluster, DescribeTopicPartitions, ApiVersions, FindCoordinator, InitProducerId; valid, invalid and unusual
requests. Answers are compared field by field, except for random ids, the order of answers that Kafka shuffles, and the
differences listed here.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pykafkad import handlers, messages
from pykafkad.cluster import topic_names
from pykafkad.cluster.features import NOT_SERVED
from pykafkad.config_listeners import Endpoint
from pykafkad.hot import wire
from tests.unit.metadata_fakes import FakeContext, handled, open_broker

ZERO = bytes(16)
PORT = 21550  # of the broker that was recorded
CREATED_LATER = (
    3  # UNKNOWN_TOPIC_OR_PARTITION: Kafka's answer for a topic that it begins to create; ours waits for it
)
SHUFFLED = {"Metadata": "topics", "CreateTopics": "topics", "DeleteTopics": "responses"}


class Replay:
    def __init__(self, directory: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(
            "tests.unit.metadata_fakes.ENDPOINT", Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", PORT)
        )
        self.broker = open_broker(directory, log_retention_hours="5", num_partitions="2")
        # Done before the recording began, since Kafka at first answers that it is not ready yet.
        self.broker.controller.auto_create_all([topic_names.CONSUMER_OFFSETS])
        self.broker.controller.take_producer_id(lambda producer_id: None)
        self.our_id: dict[bytes, bytes] = {}
        self.differences: list[str] = []

    def run(self, line: dict[str, Any]) -> None:
        api, version = line["api"], line["version"]
        request = getattr(messages, api + "Request")
        response = getattr(messages, api + "Response")
        received = request.decode(bytes.fromhex(line["request"]), version)
        self.translate(received)
        context = FakeContext(version)
        answer = handled(self.broker, handlers.APIS[request.api_key].load(), received, context)
        if answer is context:
            (answer,) = context.answers
        ours = response.decode(answer.encode(version), version)
        theirs = response.decode(bytes.fromhex(line["response"]), version)
        self.learn(ours, theirs)
        self.translate(theirs)
        if api == "Metadata" and received.allow_auto_topic_creation:
            without_created(ours, theirs)
        found = list(differing(plain(api, ours), plain(api, theirs)))
        if found:
            self.differences.append(f"{api} v{version} {received}: " + ", ".join(found))

    def translate(self, message: Any) -> None:
        """Kafka's topic ids become ours."""
        for topic in getattr(message, "topics", None) or getattr(message, "responses", None) or []:
            topic_id = getattr(topic, "topic_id", ZERO)
            if topic_id != ZERO:
                topic.topic_id = self.our_id.get(topic_id, topic_id)

    def learn(self, ours: Any, theirs: Any) -> None:
        mine = {topic.name: topic.topic_id for topic in topics_with_ids(ours)}
        for topic in topics_with_ids(theirs):
            if mine.get(topic.name, ZERO) != ZERO:
                self.our_id[topic.topic_id] = mine[topic.name]


def without_created(ours: Any, theirs: Any) -> None:
    """Leave out the topics that Kafka's answer does not wait for, if ours has them."""
    later = {topic.name for topic in theirs.topics if topic.error_code == CREATED_LATER}
    at_once = {topic.name for topic in ours.topics if topic.name in later and topic.partitions}
    for answer in (ours, theirs):
        answer.topics = [topic for topic in answer.topics if topic.name not in at_once]


def topics_with_ids(message: Any) -> list[Any]:
    listed = getattr(message, "topics", None) or []
    return [topic for topic in listed if getattr(topic, "topic_id", ZERO) != ZERO and topic.name is not None]


def plain(api: str, message: Any) -> Any:
    """The answer as plain data in a fixed order, without random values and times."""
    data = as_data(message)
    if api == "ApiVersions":
        data["api_keys"] = [row for row in data["api_keys"] if row["api_key"] in handlers.APIS]
        data["finalized_features_epoch"] = None
        for field in ("supported_features", "finalized_features"):
            data[field] = sorted((row for row in data[field] if row["name"] not in NOT_SERVED), key=str)
    if api in SHUFFLED:
        data[SHUFFLED[api]].sort(key=lambda topic: (topic["name"] or "", str(topic.get("topic_id"))))
    return data


def differing(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for field in ours:
            yield from differing(ours[field], theirs[field], f"{path}.{field}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differing(mine, other, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path} is {ours}, in Kafka {theirs}"


def as_data(value: Any) -> Any:
    if isinstance(value, list):
        return [as_data(item) for item in value]
    if hasattr(value, "unknown_tags"):
        return {
            field.attribute: as_data(getattr(value, field.attribute)) for field in wire.fields(type(value))
        }
    return value


def test_answers_are_those_of_kafka(golden: Path, tmp_path: Path, monkeypatch: Any) -> None:
    replay = Replay(tmp_path, monkeypatch)
    with gzip.open(golden / "metadata" / "answers.jsonl.gz", "rt") as lines:
        recorded = [json.loads(line) for line in lines]
    for line in recorded:
        replay.run(line)
    assert len(recorded) > 200
    assert not replay.differences, f"{len(replay.differences)} differ:\n" + "\n".join(replay.differences[:5])
