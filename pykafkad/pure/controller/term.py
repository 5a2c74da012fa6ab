"""A term of office: from an election to the day somebody else is elected. It ends by being thrown away.

Owns the context, and the parts that decide; they find each other here.
"""

from __future__ import annotations

from pykafkad.pure.controller.balance import Balance
from pykafkad.pure.controller.batches import Batch
from pykafkad.pure.controller.brokers import Brokers
from pykafkad.pure.controller.context import Context
from pykafkad.pure.controller.deletions import Deletions
from pykafkad.pure.controller.intents import paced
from pykafkad.pure.controller.isr import Isr
from pykafkad.pure.controller.partitions import Partitions
from pykafkad.pure.controller.reassignments import Reassignments
from pykafkad.pure.controller.replicas import Replicas
from pykafkad.pure.controller.topics import Topics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.store import Store, Won


class Term:
    def __init__(self, node_id: int, won: Won, store: Store, config: Mapping[str, Any]) -> None:
        """`config` is asked each time: some of it changes while the broker runs."""
        self.node_id, self.won, self.store, self.config = node_id, won, store, config
        self.context = Context()
        self.partitions = Partitions(self)
        self.replicas = Replicas(self)
        self.deletions = Deletions(self)
        self.reassignments = Reassignments(self)
        self.brokers = Brokers(self)
        self.topics = Topics(self)
        self.balance = Balance(self)
        self.isr = Isr(self)

    @property
    def epoch(self) -> int:
        return self.won.epoch

    def batch(self) -> Batch:
        return Batch(self.context, self.epoch)

    def tell_all(self, partitions: Iterable[Partition] = ()) -> Steps[None]:
        """UpdateMetadata to every broker."""
        yield from self.tell(self.context.brokers, partitions)

    def tell(self, broker_ids: Iterable[int], partitions: Iterable[Partition] = ()) -> Steps[None]:
        batch = self.batch()
        batch.tell(broker_ids)
        for is_turn, partition in paced(partitions):
            if is_turn:
                yield
            batch.tell((), (partition,))
        yield from batch.send()
