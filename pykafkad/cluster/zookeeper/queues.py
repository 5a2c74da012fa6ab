"""What is to be asked of other brokers: one request to a broker is under way, and what comes meanwhile goes in the next.

So requests are as large as the other side is slow, as in Kafka's senders of end markers and of questions about
transactions. Invariant: no two items with one key are in one request, since answers name the key.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    # Sends some items to a broker, and calls the last argument when they are answered, or will not be.
    Send = Callable[[int, list["T"], Callable[[], None]], None]

T = TypeVar("T")


class Queues(Generic[T]):
    def __init__(
        self, send: Send[T], key: Callable[[T], Hashable], weight: Callable[[T], int], most: int
    ) -> None:
        """`most`: the weight of one request, beyond which only its first item may take it."""
        self._send, self._key, self._weight, self._most = send, key, weight, most
        self._waiting: dict[int, deque[T]] = {}  # of the brokers to which a request is under way

    def put(self, broker_id: int, item: T) -> None:
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.append(item)
            return
        self._waiting[broker_id] = deque()
        self._send(broker_id, [item], partial(self._next, broker_id))

    def _next(self, broker_id: int) -> None:
        some = self._take(self._waiting[broker_id])
        if some:
            self._send(broker_id, some, partial(self._next, broker_id))
        else:
            del self._waiting[broker_id]

    def _take(self, waiting: deque[T]) -> list[T]:
        some: dict[Hashable, T] = {}
        weight = 0
        while waiting:
            key = self._key(waiting[0])
            weight += self._weight(waiting[0])
            if some and (key in some or weight > self._most):
                break
            some[key] = waiting.popleft()
        return list(some.values())
