"""Topics that are there from the start: the form of what names them, and what becomes of each."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pykafkad import first_topics
from pykafkad.config import BrokerConfig, ConfigError
from tests.unit.metadata_fakes import Later, open_broker


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ("a", -1, -1, [])),
        ("a:2", ("a", 2, -1, [])),
        ("a:1:3", ("a", 1, 3, [])),
        ("a:9999:1:", ("a", 9999, 1, [])),
        (" a:1:1:compact,delete", ("a", 1, 1, [("cleanup.policy", "compact")])),
    ],
)
def test_what_is_left_out_is_as_by_default(text: str, found: object) -> None:
    topic, *_ = first_topics.parse(text)
    configs = [(each.name, each.value) for each in topic.configs]
    assert (topic.name, topic.num_partitions, topic.replication_factor, configs) == found


def test_between_commas_there_may_be_nothing() -> None:
    assert [topic.name for topic in first_topics.parse(" ,a:1, ,b,")] == ["a", "b"]
    assert first_topics.parse("") == []


@pytest.mark.parametrize(
    "text",
    [
        "a:x:1",
        "a:0:1",
        "a:1:0",
        "a:1:-1",
        "a:²:1",
        ":1:1",
        "a:1:1:compact:more",
        "a:10000:1",
        "a:1:" + "9" * 5_000,
    ],
)
def test_another_form_is_refused_before_the_start(text: str) -> None:
    with pytest.raises(ConfigError, match=r"for configuration pykafkad\.create\.topics") as refused:
        BrokerConfig({"pykafkad.create.topics": f"good:1:1,{text}"})
    assert (refused.value.key, refused.value.value) == ("pykafkad.create.topics", text)


def test_the_start_goes_on_when_all_are_there_or_cannot_be_made(tmp_path: Path, said: io.StringIO) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)

    def run_pass(at_most_ms: int) -> None:
        assert at_most_ms > 0, "it waits, and does not spin"
        later.step()

    first_topics.create("old:2:1", broker.controller, run_pass)
    said.truncate(0)
    said.seek(0)
    first_topics.create("old:1:1,new:3:1:compact,many:1:2", broker.controller, run_pass)
    assert {name: len(topic.partitions) for name, topic in broker.image.topics.items()} == {
        "old": 2,
        "new": 3,
    }
    lines = [line.partition("] ")[2] for line in said.getvalue().splitlines() if " [controller] " in line]
    assert [line for line in lines if "old" in line] == [], "there before is as good"
    assert "INFO [controller] created topic new, 3 partition(s)" in lines
    (failed,) = [line for line in lines if line.startswith("ERROR")]
    assert "topic many of pykafkad.create.topics could not be created: " in failed
