"""Asks the controller for the ISRs that leaders here want (AlterPartition, KIP-497).

One request is under way at a time, with all partitions that wait; what comes meanwhile is in the next one. What is asked
for is read in the leadership when the request is built, so what is no longer wanted is not asked for. Invariant: a
leader's change is waiting, under way, answered, or stays asked for until the controller says who leads anew.
"""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.logs import logger
from pykafkad.messages import AlterPartitionRequest
from pykafkad.net.peers import Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.cluster.replica import Replica
    from pykafkad.messages import AlterPartitionResponse
    from pykafkad.net.peers import Connections
    from pykafkad.pure.replication import Leadership
    from pykafkad.quiet import Quiet
    from pykafkad.replication.fetching import Loop

ALTER_PARTITION, NEWEST = 56, 3
EPOCHS_SINCE = 3  # of the brokers in the ISR
TOPIC_IDS_SINCE = 2
UNKNOWN_EPOCH = -1  # nobody checks them on ZooKeeper
NO_EPOCHS: Mapping[int, int] = {}
AGAIN_MS = 50
RECOVERED = 0

# The ISR that was confirmed last counts again: who should come into it is going down.
TAKEN_BACK = (errors.OPERATION_NOT_ATTEMPTED, errors.INELIGIBLE_REPLICA)
# The controller knows better, and will say so: until then what is asked for counts as well.
LEFT_PENDING = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.FENCED_LEADER_EPOCH,
    errors.INVALID_UPDATE_VERSION,
    errors.INVALID_REQUEST,
    errors.NEW_LEADER_ELECTED,
)

Key = tuple[bytes | str, int]  # topic id, or name; partition
PartitionData = AlterPartitionRequest.PartitionData

log = logger("replication")


class IsrChanges:
    def __init__(
        self,
        node_id: int,
        loop: Loop,
        connections: Connections,
        quiet: Quiet,
        controller_id: Callable[[], int],
        broker_epoch: Callable[[], int],
        *,
        tells_epochs: bool = False,
    ) -> None:
        """`tells_epochs`: of the brokers in the ISR, at which a KRaft controller looks (KIP-903)."""
        self._tells_epochs = tells_epochs
        self._node_id, self._loop, self._connections, self._quiet = node_id, loop, connections, quiet
        self._controller_id, self._broker_epoch = controller_id, broker_epoch
        self._purpose = Purpose(str(node_id), asks_versions=True)
        self._waiting: dict[Replica, None] = {}
        self._asked: dict[Replica, Leadership] = {}  # by the request under way
        self._is_woken = False
        self._pause: Any = None
        self._closed = False

    def alter(self, replica: Replica, isr: frozenset[int]) -> None:
        """`isr` is what the leadership asks for, too."""
        self._waiting[replica] = None
        self._wake()

    def controller_changed(self) -> None:
        """Whoever was asked before need not answer any more."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._wake()

    def close(self) -> None:
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()

    # -- asking

    def _wake(self) -> None:
        if not self._is_woken and not self._closed:
            self._is_woken = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_woken = False
        if self._closed or self._asked or self._pause is not None:
            return
        wanted = {each: each.leadership for each in self._waiting if each.leadership is not None}
        self._waiting.clear()
        self._asked = {
            each: leadership for each, leadership in wanted.items() if leadership.asked_for is not None
        }
        if not self._asked:
            return
        controller_id = self._controller_id()
        if controller_id < 0:
            self._again()
            return
        link = self._connections.to(controller_id, self._purpose)
        link.ask_built(ALTER_PARTITION, NEWEST, self._request, partial(self._answered, controller_id))

    def _again(self) -> None:
        """All of it, in a moment."""
        self._waiting = dict.fromkeys([*self._asked, *self._waiting])
        self._asked = {}
        if not self._closed:
            self._pause = self._loop.call_later(AGAIN_MS, self._paused)

    def _paused(self) -> None:
        self._pause = None
        self._go_on()

    def _request(self, version: int) -> AlterPartitionRequest:
        topics: dict[str, AlterPartitionRequest.TopicData] = {}
        for replica, leadership in self._asked.items():
            topic = topics.get(replica.topic)
            if topic is None:
                topic = topics[replica.topic] = AlterPartitionRequest.TopicData(
                    topic_name=replica.topic, topic_id=replica.log.topic_id
                )
            epochs = self._epochs_in(leadership) if self._tells_epochs else {}
            topic.partitions.append(partition_data(replica.index, leadership, version, epochs))
        return AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _epochs_in(self, leadership: Leadership) -> dict[int, int]:
        followers = {node: each.broker_epoch for node, each in leadership.followers.items()}
        return {**followers, self._node_id: self._broker_epoch()}

    # -- the answer

    def _answered(self, controller_id: int, answer: AlterPartitionResponse | OSError) -> None:
        if isinstance(answer, OSError):
            self._say(f"controller {controller_id} was asked for other ISRs in vain: {answer}")
            self._again()
        elif answer.error_code:
            name = errors.NAMES.get(answer.error_code, str(answer.error_code))
            self._say(f"controller {controller_id} refused other ISRs: {name}")
            self._again()
        else:
            asked, self._asked = self._asked, {}
            self._told(asked, rows_of(answer))
            self._wake()

    def _told(
        self, asked: dict[Replica, Leadership], rows: dict[Key, AlterPartitionResponse.PartitionData]
    ) -> None:
        for replica, leadership in asked.items():
            row = rows.get((replica.log.topic_id, replica.index)) or rows.get((replica.topic, replica.index))
            if replica.leadership is not leadership:
                continue  # of an epoch that is over
            if row is None or row.error_code:
                self._refused(
                    replica, leadership, row.error_code if row is not None else errors.UNKNOWN_SERVER_ERROR
                )
            else:
                replica.isr_confirmed(row.leader_epoch, row.isr, row.partition_epoch)

    def _refused(self, replica: Replica, leadership: Leadership, code: int) -> None:
        name = errors.NAMES.get(code, str(code))
        log.info(f"{replica.name}: the controller refused another ISR: {name}")
        if code in TAKEN_BACK:
            replica.isr_refused(leadership.epoch)
        elif code not in LEFT_PENDING:
            self._waiting[replica] = None

    def _say(self, text: str) -> None:
        if self._quiet.allows(log, "requests for other ISRs", "controller"):
            log.warn(text)


def partition_data(
    index: int, leadership: Leadership, version: int, epochs: Mapping[int, int] = NO_EPOCHS
) -> PartitionData:
    isr = sorted(leadership.asked_for or ())
    data = PartitionData(
        partition_index=index,
        leader_epoch=leadership.epoch,
        partition_epoch=leadership.partition_epoch,
        leader_recovery_state=RECOVERED,
    )
    if version >= EPOCHS_SINCE:
        data.new_isr_with_epochs = [
            AlterPartitionRequest.BrokerState(broker_id=each, broker_epoch=epochs.get(each, UNKNOWN_EPOCH))
            for each in isr
        ]
    else:
        data.new_isr = isr
    return data


def rows_of(answer: AlterPartitionResponse) -> dict[Key, AlterPartitionResponse.PartitionData]:
    """By topic id, and where there is none by name."""
    return {
        (topic.topic_id if any(topic.topic_id) else topic.topic_name, row.partition_index): row
        for topic in answer.topics
        for row in topic.partitions
    }
