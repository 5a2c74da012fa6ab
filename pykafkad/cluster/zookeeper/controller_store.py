"""What the controller keeps in ZooKeeper: pykafkad/pure/controller/store.py over znodes.

Every write is a transaction with a check of /controller_epoch's version, as everybody else in the cluster relies on: a
controller that has been replaced writes nothing any more. Many operations go in chunks, each pipelined.
"""

from __future__ import annotations

from pykafkad.cluster.topic_names import may_be_a_directory
from pykafkad.pure.controller.facts import RECOVERED, Assignment, Broker, Endpoint, Leadership
from pykafkad.pure.controller.intents import Ask, Note
from pykafkad.pure.controller.store import Moved, StoreFailed, TopicNode, Won, Written
from pykafkad.slices import chunks
from pykafkad.uuids import ZERO, random_uuid
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import config_znodes, znodes
from pykafkad.zookeeper.client import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
    Write,
    ZooKeeperError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pykafkad.cluster.zookeeper.controller_messages import Forms
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps

NOBODY = -1
OPERATIONS_AT_ONCE = 256  # then others have the loop
PRODUCER_IDS = 1_000  # in a block
PRODUCER_IDS_END = (1 << 63) - 1
UNCLEAN = "unclean.leader.election.enable"
OVER = (zk.SESSION_EXPIRED, zk.CLOSED)


def ask(operations: Sequence[Operation]) -> Steps[list[Result]]:
    results: list[Result] = []
    for some in chunks(operations, OPERATIONS_AT_ONCE):
        answers = yield Ask(some)
        if any(each.error in OVER for each in answers):
            raise Moved("the session with ZooKeeper has ended")
        results += answers
        yield
    return results


def expect(result: Result, *allowed: int) -> Result:
    if result.error and result.error not in allowed:
        raise ZooKeeperError(result)
    return result


class ControllerElections:
    """Who is the controller, and becoming it."""

    def __init__(
        self, node_id: int, session_id: Callable[[], int], now_ms: Callable[[], int], forms: Forms
    ) -> None:
        self._node_id, self._session_id, self._now_ms, self._forms = node_id, session_id, now_ms, forms

    def controller(self) -> Steps[int]:
        _, found = yield from ask([Exists(znodes.CONTROLLER, watch=True), GetData(znodes.CONTROLLER)])
        if expect(found, zk.NO_NODE).error:
            return NOBODY
        return znodes.read_controller(found.data).broker_id

    def stand(self) -> Steps[Won | None]:
        (found,) = yield from ask([GetData(znodes.CONTROLLER_EPOCH)])
        if expect(found, zk.NO_NODE).error:
            first = znodes.write_epoch(znodes.NO_CONTROLLER_EPOCH)
            yield from ask([Create(znodes.CONTROLLER_EPOCH, first)])
            (found,) = yield from ask([GetData(znodes.CONTROLLER_EPOCH)])
        epoch = znodes.read_epoch(expect(found).data) + 1
        node = znodes.write_controller(znodes.ControllerNode(self._node_id, self._now_ms()))
        wish = Multi(
            (
                Create(znodes.CONTROLLER, node, ephemeral=True),
                SetData(znodes.CONTROLLER_EPOCH, znodes.write_epoch(epoch), found.version),
            )
        )
        (result,) = yield from ask([wish])
        if not expect(result, zk.NODE_EXISTS, zk.BAD_VERSION).error:
            return Won(epoch, result.results[1].version)
        return (yield from self._won_before(epoch))

    def _won_before(self, epoch: int) -> Steps[Won | None]:
        """The answer to a first try may have been lost: the node is this session's then."""
        node, found = yield from ask([GetData(znodes.CONTROLLER), GetData(znodes.CONTROLLER_EPOCH)])
        if node.error or found.error or node.owner != self._session_id():
            return None
        return Won(epoch, found.version) if znodes.read_epoch(found.data) == epoch else None

    def resign(self, won: Won) -> Steps[None]:
        check = Check(znodes.CONTROLLER_EPOCH, won.epoch_version)
        yield from ask([Multi((check, Delete(znodes.CONTROLLER)))])

    def term(self, won: Won) -> ControllerStore:
        return ControllerStore(won, self._forms)


