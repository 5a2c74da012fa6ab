"""The topics that coordinators keep their state in, with the partitions and configs Kafka gives them.

They are made when a client first needs them. Their replication factor and min.insync.replicas are what the
broker's keys say where somebody set them; their defaults of 3 and 2 would keep a single node from ever using
them, so where nobody did they are no more than the brokers there are.
"""

from __future__ import annotations

from pykafkad.cluster import topic_names
from pykafkad.messages import CreateTopicsRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import BrokerConfig

CreatableTopic = CreateTopicsRequest.CreatableTopic
CreatableTopicConfig = CreateTopicsRequest.CreatableTopicConfig

BROKER_DEFAULT = -1

# name -> what the broker keys about it begin with, and its configs; "{key}" is the value of that broker key
INTERNAL: dict[str, tuple[str, dict[str, str]]] = {
    topic_names.CONSUMER_OFFSETS: (
        "offsets.topic",
        {"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": "{segment.bytes}"},
    ),
    topic_names.TRANSACTION_STATE: (
        "transaction.state.log",
        {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "{min.isr}",
            "segment.bytes": "{segment.bytes}",
            "unclean.leader.election.enable": "false",
        },
    ),
    topic_names.SHARE_GROUP_STATE: (
        "share.coordinator.state.topic",
        {
            "compression.type": "producer",
            "cleanup.policy": "delete",
            "min.insync.replicas": "{min.isr}",
            "segment.bytes": "{segment.bytes}",
            "retention.ms": "-1",
        },
    ),
}


def creatable(config: BrokerConfig, name: str, brokers: int) -> CreatableTopic:
    """What to create under this name when nobody says how: an internal topic, or one with the defaults."""
    if name not in INTERNAL:
        return CreatableTopic(name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)
    prefix, configs = INTERNAL[name]
    return CreatableTopic(
        name=name,
        num_partitions=int(config[f"{prefix}.num.partitions"]),
        replication_factor=at_most(config, f"{prefix}.replication.factor", brokers),
        configs=[
            CreatableTopicConfig(name=key, value=config_value(config, prefix, value, brokers))
            for key, value in configs.items()
        ],
    )


def config_value(config: BrokerConfig, prefix: str, value: str, brokers: int) -> str:
    if not value.startswith("{"):
        return value
    key = f"{prefix}.{value.strip('{}')}"
    return str(at_most(config, key, brokers) if key.endswith("min.isr") else config[key])


def at_most(config: BrokerConfig, key: str, brokers: int) -> int:
    """The key's value, but no default of Kafka's that so few brokers could not fulfil."""
    value = int(config[key])
    return value if config.explicit(key) else min(value, brokers)
