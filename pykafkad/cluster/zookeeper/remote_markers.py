"""End markers of the transactions that this broker coordinates, in partitions that any broker leads.

Those of our own partitions are cluster/markers.py's; the others are asked for by WriteTxnMarkers, version 1, of whoever
the image says leads them. Invariants as there: `done` is called once, later, with a code for each partition. A partition
is only said not to exist where the image says so: a broker that does not know it may not have heard of it yet, and must
have its marker.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors
from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.zookeeper.queues import Queues
from pykafkad.logs import logger
from pykafkad.messages import WriteTxnMarkersRequest
from pykafkad.net.peers import Purpose
from pykafkad.slices import GO_ON, chunks, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.markers import Codes, Done, Marker, Markers, Partition
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.messages import WriteTxnMarkersResponse
    from pykafkad.net.peers import Connections
    from pykafkad.slices import Work

VERSION = 1
PARTITIONS_AT_ONCE = 64
PARTITIONS_IN_A_REQUEST = 2000

log = logger("transactions")
AskedMarker = WriteTxnMarkersRequest.WritableTxnMarker
AskedTopic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class Share(NamedTuple):
    """The partitions of a transaction that one other broker leads."""

    marker: Marker
    partitions: Sequence[Partition]
    done: Done


class ClusterMarkers:
    """Writes markers wherever the partitions are."""

    def __init__(
        self,
        node_id: int,
        image: Image,
        own: Callable[[], Markers],
        peers: Connections,
        loop: CoordinatorLoop,
    ) -> None:
        """`own`: who writes those of the partitions that this broker leads."""
        self._node_id, self._image, self._own, self._peers, self._loop = node_id, image, own, peers, loop
        self._purpose = Purpose(f"broker-{node_id}-txn-marker-sender")
        self._queues: Queues[Share] = Queues(
            self._send,
            lambda share: share.marker.producer_id,
            lambda share: len(share.partitions),
            PARTITIONS_IN_A_REQUEST,
        )

    def write(self, marker: Marker, partitions: Iterable[Partition], done: Done) -> None:
        by_leader: dict[int, list[Partition]] = {}

        def split() -> Work:
            for pause, partition in each(partitions, PARTITIONS_AT_ONCE):
                if pause:
                    yield GO_ON
                by_leader.setdefault(self._leader_of(partition), []).append(partition)

        def begin(problem: Exception | None) -> None:
            if problem is not None:
                raise problem
            self._begin(marker, by_leader, done)

        self._loop.in_slices(split(), begin)

    def _leader_of(self, partition: Partition) -> int:
        """Of a partition that does not exist we say so ourselves."""
        info = self._image.topics.get(partition[0])
        exists = info is not None and 0 <= partition[1] < len(info.partitions)
        return info.partitions[partition[1]].leader if info is not None and exists else self._node_id

    def _begin(self, marker: Marker, by_leader: dict[int, list[Partition]], done: Done) -> None:
        shares = [
            (leader, some)
            for leader, partitions in by_leader.items()
            for some in chunks(partitions, PARTITIONS_IN_A_REQUEST)
        ]
        if not shares:
            self._loop.call_soon(done, {})
        gathering = Gathering(len(shares), done)
        for leader, partitions in shares:
            if leader == self._node_id:
                self._own().write(marker, partitions, gathering.take)
            elif leader == NO_LEADER:
                self._loop.call_soon(gathering.take, dict.fromkeys(partitions, errors.NOT_LEADER_OR_FOLLOWER))
            else:
                self._queues.put(leader, Share(marker, partitions, gathering.take))

    # -- other brokers

    def _send(self, broker_id: int, shares: list[Share], answered: Callable[[], None]) -> None:
        def take(answer: WriteTxnMarkersResponse | OSError) -> None:
            if isinstance(answer, OSError):
                log.debug(f"markers that broker {broker_id} is asked for: {answer}")
                known: dict[int, Codes] = {}
            else:
                known = codes_in(answer)
            answered()
            for share in shares:
                self._loop.call_soon(share.done, self._told(share, known.get(share.marker.producer_id, {})))

        self._peers.to(broker_id, self._purpose).ask(request_for(shares), VERSION, take)

    def _told(self, share: Share, codes: Codes) -> Codes:
        return {partition: self._code(partition, codes.get(partition)) for partition in share.partitions}

    def _code(self, partition: Partition, code: int | None) -> int:
        """What was not answered may be written all the same, and is asked for again."""
        if code is None:
            return errors.REQUEST_TIMED_OUT
        if code == errors.UNKNOWN_TOPIC_OR_PARTITION and partition[0] in self._image.topics:
            return errors.NOT_LEADER_OR_FOLLOWER
        return code


class Gathering:
    """The codes of all shares of a transaction, told when the last has come."""

    def __init__(self, count: int, done: Done) -> None:
        self._left, self._done = count, done
        self._codes: Codes = {}

    def take(self, codes: Codes) -> None:
        self._codes.update(codes)
        self._left -= 1
        if not self._left:
            self._done(self._codes)


def request_for(shares: list[Share]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[asked(share) for share in shares])


def asked(share: Share) -> AskedMarker:
    indexes: dict[str, list[int]] = {}
    for topic, index in share.partitions:
        indexes.setdefault(topic, []).append(index)
    marker = share.marker
    return AskedMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        coordinator_epoch=marker.coordinator_epoch,
        topics=[AskedTopic(name=name, partition_indexes=some) for name, some in indexes.items()],
    )


def codes_in(answer: WriteTxnMarkersResponse) -> dict[int, Codes]:
    """By producer id."""
    return {
        result.producer_id: {
            (topic.name, each.partition_index): each.error_code
            for topic in result.topics
            for each in topic.partitions
        }
        for result in answer.markers
    }
