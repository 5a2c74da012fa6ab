"""The callers of a machine's operations: requests that are being handled, with their API's way to refuse.

A request that is handled in slices is answered many passes later. Its AskerInSlices then finds out whether all that the
answer depends on was written, and lets the answer wait for what is not committed yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.shard import Shard

    Response = TypeVar("Response")
    Refuse = Callable[[KafkaError], Any]

ACKS = -1  # what is told is below the high watermark


class Asker(Caller):
    """A request, and `refuse`, which makes the answer of a KafkaError."""

    __slots__ = ("refuse",)

    def __init__(self, context: Context, refuse: Refuse) -> None:
        self.context = context
        self.may_describe = None
        self.refuse = context.refuse = refuse

    def rests_on(self, shard: Shard) -> None:
        """The answer depends on what the shard has not committed yet."""
        timeout_ms = shard.runtime.kind.commit_timeout_ms
        shard.made.append((shard, ACKS, timeout_ms, self.context, not_committed, self))

    @property
    def version(self) -> int:
        version: int = self.context.version
        return version

    @property
    def client_id(self) -> str:
        client_id: str = self.context.client_id
        return client_id

    @property
    def client_host(self) -> str:
        from pykafkad.pure.hosts import java_text

        return f"/{java_text(self.context.connection.peer[0])}"


class AskerInSlices(Asker):
    """A request whose operations are spread over several passes, and which is answered after them."""

    __slots__ = ("_shards",)

    def __init__(self, context: Context, refuse: Refuse) -> None:
        super().__init__(context, refuse)
        self._shards: dict[Shard, None] = {}

    def rests_on(self, shard: Shard) -> None:
        self._shards[shard] = None

    def answer(self, response: Response) -> Response:
        """The answer to give: the response, or a refusal if something that it depends on was not written."""
        for shard in self._shards:
            if not shard.is_active:
                refusal: Response = self.refuse(KafkaError(errors.NOT_COORDINATOR))
                return refusal
            if shard.is_uncommitted:
                super().rests_on(shard)
        return response


def not_committed(asker: Asker, context: Context, code: int) -> None:
    """What was not written is not so for any coordinator; what took too long may be committed yet."""
    late = code == errors.REQUEST_TIMED_OUT
    context.response = asker.refuse(
        KafkaError(errors.COORDINATOR_NOT_AVAILABLE if late else errors.NOT_COORDINATOR)
    )
