"""Topics that are created because somebody asks for them: by Metadata, and by FindCoordinator what groups are kept in.

As in Kafka all that one request misses is created by one request of the broker's own, so the bounds of CreateTopics
count; what is being created already is left out. Who needs one partition of many waits for no other: its log is made as
soon as the metadata has the topic. Invariant: whoever waits for a topic is told, whatever becomes of it.
"""

from __future__ import annotations

from pykafkad.cluster import internal_topics
from pykafkad.cluster.topic_creation import MAX_PARTITIONS_IN_REQUEST, TOO_MANY_PARTITIONS, Planned
from pykafkad.cluster.turns import tell
from pykafkad.errors import INVALID_REPLICATION_FACTOR, POLICY_VIOLATION, KafkaError
from pykafkad.logs import logger
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.messages import CreateTopicsRequest
    from pykafkad.quiet import Allows
    from pykafkad.slices import Work

    # Who is told, and what gives the one partition that is needed, when there are partitions; None: all are.
    Waiting = tuple[Callable[[Planned], None], Callable[[], int] | None]

TOLD = (INVALID_REPLICATION_FACTOR,)  # by whoever refused it, with what to do

log = logger("controller")


class AutoCreation:
    """`plan` and `create` are the controller's; `lead` makes the log of a partition."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Image,
        plan: Callable[[Work, Callable[[KafkaError], None]], None],
        create: Callable[..., Work],
        lead: Callable[[str, int], None],
        allows: Allows,
    ) -> None:
        self._config = config
        self._image = image
        self._plan = plan
        self._create = create
        self._lead = lead
        self._allows = allows
        self._creating: set[str] = set()
        self._waiting: dict[str, list[Waiting]] = {}

    def is_creating(self, name: str) -> bool:
        """Whether some of its partitions may have no log yet, though the metadata has it."""
        return name in self._creating

    def create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        """`done` is told what became of the topic: it may have been created by others."""
        self._waiting.setdefault(name, []).append((done, needed))
        if name in self._creating and name in self._image.topics:
            self._applied([Planned(name)])
        else:
            self._begin([name])

    def create_all(self, names: Sequence[str], done: Callable[[], None]) -> None:
        """`done` is called when it is known of each of the topics what became of it."""
        if len(names) > MAX_PARTITIONS_IN_REQUEST:  # and each has one: they would all be refused
            self._say_failed(names[0], len(names), KafkaError(POLICY_VIOLATION, TOO_MANY_PARTITIONS))
            return done()
        left = set(names)

        def told(planned: Planned) -> None:
            left.discard(planned.name)
            if not left:
                done()

        for name in names:
            self._waiting.setdefault(name, []).append((told, None))
        self._begin(names)

    def _begin(self, names: Sequence[str]) -> None:
        self._plan(self._work(names), lambda error: self._failed(names, error))

    def _work(self, names: Sequence[str]) -> Work:
        topics: list[CreateTopicsRequest.CreatableTopic] = []
        brokers = self._brokers()
        for some in chunks(names):
            for name in some:
                if name not in self._creating:
                    topics.append(internal_topics.creatable(self._config, name, brokers))
                    self._creating.add(name)
            yield
        yield from self._create(topics, False, self._created, self._applied)

    def _brokers(self) -> int:
        """The most replicas that an internal topic gets where nobody said how many."""
        return len(self._image.brokers)

    def _failed(self, names: Sequence[str], error: KafkaError) -> None:
        planned = [Planned(name) for name in names]
        for topic in planned:
            topic.error = error
        self._created(planned)

    def _applied(self, planned: Sequence[Planned]) -> None:
        """The metadata has the topics, and their logs are to be made: at once those that somebody waits for."""
        for topic in planned:
            waiting = self._waiting.get(topic.name, [])
            if topic.error is not None or all(needed is None for _, needed in waiting):
                continue
            self._waiting[topic.name] = [(done, needed) for done, needed in waiting if needed is None]
            for done, needed in waiting:
                if needed is not None:
                    self._lead(topic.name, needed())
                    tell(done, topic)

    def _created(self, planned: Sequence[Planned]) -> None:
        failed = [topic for topic in planned if topic.error is not None and topic.error.code not in TOLD]
        if failed:
            self._say_failed(failed[0].name, len(failed), failed[0].error)
        for topic in planned:
            self._creating.discard(topic.name)
            for done, _ in self._waiting.pop(topic.name, ()):
                tell(done, topic)

    def _say_failed(self, name: str, count: int, error: KafkaError | None) -> None:
        """One topic, of so many that failed."""
        if self._allows(log, "topics that could not be created", name):
            more = f", nor could {count - 1} more" if count > 1 else ""
            log.warn(f"topic {name} could not be created{more}: {error}")
