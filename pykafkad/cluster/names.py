"""Which topics there will be once everything that was asked for is done: the image, and what is on its way to the disk.

Requests see each other's changes in the order in which they came, so a name that is being created is taken, and one
that is being deleted is free. Invariant: what is noted is forgotten once, when the image has it or the write failed;
nothing here walks what is noted.
"""

from __future__ import annotations

from pykafkad.cluster import topic_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.image import Image


class Names:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._changes = 0
        # name -> (a number of its own, the id that the topic will have; None: it will be gone)
        self._ahead: dict[str, tuple[int, bytes | None]] = {}
        self._by_id: dict[bytes, str] = {}  # of those that are being created
        self._colliding: dict[str, dict[str, None]] | None = None  # made when somebody asks

    def exists(self, name: str) -> bool:
        return self.id_of(name) is not None

    def is_changing(self, name: str) -> bool:
        return name in self._ahead

    def id_of(self, name: str) -> bytes | None:
        ahead = self._ahead.get(name)
        if ahead is not None:
            return ahead[1]
        topic = self._image.topics.get(name)
        return topic.id if topic is not None else None

    def name_of(self, topic_id: bytes) -> str | None:
        name = self._by_id.get(topic_id)
        if name is None:
            topic = self._image.topics_by_id.get(topic_id)
            name = topic.name if topic is not None else None
        return name if name is not None and self.id_of(name) == topic_id else None

    def collides_with(self, name: str) -> str | None:
        """A topic whose name differs from this one only in '.' and '_', if there is one."""
        if not topic_names.can_collide(name):
            return None
        if self._colliding is None:
            self._colliding = {}
            for other in (*self._image.topics, *self._ahead):
                self._look_again(other)
        return next(iter(self._colliding.get(topic_names.collision_key(name), ())), None)

    def note(self, name: str, topic_id: bytes | None) -> int:
        """The topic will have this id, or will be gone; what it is to be forgotten by."""
        self._changes += 1
        self._ahead[name] = (self._changes, topic_id)
        if topic_id is not None:
            self._by_id[topic_id] = name
        self._look_again(name)
        return self._changes

    def forget(self, name: str, change: int, topic_id: bytes | None) -> None:
        """The change is made, or never will be."""
        if topic_id is not None:
            self._by_id.pop(topic_id, None)
        if self._ahead.get(name, (0, None))[0] == change:
            del self._ahead[name]
            self._look_again(name)

    def _look_again(self, name: str) -> None:
        """Whether others can collide with it."""
        if self._colliding is None or not topic_names.can_collide(name):
            return
        key = topic_names.collision_key(name)
        names = self._colliding.setdefault(key, {})
        if self.exists(name):
            names[name] = None
        else:
            names.pop(name, None)
            if not names:
                del self._colliding[key]
