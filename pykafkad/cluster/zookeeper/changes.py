"""Changes that this broker writes into ZooKeeper itself, of configs and of topics: `Changes` of parts.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.configs import ClusterConfigs
from pykafkad.cluster.zookeeper.topic_changes import TopicChanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.names import Names
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.config import BrokerConfig
    from pykafkad.quiet import Allows
    from pykafkad.slices import Done, Run, Work
    from pykafkad.zookeeper.client import ZooKeeper


class ClusterChanges:
    """`in_line(work, done)` does work that changes the image, between two requests of the controller; `now_ms`: the wall
    clock; `later(ms, call)` calls after so long; `random(n)`: a number below n."""

    def __init__(
        self,
        config: BrokerConfig,
        zookeeper: ZooKeeper,
        image: Image,
        names: Names,
        publishers: Publishers,
        in_line: Callable[[Work, Done], None],
        is_controller: Callable[[], bool],
        run: Run,
        now_ms: Callable[[], int],
        later: Callable[[float, Callable[[], None]], Any],
        random: Callable[[int], int],
        allows: Allows,
    ) -> None:
        asking = Asking(zookeeper)
        configs = ClusterConfigs(asking, image, publishers, in_line, run, now_ms)
        topics = TopicChanges(
            config, asking, image, names, configs, is_controller, run, later, random, allows
        )
        self.load = configs.load
        self.load_topics = configs.load_topics
        self.commit = configs.commit
        self.in_turn = configs.in_turn
        self.create_topics = topics.create_topics
        self.create_partitions = topics.create_partitions
        self.delete_topics = topics.delete_topics
        self.auto_create = topics.auto_create
        self.auto_create_all = topics.auto_create_all
        self.is_auto_creating = topics.is_auto_creating
        self._parts = configs, topics

    def image_changed(self) -> None:
        """To be called after each UpdateMetadata."""
        configs, topics = self._parts
        configs.topics_told()
        topics.image_changed()
