"""HONOURED tells the truth: what it names is read by the code, and what the code reads is named."""

from __future__ import annotations

import re
from pathlib import Path

import pykafkad
from pykafkad import config_entities, config_table
from pykafkad.cluster import internal_topics
from pykafkad.config import BROKER_KEYS

PACKAGE = Path(pykafkad.__file__).parent
# Tables and checks name keys without acting on them.
TABLES = {
    "config_table.py",
    "config_entities.py",
    "config_checks.py",
    "config_descriptions.py",
    "dynamic_checks.py",
    "dynamic_config.py",
}
CLIENTS = {"tools", "client.py"}  # their configs are not the broker's
# Read only to say no, or to say what a topic has: nothing follows from their value.
SHOWN_ONLY = {"remote.log.storage.system.enable", "unclean.leader.election.enable"}


def read_keys() -> set[str]:
    files = [
        file
        for file in PACKAGE.rglob("*.py")
        if file.name not in TABLES and not CLIENTS.intersection(file.parts)
    ]
    named = {key for file in files for key in re.findall(r'"([a-z0-9.]+)"', file.read_text("utf-8"))}
    of_topics = {
        broker_key
        for key in config_entities.TOPIC_HONOURED
        for broker_key, _ in config_entities.TOPIC_SYNONYMS.get(key, ())
    }
    of_internal_topics = {
        f"{prefix}.{key}"
        for prefix, configs in internal_topics.INTERNAL.values()
        for key in [
            "num.partitions",
            "replication.factor",
            *(value.strip("{}") for value in configs.values()),
        ]
    }
    return (named | of_topics | of_internal_topics) & BROKER_KEYS.keys()


def test_every_honoured_key_is_read() -> None:
    assert config_table.HONOURED - read_keys() == set()


def test_every_key_that_is_read_is_honoured() -> None:
    assert read_keys() - config_table.HONOURED == SHOWN_ONLY
