"""Topics that are created because somebody asks for them: by Metadata, and by FindCoordinator what groups are kept in.

As in Kafka all that one request misses is created by one request of the broker's own, so the bounds of CreateTopics
count; what is being created already is left out. Invariant: whoever waits for a topic is told, whatever becomes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.cluster import internal_topics
from pykafkad.cluster.topic_creation import Planned
from pykafkad.cluster.turns import tell
from pykafkad.logs import logger
from pykafkad.slices import chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.errors import KafkaError
    from pykafkad.slices import Work

log = logger("controller")


class AutoCreation:
    """`plan` and `create` are the controller's."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Image,
        plan: Callable[[Work, Callable[[KafkaError], None]], None],
        create: Callable[..., Work],
    ) -> None:
        self._config = config
        self._image = image
        self._plan = plan
        self._create = create
        self._creating: set[str] = set()
        self._waiting: dict[str, list[Callable[[Planned], None]]] = {}

    def create(self, name: str, done: Callable[[Planned], None]) -> None:
        """`done` is told what became of the topic: it may have been created by others."""
        self._waiting.setdefault(name, []).append(done)
        self.create_all([name])

    def create_all(self, names: Sequence[str]) -> None:
        self._plan(self._work(names), lambda error: self._failed(names, error))

    def _work(self, names: Sequence[str]) -> Work:
        topics: list[Any] = []
        brokers = len(self._image.brokers)
        for some in chunks(names):
            for name in some:
                if name not in self._creating:
                    topics.append(internal_topics.creatable(self._config, name, brokers))
                    self._creating.add(name)
            yield
        yield from self._create(topics, False, self._created)

    def _failed(self, names: Sequence[str], error: KafkaError) -> None:
        planned = [Planned(name) for name in names]
        for topic in planned:
            topic.error = error
        self._created(planned)

    def _created(self, planned: Sequence[Planned]) -> None:
        failed = [topic for topic in planned if topic.error is not None]
        if failed:
            more = f", nor could {len(failed) - 1} more" if len(failed) > 1 else ""
            log.warn(f"topic {failed[0].name} could not be created{more}: {failed[0].error}")
        for topic in planned:
            self._creating.discard(topic.name)
            for told in self._waiting.pop(topic.name, ()):
                tell(told, topic)
