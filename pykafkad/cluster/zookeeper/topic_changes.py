"""Topics made, grown and deleted, as znodes that the controller sees; and those made because somebody needs them.

Clients ask the controller's broker; what a broker needs itself, it writes itself, whoever the controller is. A topic is
its configs and, written last, its assignment: then the controller makes partitions and elects leaders. The answer waits
for the image to show it, as the controller tells all brokers; where that does not come in time, the answer is
REQUEST_TIMED_OUT, and the topic may come to be later, as in Kafka.
Invariant: one request writes after the other; none holds the next one up while it waits for the image.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.auto_creation import AutoCreation
from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.topic_creation import Planned, refused
from pykafkad.cluster.topic_names import why_invalid
from pykafkad.cluster.turns import Turns, tell
from pykafkad.cluster.zookeeper.asking import as_kafka_error, expect
from pykafkad.cluster.zookeeper.topic_planning import ClusterPlanner, Grown, grow
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.slices import GO_ON
from pykafkad.zookeeper.client import BAD_VERSION, NO_NODE, NODE_EXISTS, OK, Create, Exists, GetData, SetData
from pykafkad.zookeeper.znodes import (
    Assignment,
    Replicas,
    delete_topic,
    read_assignment,
    topic,
    write_assignment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.cluster.controller import CreatableTopic, Created, CreatePartitionsTopic, Deleted, Extended
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.names import Names
    from pykafkad.cluster.topic_creation import Outcome
    from pykafkad.cluster.zookeeper.asking import Asking
    from pykafkad.cluster.zookeeper.configs import ClusterConfigs
    from pykafkad.config import BrokerConfig
    from pykafkad.quiet import Allows
    from pykafkad.slices import Run, Work

WAIT_MS = 30_000  # for the controller; clients wait so long by default
MAX_TRIES = 10
MANY_BROKERS = 1 << 15  # so that no factor is made less: an internal topic waits for brokers enough

log = logger("controller")


class TopicChanges:
    """`is_controller`: whether this broker is; `later(ms, call)` calls after so long; `random(n)`: a number below n."""

    def __init__(
        self,
        config: BrokerConfig,
        asking: Asking,
        image: Image,
        names: Names,
        configs: ClusterConfigs,
        is_controller: Callable[[], bool],
        run: Run,
        later: Callable[[float, Callable[[], None]], Any],
        random: Callable[[int], int],
        allows: Allows,
    ) -> None:
        self._asking = asking
        self._image = image
        self._configs = configs
        self._is_controller = is_controller
        self._run = run
        self._later = later
        self._planner = ClusterPlanner(config, image, names, random)
        self._line = Turns(run)
        self._waiting: list[Waiting] = []
        self._auto_creation = ClusterAutoCreation(
            config, image, self._plan, self._create, lambda name, index: None, allows
        )

    def image_changed(self) -> None:
        """The image is as another UpdateMetadata says: whoever waits for it may be answered."""
        for waiting in list(self._waiting):
            if waiting.is_over():
                self._end(waiting, in_time=True)

    # -- creation

    def create_topics(self, topics: Sequence[CreatableTopic], validate_only: bool, done: Created) -> None:
        if not self._is_controller():
            self._refuse(topics, KafkaError(errors.NOT_CONTROLLER), Planned, done)
            return
        work = self._create(topics, validate_only, done)
        self._plan(work, lambda error: self._refuse(topics, error, Planned, done))

    def _plan(self, work: Work, failed: Callable[[KafkaError], None]) -> None:
        def ended(result: Any) -> None:
            if isinstance(result, Exception):
                tell(failed, as_kafka_error(result))

        self._line.run(work, ended)

    def _refuse(
        self,
        topics: Sequence[CreatableTopic] | Sequence[CreatePartitionsTopic],
        error: KafkaError,
        kind: type[Outcome],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        self._run(refused(topics, error, kind), lambda planned: tell(done, planned))

    def _create(
        self,
        topics: Sequence[CreatableTopic],
        validate_only: bool,
        done: Created,
        in_image: Created | None = None,
    ) -> Work:
        """`in_image` is told before `done`, of those that came to be."""
        planned = yield from self._planner.plan(topics)
        yield from self._look(planned)
        good = [each for each in planned if each.error is None]
        if validate_only or not good:
            tell(done, planned)
            return
        yield from self._configs.put_topics({each.name: each.configs for each in good})
        yield from self._write(good)

        def over(in_time: bool) -> None:
            for each in good:
                if each.error is None and not self._has(each.name, each.topic_id, len(each.replicas)):
                    each.error = KafkaError(errors.REQUEST_TIMED_OUT)
            if in_image is not None:
                in_image([each for each in good if each.error is None])
            done(planned)

        self._wait(
            lambda: all(
                each.error is not None or self._has(each.name, each.topic_id, len(each.replicas))
                for each in good
            ),
            over,
        )

    def _look(self, planned: Sequence[Planned]) -> Work:
        """What the image does not show: topics that are to be deleted, or were made a moment ago."""
        good = [each for each in planned if each.error is None]
        deleted = yield from self._asking.ask_all([Exists(delete_topic(each.name)) for each in good])
        there = yield from self._asking.ask_all([Exists(topic(each.name)) for each in good])
        for each, is_deleted, is_there in zip(good, deleted, there, strict=True):
            if expect(is_deleted, NO_NODE).error == OK:
                text = f"Topic '{each.name}' is marked for deletion."
                each.error = KafkaError(errors.TOPIC_ALREADY_EXISTS, text)
            elif expect(is_there, NO_NODE).error == OK:
                each.error = already(each.name)

    def _write(self, good: Sequence[Planned]) -> Work:
        made = []
        for each in good:
            replicas = {index: Replicas(nodes) for index, nodes in enumerate(each.replicas)}
            made.append(Create(topic(each.name), write_assignment(Assignment(each.topic_id, replicas))))
            yield GO_ON
        for each, result in zip(good, (yield from self._asking.ask_all(made)), strict=True):
            if expect(result, NODE_EXISTS, path=topic(each.name)).error == NODE_EXISTS:
                yield from self._look_whose(each)

    def _look_whose(self, planned: Planned) -> Work:
        """It is ours if the answer to a first try was lost."""
        (found,) = yield from self._asking.ask(GetData(topic(planned.name)))
        data = expect(found, NO_NODE).data
        if data is None or read_assignment(data).topic_id != planned.topic_id:
            planned.error = already(planned.name)

    # -- growth

    def create_partitions(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> None:
        if not self._is_controller():
            self._refuse(topics, KafkaError(errors.NOT_CONTROLLER), Grown, done)
            return
        work = self._grow(topics, validate_only, done)
        self._plan(work, lambda error: self._refuse(topics, error, Grown, done))

    def _grow(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> Work[None]:
        planned = []
        for wanted in topics:
            grown = Grown(wanted.name)
            planned.append(grown)
            try:
                yield from self._grow_one(wanted, grown, validate_only)
            except KafkaError as error:
                grown.error = error.alone()
            yield GO_ON
        good = [each for each in planned if each.error is None]

        def has(grown: Grown) -> bool:
            return self._has(grown.name, grown.topic_id, grown.first + len(grown.replicas))

        def over(in_time: bool) -> None:
            for each in good:
                if not has(each):
                    each.error = KafkaError(errors.REQUEST_TIMED_OUT)
            done(planned)

        if validate_only or not good:
            tell(done, planned)
        else:
            self._wait(lambda: all(map(has, good)), over)

    def _grow_one(self, wanted: CreatePartitionsTopic, grown: Grown, validate_only: bool) -> Work:
        path = topic(wanted.name)
        for _ in range(MAX_TRIES):
            if why_invalid(wanted.name) is not None:  # it may be the path of another znode
                raise unknown(wanted.name)
            (found,) = yield from self._asking.ask(GetData(path))
            if expect(found, NO_NODE, path=path).error == NO_NODE:
                raise unknown(wanted.name)
            assignment = read_assignment(found.data)
            yield from grow(wanted, grown, assignment, self._image)
            if validate_only:
                return
            more = {grown.first + number: Replicas(each) for number, each in enumerate(grown.replicas)}
            data = write_assignment(assignment._replace(partitions={**assignment.partitions, **more}))
            (result,) = yield from self._asking.ask(SetData(path, data, found.version))
            if expect(result, BAD_VERSION, NO_NODE, path=path).error == OK:
                return
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"others write {path} all the time")

    # -- deletion

    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None:
        if not self._is_controller():
            done(dict.fromkeys(topic_ids, KafkaError(errors.NOT_CONTROLLER)))
            return
        self._plan(self._delete(topic_ids, done), lambda error: done(dict.fromkeys(topic_ids, error)))

    def _delete(self, topic_ids: Sequence[bytes], done: Deleted) -> Work:
        failures: dict[bytes, KafkaError] = {}
        going: dict[bytes, Create] = {}
        for topic_id in topic_ids:
            known = self._image.topics_by_id.get(topic_id)
            if known is None:
                failures[topic_id] = KafkaError(errors.UNKNOWN_TOPIC_ID)
            else:
                going[topic_id] = Create(delete_topic(known.name))
            yield GO_ON
        for result in (yield from self._asking.ask_all(list(going.values()))):
            expect(result, NODE_EXISTS)  # somebody wants it already

        def over(in_time: bool) -> None:
            for topic_id in going:
                if topic_id in self._image.topics_by_id:
                    failures[topic_id] = KafkaError(errors.REQUEST_TIMED_OUT)
            done(failures)

        self._wait(lambda: not any(topic_id in self._image.topics_by_id for topic_id in going), over)

    # -- what clients need without asking for it

    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        self._auto_creation.create(name, done, needed)

    def auto_create_all(self, names: Sequence[str], done: Callable[[], None]) -> None:
        self._auto_creation.create_all(names, done)

    def is_auto_creating(self, name: str) -> bool:
        return self._auto_creation.is_creating(name)

    # -- waiting for the image

    def _has(self, name: str, topic_id: bytes, count: int) -> bool:
        """All of its partitions, with leaders."""
        known = self._image.topics.get(name)
        if known is None or known.id != topic_id or len(known.partitions) < count:
            return False
        return all(each.leader != NO_LEADER for each in known.partitions)

    def _wait(self, is_over: Callable[[], bool], over: Callable[[bool], None]) -> None:
        """`over` is told whether it came to be in time."""
        waiting = Waiting(is_over, over)
        self._waiting.append(waiting)
        if is_over():
            self._end(waiting, in_time=True)
        else:
            self._later(WAIT_MS, lambda: self._end(waiting, in_time=False))

    def _end(self, waiting: Waiting, *, in_time: bool) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            tell(waiting.over, in_time)


class Waiting:
    __slots__ = ("is_over", "over")

    def __init__(self, is_over: Callable[[], bool], over: Callable[[bool], None]) -> None:
        self.is_over = is_over
        self.over = over


class ClusterAutoCreation(AutoCreation):
    def _brokers(self) -> int:
        return MANY_BROKERS


def unknown(name: str) -> KafkaError:
    return KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def already(name: str) -> KafkaError:
    return KafkaError(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
