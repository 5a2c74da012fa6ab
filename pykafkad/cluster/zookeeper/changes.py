"""Changes that this broker writes into ZooKeeper itself, of configs, topics and ACLs: `Changes` of parts.py."""

from __future__ import annotations

from functools import partial

from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.configs import ClusterConfigs
from pykafkad.cluster.zookeeper.topic_changes import TopicChanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.controller import Told
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.names import Names
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.cluster.zookeeper.acls import ClusterAcls
    from pykafkad.config import BrokerConfig
    from pykafkad.pure.acl_rules import Rules
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
        configs = ClusterConfigs(asking, image, publishers, in_line, run, now_ms, allows)
        topics = TopicChanges(
            config, asking, image, names, configs, is_controller, run, later, random, allows
        )
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
        self._acls: ClusterAcls | None = None
        self._new_acls = partial(
            new_acls,
            asking,
            image,
            publishers,
            in_line,
            run,
            now_ms=now_ms,
            later=later,
            random=random,
            allows=allows,
        )

    def keep_acls(self, rules: Rules) -> ClusterAcls:
        self._acls = self._new_acls(rules)
        return self._acls

    def load(self, done: Told) -> None:
        acls, (configs, _) = self._acls, self._parts
        if acls is None:
            configs.load(done)
        else:
            configs.load(lambda error: acls.load(done) if error is None else done(error))

    def image_changed(self) -> None:
        """To be called after each UpdateMetadata."""
        configs, topics = self._parts
        configs.topics_told()
        topics.image_changed()


def new_acls(
    asking: Asking,
    image: Image,
    publishers: Publishers,
    in_line: Callable[[Work, Done], None],
    run: Run,
    rules: Rules,
    *,
    now_ms: Callable[[], int],
    later: Callable[[float, Callable[[], None]], Any],
    random: Callable[[int], int],
    allows: Allows,
) -> ClusterAcls:
    from pykafkad.cluster.zookeeper.acl_znodes import AclZnodes
    from pykafkad.cluster.zookeeper.acls import ClusterAcls

    znodes = AclZnodes(asking, now_ms, later, random, allows)
    return ClusterAcls(asking.zookeeper, znodes, image, rules, publishers, in_line, run)
