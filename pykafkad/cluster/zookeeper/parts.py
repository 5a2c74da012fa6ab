"""The parts of a broker in a cluster, as they know each other: who does what, and whom they may ask.

`broker.cluster` has them all (None: a single node). The client of ZooKeeper is pykafkad/zookeeper; a part that reads or
writes znodes is given it. Everything is called on the loop; `done` and `told` are called on it too, once.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from pykafkad.cluster.controller import (
        CreatableTopic,
        Created,
        CreatePartitionsTopic,
        Deleted,
        Extended,
        Plan,
        Told,
    )
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.cluster.zookeeper.acls import ClusterAcls
    from pykafkad.cluster.zookeeper.control import Control
    from pykafkad.cluster.zookeeper.isolation import Isolation
    from pykafkad.config_listeners import Endpoint
    from pykafkad.errors import KafkaError
    from pykafkad.pure.acl_rules import Rules
    from pykafkad.pure.controller.events import Event
    from pykafkad.replication.quotas import ReplicationQuota
    from pykafkad.slices import Work


class Address(NamedTuple):
    """Where another broker is reached: its endpoint on our inter.broker.listener.name."""

    host: str
    port: int


class Registration(Protocol):
    """This broker's znode under /brokers/ids: made at start, made anew when the session was lost."""

    @property
    def broker_epoch(self) -> int:
        """The czxid of the znode; -1: there is none."""

    on_registered: Callable[[], None]  # told of every new epoch

    def register(self, endpoints: Sequence[Endpoint], rack: str | None, done: Told) -> None:
        """KafkaError where the id is another's."""

    def close(self, done: Callable[[], None]) -> None:
        """End the session: the znode goes with it."""


class Changes(Protocol):
    """Changes of the metadata that this broker writes into ZooKeeper itself, or asks for there; see Controller."""

    def load(self, done: Told) -> None:
        """At start: configs, quotas, users and ACLs go into the image; from then on, what others write."""

    def keep_acls(self, rules: Rules) -> ClusterAcls:
        """To be called before `load`, where there is an authorizer: it reads the ACLs that there are, too."""

    def load_topics(self, names: Sequence[str]) -> Work[Collection[str]]:
        """The configs of these topics go into the image: their logs are about to be made. Done by a request of the
        controller, which has the line."""

    def commit(self, records: Sequence[Record], done: Told) -> None: ...
    def in_turn(self, plan: Plan, done: Told) -> None: ...

    def create_topics(self, topics: Sequence[CreatableTopic], validate_only: bool, done: Created) -> None: ...
    def create_partitions(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> None: ...
    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None: ...
    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None: ...
    def auto_create_all(self, names: Sequence[str], done: Callable[[], None]) -> None: ...
    def is_auto_creating(self, name: str) -> bool: ...
    def image_changed(self) -> None:
        """By an UpdateMetadata."""


class Controlling(Protocol):
    """The controller's side of this broker: stands for election, and if elected decides for all."""

    @property
    def is_active(self) -> bool: ...
    @property
    def untold(self) -> int:
        """How many of its requests to the brokers have no answer yet."""

    def begin(self) -> None:
        """The broker is registered: stand for election, watch who is elected."""

    def resign(self) -> None:
        """The session was lost, or the broker stops."""

    def tell(self, event: Event) -> None:
        """What has happened, and may concern a controller."""

    def ask(self, make: Callable[..., Event], done: Callable[[Any], object], *facts: Any) -> None:
        """A request to the controller; `done` is called with its answer, or with an error code."""


class Replication(Protocol):
    """Follows leaders, and asks the controller for changes of the ISR."""

    @property
    def leader_quota(self) -> ReplicationQuota:
        """What followers that are not in sync may take."""

    @property
    def selects_by_rack(self) -> bool:
        """Whether a leader names consumers the replica in their rack (replica.selector.class)."""

    def follow(self, replica: Replica, leader_id: int, leader_epoch: int) -> None:
        """Fetch from that broker in that epoch, instead of whom it followed before."""

    def stop(self, replica: Replica) -> None:
        """Nothing more is fetched for it: it leads, is stopped or gone."""

    def controller_changed(self) -> None:
        """What waits for an answer of the controller is asked of the new one."""

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """(interval in ms, what to do): for the loop's timers."""

    def close(self) -> None: ...


class Cluster(Protocol):
    """What `broker.cluster` is: the parts, and what they ask of each other."""

    zookeeper: Any
    control: Control
    registration: Registration
    changes: Changes
    controlling: Controlling
    replication: Replication
    peers: Any
    isolation: Isolation

    @property
    def broker_epoch(self) -> int: ...
    @property
    def controller_id(self) -> int:
        """As the last UpdateMetadata says; -1: nobody has said it yet."""

    def address_of(self, broker_id: int) -> Address | None:
        """None: no such broker lives, or not with that listener."""

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None: ...
