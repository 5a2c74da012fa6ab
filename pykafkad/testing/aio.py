"""The broker for asyncio: the same methods, awaited.

    async with AsyncBroker(topics={"orders": 3}) as kafka:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        ...
        records = await kafka.records("orders", 3)

Each call runs in a thread of its own, so that the event loop goes on, however many wait at a time; a cancelled call
ends by itself at its timeout, and what it finds is forgotten. A cancelled `async with` has ended the process that was
being started before it is left.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import ParamSpec, TypeVar, overload

from pykafkad.testing.broker import Broker
from pykafkad.testing.operations import IDLE_S, TIMEOUT_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Any, Concatenate

    from pykafkad.testing.record import Record

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


async def in_thread(call: Callable[[], T]) -> T:
    """What it returns or raises; the loop is not held."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, problem: BaseException | None) -> None:
        if future.done():
            return  # it was cancelled
        if problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, problem = None, None
        try:
            result = call()
        except BaseException as caught:
            problem = caught
        try:
            loop.call_soon_threadsafe(settle, result, problem)
        except RuntimeError:
            pass  # the loop was closed: nobody waits any more

    threading.Thread(target=run, name="pykafkad.testing", daemon=True).start()
    return await future


def awaited(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method of a Broker as one of an AsyncBroker."""

    async def call(self: AsyncBroker, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(lambda: method(self.broker, *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class AsyncBroker:
    """A broker that `async with` starts and ends. The arguments are those of Broker. `AsyncBroker.of(broker)` is one
    that runs already, such as that of the fixture `kafka`, and leaves its end to its owner."""

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        log_level: str = "info",
        single_node: bool = True,
    ) -> None:
        self.broker = Broker(
            topics,
            config,
            host=host,
            port=port,
            data=data,
            log_level=log_level,
            single_node=single_node,
            start=False,
        )

    @classmethod
    def of(cls, broker: Broker) -> AsyncBroker:
        found = cls.__new__(cls)
        found.broker = broker
        return found

    def __repr__(self) -> str:
        return f"<AsyncBroker {self.broker!r}>"

    async def __aenter__(self) -> AsyncBroker:
        try:
            await in_thread(self.broker.start)
        except BaseException:
            await in_thread(self.broker.close)  # cancelled: it waits for the start that is under way
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(lambda: self.broker.__exit__(kind, error, trace))

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for a client's bootstrap_servers."""
        return self.broker.bootstrap_servers

    def get_bootstrap_server(self) -> str:
        return self.broker.bootstrap_servers

    @property
    def running(self) -> bool:
        return self.broker.running

    def log_tail(self) -> str:
        return self.broker.log_tail()

    start = awaited(Broker.start)
    stop = awaited(Broker.stop)
    kill = awaited(Broker.kill)
    pause = awaited(Broker.pause)
    resume = awaited(Broker.resume)
    restart = awaited(Broker.restart)
    close = awaited(Broker.close)
    create_topic = awaited(Broker.create_topic)
    produce = awaited(Broker.produce)
    wait_for = awaited(Broker.wait_for)
    group = awaited(Broker.group)
    wait_for_group = awaited(Broker.wait_for_group)
    wait_for_assignment = awaited(Broker.wait_for_assignment)
    committed = awaited(Broker.committed)
    lag = awaited(Broker.lag)
    reset = awaited(Broker.reset)

    @overload
    async def records(
        self, topic: str, n: int | None = None, *, partition: int | None = None, timeout: float = TIMEOUT_S
    ) -> list[Record[bytes]]: ...
    @overload
    async def records(
        self,
        topic: str,
        n: int | None = None,
        *,
        decode: Callable[[bytes], V],
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[V]]: ...
    async def records(
        self,
        topic: str,
        n: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[Any]]:
        """The first `n` records of a topic, waited for; without `n` those that are there now."""
        return await in_thread(
            lambda: self.broker.records(topic, n, decode=decode, partition=partition, timeout=timeout)
        )

    @overload
    async def collect_until_idle(
        self,
        topic: str,
        *,
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[bytes]]: ...
    @overload
    async def collect_until_idle(
        self,
        topic: str,
        *,
        decode: Callable[[bytes], V],
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[V]]: ...
    async def collect_until_idle(
        self,
        topic: str,
        *,
        decode: Callable[[bytes], Any] = bytes,
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[Any]]:
        """All records of a topic, once none has come for `idle` seconds."""
        return await in_thread(
            lambda: self.broker.collect_until_idle(
                topic, decode=decode, idle=idle, partition=partition, timeout=timeout
            )
        )
