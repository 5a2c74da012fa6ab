"""Configs, quotas and users of a cluster on ZooKeeper: read into the image, and changed for everybody.

What counts is what the znodes say. Changes go: written (entity_configs), announced by a notification, read back into our
image and published, answered; the others read them when the notification comes. What is lost with a session, watches and
perhaps notifications, is made good by reading everything again in the next.
Invariants: one thing is read or written after the other (`_line`), so that the image never goes back; the image changes
in the line of the controller's requests (`in_line`), between which its publishers are through.
"""

from __future__ import annotations

from functools import partial
from itertools import takewhile

from pykafkad import errors
from pykafkad.cluster.turns import Turns, commit_planned, tell, through
from pykafkad.cluster.zookeeper import entities
from pykafkad.cluster.zookeeper.asking import as_kafka_error, settled, unread
from pykafkad.cluster.zookeeper.entity_configs import EntityConfigs
from pykafkad.cluster.zookeeper.notifications import Notifications
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.quiet import always
from pykafkad.slices import GO_ON
from pykafkad.zookeeper.client import State
from pykafkad.zookeeper.config_znodes import CONFIG_CHANGES, read_config_change
from pykafkad.zookeeper.znodes import name_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pykafkad.cluster.controller import Plan, Told
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.cluster.zookeeper.asking import Asking
    from pykafkad.quiet import Allows
    from pykafkad.slices import Done, Run, Work

KNOWN_FEW = 1000  # ids of topics that are gone are forgotten from time to time

log = logger("zookeeper")


class ClusterConfigs:
    """`in_line(work, done)` does work that changes the image. `now_ms`: the wall clock."""

    def __init__(
        self,
        asking: Asking,
        image: Image,
        publishers: Publishers,
        in_line: Callable[[Work, Done], None],
        run: Run,
        now_ms: Callable[[], int],
        allows: Allows = always,
    ) -> None:
        self._image = image
        self._publishers = publishers
        self._in_line = in_line
        self._line = Turns(run)
        self._plans = Turns(run)
        self._notifications = Notifications(asking, CONFIG_CHANGES, "config_change_", now_ms, log, allows)
        self._configs = EntityConfigs(asking, self._notifications, allows)
        self._is_loaded = False
        self._known: set[bytes] = set()  # topics that the image had before
        self._found: set[str] = set()  # topics whose configs were loaded, and that nobody told of yet
        self._is_to_read = False  # notifications that came are going to be read
        asking.zookeeper.on_watch(self._on_watch)
        asking.zookeeper.on_state(self._on_state)

    # -- reading

    def load(self, done: Told) -> None:
        """Everything there is; from then on, what others write."""
        self._is_loaded = True
        self._line.run(self._load(), lambda result: tell(done, settled(result)))

    def load_topics(self, names: Sequence[str]) -> Work[list[str]]:
        """What these topics' configs are now: nobody announces those of a new topic. Done by who has the line already, so
        it waits for no turn: what was read before, and is applied after, is behind a notification that is to come.
        The topics whose configs cannot be read."""
        found = yield from self._configs.read([f"{entities.TOPICS}/{name}" for name in names])
        yield from self._apply(found)
        return [name for name in names if f"{entities.TOPICS}/{name}" not in found]

    def topics_told(self) -> None:
        """The image has what the controller told: the configs of topics that are new to it are read, whoever leads
        them, since clients ask any broker. New ones are the last in the image."""
        new = list(
            takewhile(lambda topic: topic.id not in self._known, reversed(self._image.topics.values()))
        )
        if len(self._known) > KNOWN_FEW + 2 * len(self._image.topics):
            self._known = set(self._image.topics_by_id)
        self._known.update(topic.id for topic in new)
        names = {topic.name for topic in new}
        paths = [f"{entities.TOPICS}/{name}" for name in names - self._found]
        self._found -= names
        if paths and self._is_loaded:
            self._line.run(self._refresh(paths), self._was_read)

    def _load(self) -> Work:
        yield from self._notifications.skip()
        paths = yield from self._configs.paths()
        self._found = {name_in(path) for path in paths if path.startswith(entities.TOPICS)}
        yield from self._refresh(sorted({*paths, *entities.known_paths(self._image)}))

    def _refresh(self, paths: Iterable[str]) -> Work:
        """The image says of these what the znodes say now."""
        found = yield from self._configs.read(list(paths))
        yield from through(self._in_line, self._apply(found))

    def _apply(self, found: dict[str, dict[str, str]]) -> Work:
        changed = False
        for path, configs in found.items():
            for record in entities.records_of(self._image, path, configs):
                self._image.apply(record)
                changed = True
            yield GO_ON
        if changed:
            yield from self._publishers.publish(self._image.take_delta())

    def _on_watch(self, path: str) -> None:
        if path == CONFIG_CHANGES and self._is_loaded and not self._is_to_read:
            self._is_to_read = True
            self._line.run(self._read_notifications(), self._was_read)

    def _read_notifications(self) -> Work:
        self._is_to_read = False
        said = yield from self._notifications.take()
        if said is None:
            yield from self._load()
            return
        named = yield from self._notifications.named(said, read_config_change)
        if named:
            yield from self._refresh(named)

    def _on_state(self, state: State) -> None:
        if state is State.NEW_SESSION and self._is_loaded:
            self._line.run(self._load(), self._was_read)

    def _was_read(self, result: object) -> None:
        error = unread(result)
        if error is not None:
            log.error(f"configs could not be read: {error}")

    # -- writing

    def commit(self, records: Sequence[Record], done: Told) -> None:
        """`done` is told when it counts here; the others follow."""
        self._line.run(self._write(records), lambda result: tell(done, settled(result)))

    def put_topics(self, configs: Mapping[str, Mapping[str, str]]) -> Work:
        """The configs of topics that are about to be made, whatever is left of others of these names."""
        paths = {f"{entities.TOPICS}/{name}": each for name, each in configs.items()}
        yield from through(self._line.run, self._put(paths))

    def _put(self, wanted: Mapping[str, Mapping[str, str]]) -> Work:
        yield from self._configs.put(wanted)
        yield from self._refresh(wanted)

    def _write(self, records: Sequence[Record]) -> Work:
        strange = next((each for each, _ in records if not entities.is_entity(each)), None)
        if strange is not None:
            why = f"{type(strange).__name__} has no place in ZooKeeper"
            raise KafkaError(errors.UNSUPPORTED_VERSION, why)
        changes = entities.changes_of(records)
        try:
            yield from self._configs.write(changes)
        finally:
            yield from self._refresh(changes)

    def in_turn(self, plan: Plan, done: Told) -> None:
        """Commit what `plan` makes of the image, one such change at a time, so that each sees the one before."""
        begin = partial(commit_planned, plan, self._line, self.commit, as_kafka_error)
        self._plans.take(begin, partial(tell, done))
