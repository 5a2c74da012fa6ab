"""`--single-node` (pykafkad.single.node): what configs that count brokers come to where there is never more than one.

Copies and in-sync replicas beyond the one there is count as one, whoever asked for them, and are shown as one. The
internal topics get few partitions unless somebody says how many: they spread coordinators over brokers, and each of
them costs four files.
"""

from __future__ import annotations

from pykafkad.pure import java

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.config_def import Value

KEY = "pykafkad.single.node"
ORIGIN = "--single-node"
ALONE = 1
COUNT_BROKERS = (
    "default.replication.factor",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
)
FEW_PARTITIONS = 5  # as in Kafka's own tests
SPREAD_OVER_BROKERS = (
    "offsets.topic.num.partitions",
    "share.coordinator.state.topic.num.partitions",
    "transaction.state.log.num.partitions",
)
OF_TOPICS = "min.insync.replicas"


def lower(
    values: dict[str, Value], texts: dict[str, str], dynamic: Mapping[str, str]
) -> tuple[set[str], list[str]]:
    """Change what asks for more than one broker. Returns the keys, and what somebody had set: `key=value`."""
    changed: set[str] = set()
    said: list[str] = []
    for name in COUNT_BROKERS:
        value = values[name]
        if isinstance(value, int) and value > ALONE:
            if name in texts or name in dynamic:
                said.append(f"{name}={value}")
            changed.add(name)
            values[name] = ALONE
    for name in SPREAD_OVER_BROKERS:
        if name not in texts:
            changed.add(name)
            values[name] = FEW_PARTITIONS
    for name in changed - dynamic.keys():
        texts[name] = str(values[name])
    return changed, said


def lowered(overrides: dict[str, str]) -> dict[str, str]:
    """A topic's configs. A value that is none stays as it is, to be refused."""
    try:
        wanted = java.parse_int(overrides.get(OF_TOPICS, "").strip(java.BLANKS))
    except ValueError:
        return overrides
    return {**overrides, OF_TOPICS: str(ALONE)} if wanted > ALONE else overrides
