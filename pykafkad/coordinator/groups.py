"""The group coordinator: the runtime over the partitions of `__consumer_offsets`, with what only groups need.

That is their settings, the deletion of the offsets of deleted topics, and the expiry of offsets and groups.
runtime/runtime.py shows how handlers use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.cluster.turns import tell
from pykafkad.coordinator.runtime.kind import MachineKind
from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime
from pykafkad.slices import GO_ON
from pykafkad.uuids import random_uuid, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.config import BrokerConfig
    from pykafkad.coordinator.group_machine import GroupMachine
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.pure.groups.settings import GroupSettings
    from pykafkad.slices import Work

    GroupRuntime = CoordinatorRuntime[GroupMachine]
else:
    GroupRuntime = CoordinatorRuntime  # naming the machine's class would cost the start half a millisecond

GROUP_RESOURCE = 32
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class GroupCoordinator(GroupRuntime):
    def __init__(self, config: BrokerConfig, loop: CoordinatorLoop, replicas: Replicas, image: Image) -> None:
        kind = MachineKind(
            CONSUMER_OFFSETS,
            "group",
            self._new_machine,
            load_buffer_bytes=config["offsets.load.buffer.size"],
            codec=CODECS[config["offsets.topic.compression.codec"]],
            commit_timeout_ms=config["offsets.commit.timeout.ms"],
        )
        super().__init__(kind, loop, replicas, image)
        self._config = config
        self._settings: GroupSettings | None = None
        self._expiring = False

    def _new_machine(self) -> GroupMachine:
        """The module is imported with the first partition: a broker whose clients use no groups does not need it."""
        from pykafkad.coordinator.group_machine import GroupMachine

        return GroupMachine(self.settings)

    # -- what the metadata says

    def publish(self, delta: Delta) -> Work:
        if delta.broker_keys:
            self.configs_changed(delta.broker_keys)
        for topic in delta.deleted.values():
            tell(self.topic_deleted, topic)
            yield GO_ON
        self.follow(delta)

    # -- deleted topics and expiry

    def topic_deleted(self, topic: Topic) -> None:
        if topic.name == CONSUMER_OFFSETS:
            self.drop_all()
            return
        for shard in self.shards:
            shard.machine.topic_deleted(topic.name, shard.writer.next_offset)
            shard.run("topics", shard.machine.forget_deleted_topics)

    def expire(self) -> None:
        """Begin to delete the offsets and groups that have expired."""
        if not self._expiring:
            self._expiring = True
            self.loop.in_slices(self._expire_all(), self._expired)

    def _expire_all(self) -> Work:
        for shard in self.shards:
            for group_id in list(shard.machine.by_id) if shard.is_active else ():
                for effects in shard.machine.expire(group_id, self.loop.clock.now_ms()):
                    if shard.is_active:
                        shard.do(effects)
                    yield GO_ON

    def _expired(self, result: Any) -> None:
        self._expiring = False
        if isinstance(result, Exception):
            text = "offsets and groups are looked at again later for whether they expired"
            self.kind.log.exception(text, result)

    # -- configuration

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """Periodic jobs: the interval in ms, and what to call."""
        return [(self._config["offsets.retention.check.interval.ms"], self.expire)]

    @property
    def settings(self) -> GroupSettings:
        if self._settings is None:
            from pykafkad.pure.groups.settings import GroupSettings

            self._settings = GroupSettings(random_id, self._image, self._group_config, self.kind.log.info)
            self._settings.new_short_id = lambda: to_text(random_uuid())
            self._settings.update(self._config.__getitem__)
        return self._settings

    def configs_changed(self, names: set[str]) -> None:
        """Dynamic configs of the broker have changed."""
        if self._settings is not None:
            self._settings.update(self._config.__getitem__)

    def _group_config(self, group_id: str) -> Mapping[str, Any]:
        """The dynamic configs of the group, typed."""
        texts = self._image.configs.get((GROUP_RESOURCE, group_id))
        return typed_group_configs(texts) if texts else {}


def typed_group_configs(texts: Mapping[str, str]) -> dict[str, Any]:
    from pykafkad.config_entities import GROUP
    from pykafkad.pure.java import BLANKS, parse_int

    types = {row[0]: row[1] for row in GROUP}
    return {
        key: parse_int(text.strip(BLANKS)) if types.get(key) == "INT" else text for key, text in texts.items()
    }


def random_id() -> str:
    """A random UUID as Java writes it."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
