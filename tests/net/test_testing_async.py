"""The broker for asyncio: its methods are awaited and hold up nothing, and it leaves nothing however it ends."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from pykafkad.testing import AsyncBroker, Broker, BrokerError, BrokerTimeout
from tests.net.test_testing_lifetime import is_gone, wait_until

SECONDS = 60.0
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, SECONDS * 2))


def test_it_is_started_awaited_and_gone() -> None:
    async def use() -> AsyncBroker:
        async with AsyncBroker(topics={"orders": 2}) as kafka:
            assert kafka.get_bootstrap_server() == kafka.bootstrap_servers
            assert len(await kafka.produce("orders", {"id": 1}, "x")) == 2
            assert (await kafka.records("orders", decode=str))[1].value == "x"
            assert (await kafka.records("orders", 1, decode=json.loads))[0].value == {"id": 1}
            await kafka.create_topic("other")
            await kafka.wait_for("orders", 2, timeout=SECONDS)
            assert len(await kafka.collect_until_idle("orders", idle=0.1)) == 2
            assert await kafka.lag("nobody", "orders") == 2
            assert await kafka.committed("nobody") == {}
            assert (await kafka.wait_for_group("nobody", state="Dead")) == await kafka.group("nobody")
            with pytest.raises(BrokerTimeout):
                await kafka.wait_for_assignment("nobody", "orders", timeout=0.1)
            await kafka.pause()
            await kafka.resume()
            await kafka.restart()
            await kafka.kill()
            assert not kafka.running
            await kafka.start()
            await kafka.reset()
            with pytest.raises(BrokerError, match="there is no topic orders"):
                await kafka.records("orders")
            return kafka

    kafka = run(use())
    assert not kafka.running and not os.path.exists(kafka.broker.log_path)


def test_what_waits_holds_up_neither_the_loop_nor_others() -> None:
    async def use() -> list[bytes | None]:
        async with AsyncBroker(topics=["orders"]) as kafka:
            waiting = [asyncio.create_task(kafka.records("orders", 1, timeout=SECONDS)) for _ in range(40)]
            while not all(map(asyncio.Task.done, waiting)):
                await kafka.produce("orders", "x")
                await asyncio.sleep(0)
            return [task.result()[0].value for task in waiting]

    assert run(use()) == [b"x"] * 40


def test_an_async_with_that_fails_leaves_nothing_and_shows_the_log() -> None:
    seen: list[AsyncBroker] = []

    async def use() -> None:
        async with AsyncBroker() as kafka:
            seen.append(kafka)
            await kafka.stop()  # it says so in its log
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failed:
        run(use())
    assert is_gone(seen[0].broker.pid) and not os.path.exists(seen[0].broker.log_path)
    assert "SIGTERM: stopping" in failed.value.__notes__[0]


def test_a_broker_that_cannot_start_leaves_nothing() -> None:
    kafka = AsyncBroker(config={"num.partitions": 0})

    async def use() -> None:
        async with kafka:
            raise AssertionError

    with pytest.raises(BrokerError, match="exit code 2"):
        run(use())
    assert not os.path.exists(kafka.broker.log_path)


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.05])
def test_a_start_that_is_cancelled_leaves_nothing(after_s: float) -> None:
    kafka = AsyncBroker()

    async def start() -> None:
        async with kafka:
            await asyncio.sleep(SECONDS)

    async def cancel() -> None:
        task = asyncio.create_task(start())
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel())
    assert not kafka.running
    assert not os.path.exists(os.path.dirname(kafka.broker.log_path))


def test_a_cancelled_call_is_forgotten() -> None:
    async def use() -> None:
        async with AsyncBroker(topics=["orders"]) as kafka:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(kafka.records("orders", 1, timeout=0.3), 0.05)
            await asyncio.sleep(0.5)  # the call comes to its end
            await kafka.produce("orders", "x")

    run(use())


def test_a_broker_of_somebody_else_is_awaited_too() -> None:
    with Broker(topics=["orders"]) as broker:

        async def use() -> None:
            await AsyncBroker.of(broker).produce("orders", "x")

        run(use())
        assert broker.records("orders")[0].value == b"x"


def test_aiokafka_works_with_it() -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def use() -> None:
        async with AsyncBroker(topics=["orders"], config=AT_ONCE) as kafka:
            consumer = aiokafka.AIOKafkaConsumer(
                "orders",
                bootstrap_servers=kafka.bootstrap_servers,
                group_id="readers",
                auto_offset_reset="earliest",
            )
            await consumer.start()
            try:
                await kafka.produce("orders", "x")
                assert (await asyncio.wait_for(consumer.getone(), SECONDS)).value == b"x"
                found = await kafka.wait_for_assignment("readers", "orders", members=1, timeout=SECONDS)
                assert found.assigned == {("orders", 0)}
                await consumer.commit()
                assert await kafka.lag("readers") == 0
            finally:
                await consumer.stop()
            await kafka.wait_for_group("readers", state="Empty", timeout=SECONDS)

    run(use())


def test_a_loop_that_is_closed_meanwhile_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    with Broker(topics=["orders"]) as broker:

        async def leave() -> None:
            task = asyncio.create_task(AsyncBroker.of(broker).records("orders", 1, timeout=0.2))
            await asyncio.sleep(0.05)
            task.cancel()

        asyncio.run(leave())
        time.sleep(0.4)
    assert "Traceback" not in capfd.readouterr().err


def test_it_shows_what_it_is() -> None:
    kafka = AsyncBroker()
    assert repr(kafka).startswith("<AsyncBroker <Broker ") and "not running" in repr(kafka)
    kafka.broker.close()
    wait_until(lambda: not kafka.running)