class ControllerStore:
    def __init__(self, won: Won, forms: Forms) -> None:
        self._epoch, self._forms = won.epoch, forms
        self._check = Check(znodes.CONTROLLER_EPOCH, won.epoch_version)

    def _write(self, writes: Sequence[Write]) -> Steps[list[Result]]:
        """The result of each; Moved if the epoch is not this term's any more."""
        results: list[Result] = []
        for answer in (yield from ask([Multi((self._check, each)) for each in writes])):
            self._still_in_office(answer)
            results.append(answer.results[1] if answer.results else answer)
        return results

    def _still_in_office(self, answer: Result) -> None:
        if answer.results and answer.results[0].error in (zk.BAD_VERSION, zk.NO_NODE):
            raise Moved("another controller has been elected")

    # -- the beginning

    def begin(self) -> Steps[None]:
        yield from self._set_up_features()
        for path in (znodes.LOG_DIR_EVENTS, znodes.ISR_CHANGES):
            # What they tell of is read anyway.
            (found,) = yield from ask([GetChildren(path, watch=True)])
            yield from self._forget(path, expect(found, zk.NO_NODE).children)

    def _set_up_features(self) -> Steps[None]:
        """/feature says that versions of features are finalized here, though there are none in 3.9."""
        wanted = self._forms.features
        (found,) = yield from ask([GetData(znodes.FEATURE)])
        if expect(found, zk.NO_NODE).error:
            yield from ask([Create(znodes.FEATURE, znodes.write_features(wanted))])
            return
        now = znodes.read_features(found.data)
        finalized = now.finalized if now.status and wanted.status else {}
        changed = wanted._replace(finalized=finalized)
        if changed != now:
            yield from ask([SetData(znodes.FEATURE, znodes.write_features(changed), found.version)])

    # -- brokers

    def brokers(self) -> Steps[dict[int, Broker]]:
        (found,) = yield from ask([GetChildren(znodes.BROKER_IDS, watch=True)])
        ids = znodes.broker_ids(expect(found).children)
        results = yield from ask([GetData(znodes.broker(each)) for each in ids])
        brokers: dict[int, Broker] = {}
        for broker_id, result in zip(ids, results, strict=True):
            broker = yield from self._broker(broker_id, result)
            if broker is not None:
                brokers[broker_id] = broker
        return brokers

    def broker(self, broker_id: int) -> Steps[Broker | None]:
        (found,) = yield from ask([GetData(znodes.broker(broker_id), watch=True)])
        return (yield from self._broker(broker_id, found))

    def _broker(self, broker_id: int, result: Result) -> Steps[Broker | None]:
        """None: it is gone, or nobody could talk to it. One bad registration must not hide the others."""
        if expect(result, zk.NO_NODE).error:
            return None
        try:
            registration = znodes.read_registration(result.data)
        except znodes.MalformedZnode as malformed:
            yield Note(f"broker {broker_id} is left out: {malformed}", is_warning=True)
            return None
        missing = [each for each in self._forms.listeners if registration.listener(each) is None]
        if missing:
            yield Note(f"broker {broker_id} is left out: it has no listener {missing[0]}", is_warning=True)
            return None
        endpoints = tuple(Endpoint(*each) for each in registration.endpoints)
        return Broker(broker_id, result.czxid, endpoints, registration.rack)

    # -- topics

    def topics(self) -> Steps[list[str]]:
        (found,) = yield from ask([GetChildren(znodes.TOPICS, watch=True)])
        names = sorted(expect(found).children)
        legal = [name for name in names if may_be_a_directory(name, 0)]
        if len(legal) < len(names):
            strange = next(name for name in names if name not in legal)
            text = f"{len(names) - len(legal)} topics are left out, as {strange!r}: no name of a topic"
            yield Note(text, is_warning=True)
        return legal

    def topic_nodes(self, topics: Sequence[str]) -> Steps[dict[str, TopicNode]]:
        nodes: dict[str, TopicNode] = {}
        for some in chunks(topics):
            results = yield from ask([GetData(znodes.topic(each), watch=True) for each in some])
            for name, result in zip(some, results, strict=True):
                if expect(result, zk.NO_NODE).error:
                    continue
                try:
                    nodes[name] = node_of(znodes.read_assignment(result.data))
                except znodes.MalformedZnode as malformed:
                    yield Note(f"the topic {name} is left out: {malformed}", is_warning=True)
                yield
        return nodes

    def write_topic(
        self,
        topic: str,
        topic_id: bytes | None,
        assignments: Mapping[int, Assignment],
        *,
        only_these: bool = False,
    ) -> Steps[None]:
        path = znodes.topic(topic)
        while True:
            (found,) = yield from ask([GetData(path, watch=True)])
            others = {} if only_these else znodes.read_assignment(expect(found).data).partitions
            mine = {index: znodes.Replicas(*each) for index, each in assignments.items()}
            node = znodes.Assignment(topic_id or ZERO, dict(sorted({**others, **mine}.items())))
            (result,) = yield from self._write([SetData(path, znodes.write_assignment(node), found.version)])
            if not expect(result, zk.BAD_VERSION).error:
                return

    def new_topic_id(self) -> bytes:
        return random_uuid()

    # -- states of partitions

    def states(self, partitions: Sequence[Partition]) -> Steps[dict[Partition, Leadership]]:
        states: dict[Partition, Leadership] = {}
        for some in chunks(partitions):
            results = yield from ask([GetData(znodes.state(*each)) for each in some])
            for partition, result in zip(some, results, strict=True):
                if expect(result, zk.NO_NODE).error:
                    continue
                try:
                    states[partition] = leadership_of(znodes.read_state(result.data), result.version)
                except znodes.MalformedZnode as malformed:
                    yield Note(f"the state of {partition[0]}-{partition[1]}: {malformed}", is_warning=True)
        return states

    def create_states(self, states: Mapping[Partition, Leadership]) -> Steps[Written]:
        yield from self._write(
            [Create(znodes.partitions(each)) for each in dict.fromkeys(name for name, _ in states)]
        )
        yield from self._write([Create(znodes.partition(*each)) for each in states])
        written = Written({}, [], {})
        for some in chunks(list(states.items())):
            writes = [Create(znodes.state(*each), self._state(leadership)) for each, leadership in some]
            results = yield from self._write(writes)
            self._note(written, some, results, zk.NODE_EXISTS)
        return written

    def write_states(self, states: Mapping[Partition, Leadership]) -> Steps[Written]:
        written = Written({}, [], {})
        for some in chunks(list(states.items())):
            writes = [
                SetData(znodes.state(*each), self._state(leadership), leadership.partition_epoch)
                for each, leadership in some
            ]
            results = yield from self._write(writes)
            self._note(written, some, results, zk.BAD_VERSION)
        return written

    def _state(self, leadership: Leadership) -> bytes:
        return znodes.write_state(
            znodes.PartitionState(
                leadership.leader,
                leadership.leader_epoch,
                leadership.isr,
                self._epoch,
                self._recovery(leadership),
            )
        )

    def _recovery(self, leadership: Leadership) -> int:
        return leadership.recovery if self._forms.recovers else RECOVERED

    def _note(
        self,
        written: Written,
        states: Sequence[tuple[Partition, Leadership]],
        results: Sequence[Result],
        conflict: int,
    ) -> None:
        for (partition, leadership), result in zip(states, results, strict=True):
            if result.error == zk.OK:
                written.done[partition] = leadership._replace(
                    partition_epoch=result.version,
                    controller_epoch=self._epoch,
                    recovery=self._recovery(leadership),
                )
            elif result.error == conflict:
                written.conflicts.append(partition)
            else:
                written.failed[partition] = str(ZooKeeperError(result))

    # -- deletions

    def deletions(self) -> Steps[list[str]]:
        (found,) = yield from ask([GetChildren(znodes.DELETE_TOPICS, watch=True)])
        return sorted(expect(found).children)

    def forget_deletions(self, topics: Iterable[str]) -> Steps[None]:
        yield from self._delete([znodes.delete_topic(each) for each in topics])

    def delete_topic(self, topic: str) -> Steps[None]:
        """What is below the topic one by one; the topic, its config and the wish in one transaction, so that a topic made
        anew under the name keeps the config that it is made with."""
        last = (znodes.topic(topic), config_znodes.config("topics", topic), znodes.delete_topic(topic))
        while True:
            yield from self._delete((yield from self._below(znodes.topic(topic))))
            found = yield from ask([Exists(each) for each in last])
            paths = [
                path for path, each in zip(last, found, strict=True) if not expect(each, zk.NO_NODE).error
            ]
            if not paths:
                return
            (result,) = yield from ask([Multi((self._check, *(Delete(each) for each in paths)))])
            self._still_in_office(result)
            if not expect(result, zk.NO_NODE, zk.NOT_EMPTY).error:
                return

    def _below(self, path: str) -> Steps[list[str]]:
        """Every node under it, each behind its own children."""
        levels: list[list[str]] = [[path]]
        while levels[-1]:
            found = yield from ask([GetChildren(each) for each in levels[-1]])
            levels.append(
                [
                    f"{parent}/{child}"
                    for parent, each in zip(levels[-1], found, strict=True)
                    for child in sorted(each.children)
                ]
            )
        return [each for level in reversed(levels[1:]) for each in level]

    def _delete(self, paths: Sequence[str]) -> Steps[None]:
        for result in (yield from self._write([Delete(each) for each in paths])):
            expect(result, zk.NO_NODE, zk.NOT_EMPTY)

    # -- configs

    def unclean_elections(self, topics: Iterable[str]) -> Steps[dict[str, bool | None]]:
        names = list(topics)
        results = yield from ask([GetData(config_znodes.config("topics", each)) for each in names])
        enabled: dict[str, bool | None] = {}
        for name, result in zip(names, results, strict=True):
            try:
                configs = {} if expect(result, zk.NO_NODE).error else config_znodes.read_config(result.data)
            except znodes.MalformedZnode as malformed:
                yield Note(f"the topic {name} has no configs: {malformed}", is_warning=True)
                configs = {}
            enabled[name] = configs[UNCLEAN].lower() == "true" if UNCLEAN in configs else None
        return enabled

    # -- notifications

    def isr_changes(self) -> Steps[tuple[list[str], list[Partition]]]:
        names, data = yield from self._notifications(znodes.ISR_CHANGES)
        partitions: dict[Partition, None] = {}
        unread: list[str] = []
        for each in data:
            try:
                partitions.update(dict.fromkeys(znodes.read_partitions(each)))
            except znodes.MalformedZnode as malformed:
                unread.append(str(malformed))
        yield from note_of(unread)
        return names, list(partitions)

    def log_dir_failures(self) -> Steps[tuple[list[str], list[int]]]:
        names, data = yield from self._notifications(znodes.LOG_DIR_EVENTS)
        broker_ids: set[int] = set()
        unread: list[str] = []
        for each in data:
            try:
                broker_ids.add(znodes.read_log_dir_event(each))
            except znodes.MalformedZnode as malformed:
                unread.append(str(malformed))
        yield from note_of(unread)
        return names, sorted(broker_ids)

    def _notifications(self, path: str) -> Steps[tuple[list[str], list[bytes | None]]]:
        (found,) = yield from ask([GetChildren(path, watch=True)])
        names = sorted(expect(found).children)
        results = yield from ask([GetData(f"{path}/{each}") for each in names])
        return names, [each.data for each in results if not expect(each, zk.NO_NODE).error]

    def forget_isr_changes(self, names: Sequence[str]) -> Steps[None]:
        yield from self._forget(znodes.ISR_CHANGES, names)

    def forget_log_dir_failures(self, names: Sequence[str]) -> Steps[None]:
        yield from self._forget(znodes.LOG_DIR_EVENTS, names)

    def _forget(self, path: str, names: Sequence[str]) -> Steps[None]:
        yield from self._delete([f"{path}/{each}" for each in names])

    # -- wishes of tools before 2.4

    def asked_reassignments(self) -> Steps[dict[Partition, tuple[int, ...]]]:
        data = yield from self._wish(znodes.REASSIGN_PARTITIONS)
        try:
            wishes = {} if data is None else znodes.read_reassignment(data)
        except znodes.MalformedZnode as malformed:
            yield Note(str(malformed), is_warning=True)
            wishes = {}
        return {partition: tuple(replicas) for partition, replicas in wishes.items()}

    def write_asked_reassignments(self, targets: Mapping[Partition, tuple[int, ...]]) -> Steps[None]:
        if targets:
            data = znodes.write_reassignment(targets)
            (result,) = yield from self._write([SetData(znodes.REASSIGN_PARTITIONS, data)])
            expect(result, zk.NO_NODE)
        else:
            yield from self._delete([znodes.REASSIGN_PARTITIONS])

    def asked_elections(self) -> Steps[list[Partition]]:
        data = yield from self._wish(znodes.PREFERRED_ELECTION)
        try:
            return [] if data is None else znodes.read_partitions(data)
        except znodes.MalformedZnode as malformed:
            yield Note(str(malformed), is_warning=True)
            return []

    def forget_asked_elections(self) -> Steps[None]:
        yield from self._delete([znodes.PREFERRED_ELECTION])

    def _wish(self, path: str) -> Steps[bytes | None]:
        _, found = yield from ask([Exists(path, watch=True), GetData(path)])
        return None if expect(found, zk.NO_NODE).error else (found.data or b"")

    # -- producer ids

    def next_producer_ids(self, broker_id: int) -> Steps[tuple[int, int]]:
        while True:
            (found,) = yield from ask([GetData(znodes.PRODUCER_ID_BLOCK)])
            before = znodes.read_producer_ids(expect(found).data)
            first = 0 if before is None else before.last + 1
            if first > PRODUCER_IDS_END - PRODUCER_IDS:
                raise StoreFailed("all producer ids are taken")
            block = znodes.ProducerIdBlock(broker_id, first, first + PRODUCER_IDS - 1)
            data = znodes.write_producer_ids(block)
            (result,) = yield from self._write([SetData(znodes.PRODUCER_ID_BLOCK, data, found.version)])
            if not expect(result, zk.BAD_VERSION).error:
                return first, PRODUCER_IDS


def note_of(unread: Sequence[str]) -> Steps[None]:
    """One line about all notifications that cannot be read: anybody may write any number of them."""
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        yield Note(f"{unread[0]}{more}", is_warning=True)


def node_of(assignment: znodes.Assignment) -> TopicNode:
    return TopicNode(
        None if assignment.topic_id == ZERO else assignment.topic_id,
        {
            index: Assignment(*(tuple(some) for some in replicas))
            for index, replicas in assignment.partitions.items()
        },
    )


def leadership_of(state: znodes.PartitionState, version: int) -> Leadership:
    return Leadership(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        state.leader_recovery_state,
        version,
        state.controller_epoch,
    )
