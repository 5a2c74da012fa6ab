"""Consumer groups without a broker: topics that tests change, and members that act on answers as a consumer does."""

from __future__ import annotations

from typing import Any

from pykafkad import messages
from pykafkad.errors import KafkaError
from pykafkad.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykafkad.slices import finish
from tests.group_kit import GROUP, Asked, Room

Heartbeat = messages.ConsumerGroupHeartbeatRequest
REBALANCE_MS = 60_000


class Broker:
    def __init__(self, rack: str | None) -> None:
        self.rack = rack


class Partition:
    replicas = (1,)


class Topic:
    def __init__(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.name, self.id = name, topic_id
        self.partitions = [Partition() for _ in range(partitions)]


class Topics:
    """An image of topics."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.brokers: dict[int, Broker] = {1: Broker(None)}
        self.topic_changes = 0
        self.offset = 100

    def _changed(self) -> None:
        self.topic_changes += 1
        self.offset += 1

    def create(self, name: str, partitions: int = 3) -> bytes:
        self._changed()
        topic = Topic(name, name.encode()[:10].ljust(14, b"\1") + self.offset.to_bytes(2), partitions)
        self.topics[name] = self.topics_by_id[topic.id] = topic
        return topic.id

    def grow(self, name: str, partitions: int) -> None:
        self._changed()
        have = self.topics[name].partitions
        have += [Partition() for _ in range(partitions - len(have))]

    def delete(self, name: str) -> None:
        self._changed()
        del self.topics_by_id[self.topics.pop(name).id]


class ConsumerRoom(Room):
    def __init__(self, *names: str, partitions: int = 3, **settings: Any) -> None:
        self.topics = Topics()
        for name in names:
            self.topics.create(name, partitions)
        super().__init__(**{"consumer_assignment_interval_ms": 0, **settings, "topics": self.topics})

    def beat(self, member_id: str, epoch: int, version: int = 1, **told: Any) -> Asked:
        """One ConsumerGroupHeartbeat, with only the fields that are given."""
        group = told.pop("group", GROUP)
        client_id = told.pop("client_id", "client")
        topics = told.pop("owned", None)
        if topics is not None:
            told["topic_partitions"] = [
                Heartbeat.TopicPartitions(topic_id=self.topics.topics[name].id, partitions=list(partitions))
                for name, partitions in topics.items()
            ]
        names = {"topics": "subscribed_topic_names", "regex": "subscribed_topic_regex"}
        fields = {names.get(name, name): value for name, value in told.items()}
        request = Heartbeat(group_id=group, member_id=member_id, member_epoch=epoch, **fields)
        asked = Asked(version, client_id)
        try:
            self.do(self.groups.consumer_heartbeat(request, asked, self.now_ms))
        except KafkaError as error:
            asked.answers.append(
                messages.ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
            )
        return asked

    def enter_consumer(self, member_id: str, topics: Any = ("t",), **told: Any) -> Asked:
        fields = {"rebalance_timeout_ms": REBALANCE_MS, "owned": {}, **told}
        if "regex" not in told:
            fields["topics"] = list(topics)
        return self.beat(member_id, 0, **fields)

    def named(self, response: Any) -> dict[str, list[int]] | None:
        """The assignment of an answer, by topic name; topics that were deleted have none."""
        if response.assignment is None:
            return None
        return {
            self.topics.topics_by_id[each.topic_id].name: list(each.partitions)
            for each in response.assignment.topic_partitions
            if each.topic_id in self.topics.topics_by_id
        }

    def describe(self, group: str = GROUP) -> Any:
        from pykafkad.pure.groups.consumer_describe import described

        return finish(described(self.group(group)))

    def has(self, member_id: str) -> dict[str, list[int]]:
        """The partitions that the member owns, or has not revoked yet, according to the coordinator."""
        for each in self.describe().members:
            if each.member_id == member_id:
                return {
                    topic.topic_name: list(topic.partitions) for topic in each.assignment.topic_partitions
                }
        raise AssertionError(member_id)


class Consumer:
    """A member that acts like a client: it takes over what it is assigned, and revokes what it should."""

    def __init__(self, room: ConsumerRoom, member_id: str, topics: Any = ("t",), **told: Any) -> None:
        self.room, self.member_id, self.epoch = room, member_id, 0
        self.owned: dict[str, list[int]] = {}
        self.told: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_MS, **told}
        if "regex" not in told:
            self.told["topics"] = list(topics)
        self.is_in = False

    def beat(self, **more: Any) -> Any:
        if not self.is_in:
            self.epoch, self.owned = 0, {}
            fields = {**self.told, "owned": {}}
        else:
            fields = {"owned": self.owned}
            if "instance_id" in self.told:
                fields["instance_id"] = self.told["instance_id"]
        answer = self.room.beat(self.member_id, self.epoch, **{**fields, **more}).answer
        if answer.error_code:
            self.is_in = False
            return answer
        self.is_in = True
        self.epoch = answer.member_epoch
        given = self.room.named(answer)
        if given is not None:
            self.owned = given
        return answer

    def leave(self, for_a_while: bool = False) -> Any:
        more = {"instance_id": self.told["instance_id"]} if "instance_id" in self.told else {}
        self.is_in = False
        return self.room.beat(self.member_id, -2 if for_a_while else -1, **more).answer


def settle_all(*consumers: Consumer, rounds: int = 10) -> None:
    """Send heartbeats until nothing changes any more."""
    for _ in range(rounds):
        before = [(each.epoch, dict(each.owned)) for each in consumers]
        for each in consumers:
            assert each.beat().error_code == 0
            each.room.advance(1)
        if before == [(each.epoch, dict(each.owned)) for each in consumers]:
            return
    raise AssertionError("the group does not settle")


def subscription(*topics: str, version: int = 1, owned: Any = (), rack: str | None = None) -> bytes:
    """A consumer's metadata in the classic protocol."""
    kind = ConsumerProtocolSubscription
    rows = [
        kind.TopicPartition(topic=name, partitions=list(partitions))
        for name, partitions in dict(owned).items()
    ]
    message = kind(topics=list(topics), owned_partitions=rows, rack_id=rack)
    return version.to_bytes(2) + message.encode(version)


def assignment(version: int = 1, user_data: bytes | None = None, **topics: Any) -> bytes:
    kind = ConsumerProtocolAssignment
    rows = [kind.TopicPartition(topic=name, partitions=list(each)) for name, each in topics.items()]
    message = kind(assigned_partitions=rows, user_data=user_data)
    return version.to_bytes(2) + message.encode(version)


def assigned(data: bytes) -> dict[str, list[int]]:
    """The partitions in SyncGroup's answer."""
    if not data:
        return {}
    version = int.from_bytes(data[:2])
    read = ConsumerProtocolAssignment.decode(data, version, 2)
    return {row.topic: sorted(row.partitions) for row in read.assigned_partitions}
