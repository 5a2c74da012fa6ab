"""Config names that nobody knows, and which ones were meant."""

from __future__ import annotations

import pytest

from pykafkad import config_names
from pykafkad.config import BrokerConfig
from pykafkad.testing import Broker


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("num.partition", "num.partitions"),
        ("num_partitions", "num.partitions"),
        ("log.retention.mss", "log.retention.ms"),
        ("retention.ms", "log.retention.ms"),
        ("advertised.listener", "advertised.listeners"),
        ("auto.create.topic.enable", "auto.create.topics.enable"),
    ],
)
def test_the_nearest_name_comes_first(slip: str, meant: str) -> None:
    assert config_names.nearest(slip)[0] == meant


def test_what_is_like_nothing_has_no_nearest_name() -> None:
    assert config_names.nearest("xyz") == []


def test_in_a_file_an_unknown_name_is_warned_of_with_the_nearest_ones() -> None:
    ((level, line),) = BrokerConfig({"num.partition": "3", "of.a.plugin": "x"}).notes()
    assert level == "warn"
    assert line.startswith(
        "These configurations '[num.partition, of.a.plugin]' were supplied but are not used yet."
    )
    assert line.endswith(" num.partition, did you mean num.partitions?")


def test_in_a_test_it_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"num\.partition is no broker config, did you mean num\.partitions\?"
    ):
        Broker(config={"num.partition": 3}, start=False)
    with pytest.raises(ValueError, match=r"^xyz is no broker config$"):
        Broker(config={"xyz": 3}, start=False)
    Broker(config={"listener.name.plaintext.max.connections": 3}, start=False).close()


def test_one_name_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"\['orders'\]"):
        Broker(topics="orders", start=False)
