"""The configurations of topics, for the logs that are here: read from ZooKeeper, whether or not the metadata has told of
the topic yet.

LeaderAndIsr says which logs are made and who leads them (roles.py); here is what they are configured with, and the
publisher that has them follow a change.
"""

from __future__ import annotations

from pykafkad.cluster.dynamic_config import OF_TOPICS
from pykafkad.cluster.image import TOPIC_RESOURCE
from pykafkad.config import TopicConfig
from pykafkad.logs import logger
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.slices import Work
    from pykafkad.storage.manager import LogManager

SHARED = ""  # stands for all topics without configs of their own

log = logger("controller")


class TopicLogs:
    def __init__(self, config: BrokerConfig, image: Image, storage: LogManager) -> None:
        self._config = config
        self._image = image
        self._storage = storage
        self._configs: dict[str, TopicConfig] = {}

    def config_of(self, name: str) -> TopicConfig:
        """The same object as long as nothing changes it."""
        own = self._image.configs.get((TOPIC_RESOURCE, name))
        key = name if own else SHARED
        config = self._configs.get(key)
        if config is None:
            config = self._configs[key] = TopicConfig(self._config, own or {})
        return config

    def publish(self, delta: Delta) -> Work:
        for topic in delta.deleted.values():
            self._configs.pop(topic.name, None)
        changed: Iterable[str] = [name for kind, name in delta.configs if kind == TOPIC_RESOURCE]
        if delta.broker_keys:
            self._storage.reconfigure()
        if delta.broker_keys & OF_TOPICS:
            self._configs.clear()
            changed = dict.fromkeys(name for name, _ in self._storage.partitions)
        for name in changed:
            self._configs.pop(name, None)
            yield from self._configure(name)

    def _configure(self, name: str) -> Work:
        count = max((index + 1 for topic, index in self._storage.partitions if topic == name), default=0)
        try:
            if count:
                self._storage.configure(name, count, self.config_of(name))
        except Exception as error:
            log.exception(f"{name} could not follow its configs", error)
        yield GO_ON
