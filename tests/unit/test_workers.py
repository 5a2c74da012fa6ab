"""Blocking work comes back to the loop, in as few threads as it needs."""

from queue import SimpleQueue

from pykafkad.workers import LIMIT, Workers


def loop(workers: Workers, posted: SimpleQueue, count: int) -> None:
    for _ in range(count):
        callback, *args = posted.get(timeout=10)
        callback(*args)


def test_results_and_errors_come_back_on_the_loop():
    posted: SimpleQueue = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    results: list = []
    workers.submit(lambda: 42, results.append)
    workers.submit(lambda: 1 // 0, results.append)
    assert workers.outstanding == 2
    loop(workers, posted, 2)
    assert workers.outstanding == 0
    assert 42 in results and any(isinstance(result, ZeroDivisionError) for result in results)
    workers.stop()


def test_no_more_threads_than_the_limit():
    posted: SimpleQueue = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    gate: SimpleQueue = SimpleQueue()
    done: list = []
    for _ in range(LIMIT * 3):
        workers.submit(gate.get, done.append)
    assert workers._threads == LIMIT
    for number in range(LIMIT * 3):
        gate.put(number)
    loop(workers, posted, LIMIT * 3)
    assert sorted(done) == list(range(LIMIT * 3))
    workers.stop()
