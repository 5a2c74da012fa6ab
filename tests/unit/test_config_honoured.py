"""HONOURED is complete and true: the code acts upon the keys in it, and on no others.

A key counts as honoured where its value is used: `config["key"]`, a constant that stands for it, a setting of groups
that is read, the topics' and the internal topics' tables. Being in a list of names or in a text is not enough.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pykafkad
from pykafkad import config_entities, config_table
from pykafkad.cluster import config_reports, internal_topics, topic_names
from pykafkad.cluster.dynamic_config import without_effect
from pykafkad.cluster.image import BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.config import BROKER_KEYS, OWN_KEYS, BrokerConfig
from pykafkad.config_keys import OF_4_3
from pykafkad.pure.groups import settings

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
# Read only to refuse it, or to show a topic's value: nothing else depends on it.
SHOWN_ONLY = {"remote.log.storage.system.enable"}
ASKING = {"_texts", "listener_text"}  # functions that take a key and return its value


def asked_for(tree: ast.Module) -> set[str]:
    """The texts with which something is looked up."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }

    def text(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return constants.get(node.id, "")
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found.add(text(node.slice))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found.update(map(text, node.args) if name in ASKING else ())
    return found


def read_keys() -> set[str]:
    trees = {
        file: ast.parse(file.read_text("utf-8"))
        for file in PACKAGE.rglob("*.py")
        if file.name not in TABLES and not CLIENTS.intersection(file.relative_to(PACKAGE).parts)
    }
    found = set[str]().union(*map(asked_for, trees.values()))
    attributes = {
        node.attr for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    found |= {key for attribute, (key, _) in settings.KEYS.items() if attribute in attributes}
    found |= {
        broker_key
        for key in config_entities.TOPIC_HONOURED
        for broker_key, _ in config_entities.TOPIC_SYNONYMS.get(key, ())
    }
    for topic in (topic_names.CONSUMER_OFFSETS, topic_names.TRANSACTION_STATE):  # the third is never created
        prefix, configs = internal_topics.INTERNAL[topic]
        names = ["num.partitions", "replication.factor", *(value.strip("{}") for value in configs.values())]
        found |= {f"{prefix}.{name}" for name in names}
    return found & BROKER_KEYS.keys()


def test_every_honoured_key_is_read() -> None:
    assert config_table.HONOURED - read_keys() == set()


def test_every_key_that_is_read_is_honoured() -> None:
    assert read_keys() - config_table.HONOURED == SHOWN_ONLY


def test_what_is_honoured_in_part_is_honoured() -> None:
    assert config_table.IN_PART.keys() <= config_table.HONOURED


def test_a_key_in_a_list_of_names_or_in_a_text_is_not_read() -> None:
    tree = ast.parse(
        'NAMES = ("a.b", "c.d")\nTEXT = "e.f is wrong"\nKEY = "g.h"\nfirst = config["i.j"]\nOTHER[KEY]'
    )
    assert asked_for(tree) & {"a.b", "c.d", "e.f is wrong", "g.h", "i.j"} == {"g.h", "i.j"}


@pytest.mark.parametrize(
    ("name", "is_without"),
    [
        ("num.io.threads", True),
        ("log.retention.ms", False),
        ("listener.name.plaintext.max.connections", False),
        ("listener.name.plaintext.ssl.keystore.type", True),
        ("replica.alter.log.dirs.io.max.bytes.per.second", False),
        ("leader.replication.throttled.rate", True),
        ("of.a.plugin", False),
        *((name, False) for name in OWN_KEYS),
    ],
)
def test_which_dynamic_keys_change_nothing(name: str, is_without: bool) -> None:
    assert without_effect(name) == is_without


@pytest.mark.parametrize("is_clustered", [False, True])
def test_every_dynamic_key_either_counts_or_is_said_not_to(is_clustered: bool) -> None:
    silent = {name for name in OF_4_3.dynamic if without_effect(name, is_clustered=is_clustered)}
    assert silent.isdisjoint(config_table.honoured(is_clustered=is_clustered)) and len(silent) > 40


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("leader.replication.throttled.rate", True),
        ("follower.replication.throttled.rate", True),
        ("num.replica.fetchers", True),
        ("unclean.leader.election.enable", True),
        ("log.retention.ms", True),
        ("num.io.threads", False),
    ],
)
def test_what_counts_in_a_cluster_is_not_said_to_change_nothing(name: str, counts: bool) -> None:
    assert without_effect(name, is_clustered=True) != counts


OF_BOTH_KINDS = {
    "unclean.leader.election.enable": "true",
    "metadata.log.segment.ms": "60000",
    "num.io.threads": "3",
}


def test_a_start_names_what_changes_nothing_for_this_kind_of_broker() -> None:
    alone = BrokerConfig.from_sources(OF_BOTH_KINDS)
    assert set(alone.unhonoured) == {"unclean.leader.election.enable", "num.io.threads"}
    zookeeper = {"zookeeper.connect": "localhost:2181", "broker.id": "1"}
    clustered = BrokerConfig.from_sources(OF_BOTH_KINDS | zookeeper)
    assert set(clustered.unhonoured) == {"metadata.log.segment.ms", "num.io.threads"}


@pytest.mark.parametrize("is_clustered", [False, True])
def test_what_is_said_of_changed_configs_depends_on_the_kind_of_broker(is_clustered: bool) -> None:
    def is_said(kind: int, *names: str) -> list[bool]:
        return [config_reports.is_unheard(kind, name, "1", is_clustered=is_clustered) for name in names]

    of_cluster = not is_clustered
    assert is_said(BROKER_RESOURCE, "num.replica.fetchers", "num.io.threads") == [of_cluster, True]
    assert is_said(
        TOPIC_RESOURCE,
        "unclean.leader.election.enable",
        "leader.replication.throttled.replicas",
        "retention.ms",
        "remote.log.copy.disable",
    ) == [of_cluster, of_cluster, False, True]
