"""How consumer groups notice changes of topics: a hash for each topic, by which a group sees that one of its topics
changed, and the version of the image in which the newest topic appeared, after which regular expressions are resolved
again.

All groups of a broker share one. The hash is Kafka's, since it is written to the log: XXH3 over id, name, partitions
and the racks of their replicas. KIP-1101.
"""

from __future__ import annotations

import struct

from pykafkad.pure.groups.xxh3 import xxh3_64

MAGIC = b"\0"
NO_TOPICS_HASH = 0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from pykafkad.pure.groups.settings import GroupSettings, Partition, Topic, Topics


class TopicWatch:
    __slots__ = ("_changes", "_hashes", "_known", "_newest", "topics")

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self._hashes: dict[str, tuple[bytes, int, int]] = {}  # by name: id, partitions, hash
        self._known: set[bytes] = set()
        self._changes = -1
        self._newest = -1

    def hash_of(self, names: Iterable[str]) -> int:
        """The hash of all these topics, as a signed number; topics that do not exist are left out."""
        topics = self.topics.topics
        there = sorted(topics.keys() & names, key=java_order)
        if not there:
            return NO_TOPICS_HASH
        data = b"".join(struct.pack("<Q", self._hash_of(topics[name])) for name in there)
        return signed(xxh3_64(data))

    def learn(self, names: Iterable[str]) -> Iterator[None]:
        """A generator that computes the hashes of these topics one by one, before hash_of() needs them all."""
        for name in names:
            topic = self.topics.topics.get(name)
            if topic is not None:
                self._hash_of(topic)
            yield

    def _hash_of(self, topic: Topic) -> int:
        known = self._hashes.get(topic.name)
        count = len(topic.partitions)
        if known is None or known[0] != topic.id or known[1] != count:
            value = xxh3_64(topic_bytes(topic, self.topics))
            known = self._hashes[topic.name] = (topic.id, count, value)
            if len(self._hashes) > len(self.topics.topics):
                self._forget_deleted()
        return known[2]

    def _forget_deleted(self) -> None:
        topics = self.topics.topics
        for name in [name for name in self._hashes if name not in topics]:
            del self._hashes[name]

    def newest_version(self) -> int:
        """The version of the image in which the newest topic appeared."""
        if self._changes != self.topics.topic_changes:
            self._changes = self.topics.topic_changes
            if self._newest < 0 or not self._known.issuperset(self.topics.topics_by_id):
                self._newest = self.topics.offset
            self._known = set(self.topics.topics_by_id)
        return self._newest


def existing(topics: Mapping[str, Topic], names: frozenset[str]) -> Set[str]:
    """The names that topics have. A client may name far more than there are."""
    return names.intersection(topics) if len(names) > len(topics) else topics.keys() & names


def watch_of(settings: GroupSettings) -> TopicWatch:
    if settings.topic_watch is None:
        settings.topic_watch = TopicWatch(settings.topics)
    watch: TopicWatch = settings.topic_watch
    return watch


def topic_bytes(topic: Topic, topics: Topics) -> bytes:
    name = topic.name.encode("utf-16-le", "surrogatepass")
    parts = [
        MAGIC,
        topic.id[7::-1],
        topic.id[:7:-1],
        name,
        struct.pack("<ii", len(name) // 2, len(topic.partitions)),
    ]
    for index, partition in enumerate(topic.partitions):
        parts.append(struct.pack("<i", index))
        for rack in sorted(racks_of(partition, topics), key=java_order):
            text = rack.encode("utf-16-le", "surrogatepass")
            # The length occurs twice: before the text, where Kafka writes it, and after it, where the hash function
            # does.
            parts += [struct.pack("<i", len(text) // 2), text, struct.pack("<i", len(text) // 2)]
    return b"".join(parts)


def racks_of(partition: Partition, topics: Topics) -> list[str]:
    racks = (topics.brokers[each].rack for each in partition.replicas if each in topics.brokers)
    return [rack for rack in racks if rack is not None]


def java_order(text: str) -> bytes:
    """Java's order of strings, which compares UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
