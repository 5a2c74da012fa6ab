"""Producer ids for idempotent producers: taken from blocks of 1000 that are in the metadata log first
(KIP-730).

Invariant: no id is handed out before the record that takes its block is on disk, so that a crash wastes ids
and never gives one twice. The next block is asked for before the last id is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pykafkad.cluster.turns import tell
from pykafkad.errors import KafkaError
from pykafkad.messages import ProducerIdsRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.commits import Commits
    from pykafkad.cluster.image import Image

BLOCK_SIZE = 1000
ASK_AHEAD = 100  # ids left when the next block is asked for

Done = Callable[[int | KafkaError], None]


class ProducerIds:
    def __init__(self, image: Image, commits: Commits, node_id: int) -> None:
        self._image = image
        self._commits = commits
        self._node_id = node_id
        self._blocks: list[range] = []
        self._left = 0
        self._asking = False
        self._waiting: deque[Done] = deque()

    def take(self, done: Done) -> None:
        """Calls `done` with a new id, at once if there is one in hand."""
        self._waiting.append(done)
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._left:
            block = self._blocks[0]
            producer_id = block[0]
            self._blocks[:1] = [block[1:]] if len(block) > 1 else []
            self._left -= 1
            tell(self._waiting.popleft(), producer_id)
        if self._left < ASK_AHEAD and not self._asking and (self._waiting or self._blocks):
            self._ask()

    def _ask(self) -> None:
        self._asking = True
        first = self._image.next_producer_id
        broker = self._image.brokers[self._node_id]
        record = ProducerIdsRecord(
            broker_id=self._node_id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
        )
        self._commits.add([(record, 0)], lambda error: self._got(range(first, first + BLOCK_SIZE), error))

    def _got(self, block: range, error: KafkaError | None) -> None:
        self._asking = False
        if error is None:
            self._blocks.append(block)
            self._left += len(block)
            self._serve()
            return
        waiting, self._waiting = self._waiting, deque()
        for done in waiting:
            tell(done, error)
