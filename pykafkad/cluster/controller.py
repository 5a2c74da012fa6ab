"""What may be asked of a controller: of whoever decides about the metadata, wherever that is.

Handlers know this and nothing behind it. LocalController decides by itself, in its own metadata log; OpenedController
shows a copied directory and refuses. The image says what is, also where others decide about it. Whatever changes goes
one way: records that are durable, the image, its delta to the publishers, the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.cluster.dynamic_config import DynamicConfig
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.names import Names
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.config import TopicConfig
    from pykafkad.config_listeners import Endpoint
    from pykafkad.errors import KafkaError
    from pykafkad.messages import CreatePartitionsRequest, CreateTopicsRequest
    from pykafkad.slices import Work

    class Grown(Protocol):
        """What one topic of a CreatePartitions request came to."""

        @property
        def name(self) -> str: ...
        @property
        def error(self) -> KafkaError | None: ...

    CreatableTopic = CreateTopicsRequest.CreatableTopic
    CreatePartitionsTopic = CreatePartitionsRequest.CreatePartitionsTopic
    Created = Callable[[Sequence[Planned]], None]  # what each topic of the request came to
    Extended = Callable[[Sequence[Grown]], None]
    Deleted = Callable[[dict[bytes, KafkaError]], None]
    Plan = Callable[[], Sequence[Record] | Work]
    Told = Callable[[KafkaError | None], Any]


class Quorum(NamedTuple):
    """Who keeps the metadata log, and how far it goes."""

    leader_id: int
    epoch: int
    end_offset: int
    voter_directory_id: bytes  # of the leader; ZERO where the log names no voters


class Controller(Protocol):
    """What handlers may ask. `done` is called once, whatever goes wrong, and when what changed was published."""

    @property
    def image(self) -> Image: ...
    @property
    def node_id(self) -> int:
        """This broker."""

    @property
    def controller_id(self) -> int:
        """The node that clients are told to ask for changes; -1: nobody knows."""

    @property
    def quorum(self) -> Quorum: ...
    @property
    def names(self) -> Names: ...
    @property
    def dynamic(self) -> DynamicConfig: ...

    def exists(self, name: str) -> bool:
        """A topic, as soon as everything asked for is done."""

    def topic_config(self, name: str) -> TopicConfig:
        """The resolved configuration of an existing topic; the same object as long as nothing changes it."""

    def create_topics(self, topics: Sequence[CreatableTopic], validate_only: bool, done: Created) -> None: ...
    def create_partitions(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> None: ...
    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None: ...
    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        """Create a topic that somebody asks for, or wait for it; `needed`: the one partition to wait for."""

    def auto_create_all(self, names: Sequence[str], done: Callable[[], None]) -> None: ...
    def is_auto_creating(self, name: str) -> bool:
        """Whether the metadata may have it, and not all of its partitions have logs yet."""

    def commit(self, records: Sequence[Record], done: Told) -> None: ...
    def in_turn(self, plan: Plan, done: Told) -> None:
        """Commit what `plan` makes of the image, one such change at a time, so that each sees the one before."""

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None: ...


class RunningController(Controller, Protocol):
    """And what the broker asks that it belongs to, from start to stop."""

    @property
    def publishers(self) -> Publishers: ...
    @property
    def broker_epoch(self) -> int: ...
    @property
    def idle(self) -> bool: ...
    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """(interval in ms, what to do): for the loop's timers."""

    def check(self) -> None:
        """StartupError where this broker may not start here; changes nothing."""

    def take_over(
        self,
        endpoints: Sequence[Endpoint],
        directories: list[bytes],
        rack: str | None,
        *,
        some_offline: bool = False,
    ) -> None:
        """Register this broker, with the ids of its log directories that are online."""

    def load_logs(self) -> None:
        """Publish everything there is."""

    def on_log_failed(self, told: Callable[[], None]) -> None: ...
    def abandon_log(self) -> None: ...
    def directory_failed(self) -> None: ...
    def stop(self) -> None: ...
