"""What one round of changes tells the brokers: to each one LeaderAndIsr, then UpdateMetadata, then StopReplica.

Orders go to the replicas of a partition, news to everybody. What a batch says of a partition is how the context has it
when it is added; a later word of the round about the same partition replaces it.
"""

from __future__ import annotations

from pykafkad.pure.controller.facts import LEADER_DURING_DELETE
from pykafkad.pure.controller.intents import (
    LeaderAndIsr,
    PartitionNews,
    ReplicaOrder,
    ReplicaStop,
    Send,
    StopReplica,
    UpdateMetadata,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.pure.controller.context import Context
    from pykafkad.pure.controller.facts import Assignment, Leadership, Partition
    from pykafkad.pure.controller.intents import Steps


class Batch:
    def __init__(self, context: Context, epoch: int) -> None:
        self._context, self._epoch = context, epoch
        self._orders: dict[int, dict[Partition, ReplicaOrder]] = {}
        self._news: dict[Partition, PartitionNews] = {}
        self._news_for: set[int] = set()
        self._stops: dict[int, dict[Partition, ReplicaStop]] = {}

    def order(
        self,
        broker_ids: Iterable[int],
        partition: Partition,
        leadership: Leadership,
        assignment: Assignment,
        *,
        is_new: bool = False,
    ) -> None:
        """LeaderAndIsr to these brokers, and news to all."""
        topic_id = self._context.topic_id(partition[0])
        for broker_id in broker_ids:
            orders = self._orders.setdefault(broker_id, {})
            already = partition in orders and orders[partition].is_new
            orders[partition] = ReplicaOrder(partition, topic_id, leadership, assignment, is_new or already)
        self.tell(self._context.brokers, (partition,))

    def tell(self, broker_ids: Iterable[int], partitions: Iterable[Partition] = ()) -> None:
        """UpdateMetadata to these brokers; without partitions it still says which brokers there are."""
        self._news_for.update(broker_ids)
        for partition in partitions:
            leadership = self._context.leadership(partition)
            if leadership is not None:
                self._news[partition] = self._what_is(partition, leadership)

    def _what_is(self, partition: Partition, leadership: Leadership) -> PartitionNews:
        context = self._context
        if partition[0] in context.deleting:
            leadership = leadership._replace(
                leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0, recovery=0
            )
        replicas = context.assignment(partition).replicas
        offline = tuple(each for each in replicas if not context.is_online(each, partition))
        return PartitionNews(partition, context.topic_id(partition[0]), leadership, replicas, offline)

    def stop(self, broker_id: int, partition: Partition, *, delete: bool) -> None:
        """StopReplica."""
        stops = self._stops.setdefault(broker_id, {})
        already = partition in stops and stops[partition].delete
        stops[partition] = ReplicaStop(partition, self._context.stop_epoch(partition), delete or already)

    def send(self) -> Steps[None]:
        yield from self._send_orders()
        yield from self._send_news()
        for broker_id in self._alive(self._stops):
            yield self._to(broker_id, StopReplica(tuple(self._stops[broker_id].values())))

    def _send_orders(self) -> Steps[None]:
        brokers = self._context.brokers
        for broker_id in self._alive(self._orders):
            orders = tuple(self._orders[broker_id].values())
            ids = sorted({order.leadership.leader for order in orders})
            leaders = tuple(brokers[each] for each in ids if each in brokers)
            yield self._to(broker_id, LeaderAndIsr(orders, leaders))

    def _send_news(self) -> Steps[None]:
        brokers = self._context.brokers
        news = UpdateMetadata(tuple(self._news.values()), tuple(brokers[each] for each in sorted(brokers)))
        for broker_id in self._alive(self._news_for):
            yield self._to(broker_id, news)

    def _alive(self, broker_ids: Iterable[int]) -> list[int]:
        return sorted(each for each in broker_ids if each in self._context.brokers)

    def _to(self, broker_id: int, request: LeaderAndIsr | UpdateMetadata | StopReplica) -> Send:
        return Send(broker_id, self._context.brokers[broker_id].epoch, self._epoch, request)
