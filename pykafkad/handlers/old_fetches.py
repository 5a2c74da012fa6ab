"""Fetch to version 3, in a cluster on ZooKeeper: the records of formats 0 and 1 that clients of before Kafka 0.11 know.

Batches are read by a thread and converted in steps (down_conversion.py). To bound what that takes, an answer is made of
no more than MOST bytes of the log, or of one batch; clients see it as a full answer. To version 2 a batch that is larger
than what was asked for does not come at all, as in Kafka: the client has to ask for more.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad import down_conversion, errors
from pykafkad.compression import ALWAYS_ALLOWED_BYTES
from pykafkad.errors import KafkaError
from pykafkad.handlers.fetching import failure
from pykafkad.messages import FetchResponse
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers.fetching import Fetch, Reading
    from pykafkad.hot.segment import FileRange
    from pykafkad.slices import Work

MOST = 1 << 20
OLD_FORMAT_SINCE = 2  # format 1
ONE_BATCH_SINCE = 3  # however large it is


@lru_cache(maxsize=8)
def converting(kind: Any) -> type[Fetch]:
    """The same kind of fetch, which converts what it has read."""

    class Converting(kind):  # type: ignore[misc]
        def at_once(self) -> Reading:
            return self.in_slices()  # type: ignore[no-any-return]

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.limit: int = min(self.limit, MOST)

        @property
        def at_least_one(self) -> bool:
            return self.context.version >= ONE_BATCH_SINCE and bool(super().at_least_one)

        def read_or_wait(self, left_ms: int, found: int | None = None) -> Reading:
            answer: FetchResponse | Context = yield from super().read_or_wait(left_ms, found)
            if isinstance(answer, FetchResponse):
                yield from self.convert(answer)
            return answer

        def convert(self, response: FetchResponse) -> Work[None]:
            offsets = {followed.key: followed.fetch_offset for followed in self.followed}
            for topic in response.responses:
                for place, row in enumerate(topic.partitions):
                    replica = self.broker.replicas.get((topic.topic, row.partition_index))
                    if replica is not None:
                        offset = offsets[topic.topic, row.partition_index]
                        try:
                            yield from self.convert_row(replica.log.config, row, offset)
                        except KafkaError as error:
                            row = failure(row.partition_index, error.code)
                            row.records = None
                            topic.partitions[place] = row
                    yield

        def convert_row(self, config: Any, row: FetchResponse.PartitionData, offset: int) -> Work[None]:
            if config["compression.type"] == "zstd":
                raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
            if not (self.is_follower or config["message.downconversion.enable"]):
                raise KafkaError(errors.UNSUPPORTED_VERSION)
            if row.error_code == errors.KAFKA_STORAGE_ERROR:  # which these clients do not know
                row.error_code = errors.NOT_LEADER_OR_FOLLOWER
            if row.records:
                magic = down_conversion.OLD
                if self.context.version < OLD_FORMAT_SINCE:
                    magic = down_conversion.OLDEST
                range_: Any = row.records
                data = yield from self.bytes_of(range_)
                stay = self.broker.unfolding.stay()
                try:
                    yield from stay.keep(ALWAYS_ALLOWED_BYTES)
                    row.records = yield from down_conversion.converted(data, magic, offset)
                finally:
                    stay.leave()

        def bytes_of(self, found: FileRange) -> Work[bytes]:
            wait = Wait()
            self.broker.submit(found.read, wait.come)
            data = yield from wait.result()
            if isinstance(data, BaseException):
                raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER) from None
            return bytes(data)

    return Converting
