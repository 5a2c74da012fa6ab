"""Each key of server.properties at each extreme: a broker either refuses it with a message, or starts, serves, has its
timers expire, idles and stops. One broker for each value.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pykafkad import messages
from pykafkad.config import BROKER_KEYS
from pykafkad.config_table import HONOURED
from pykafkad.testing import Broker, BrokerError, Client
from tests.storm import values
from tests.storm.campaign import say
from tests.storm.configs import BATCH, BUSY_SECONDS, BUSY_SHARE, SHOWN, TIMER_SECONDS, WAIT_MS
from tests.storm.judge import CRASH, LATE, LOGGED, MEMORY, Fault
from tests.storm.known import is_known

# They name paths of this machine, or what each start must be given.
LEFT_OUT = frozenset({"log.dir", "log.dirs", "metadata.log.dir", "listeners", "advertised.listeners"})
MEMORY_KIB = 600 << 10
ADDRESS_SPACE_KIB = 16 << 20  # so that a value that takes all memory takes only the broker's
STOP_SECONDS = 15.0
REFUSED = (1, 2)  # the exit codes of a start that says why not


@dataclass(frozen=True)
class Start:
    key: str
    index: int
    value: str

    def __str__(self) -> str:
        return f"{self.key} #{self.index}"

    @property
    def shown(self) -> str:
        return f"{self.key}={self.value if len(self.value) <= SHOWN else self.value[:SHOWN] + '…'!r}"


class Limited(Broker):
    """A broker with a limited address space."""

    def _command(self) -> list[str]:
        return ["/bin/sh", "-c", f'ulimit -v {ADDRESS_SPACE_KIB}; exec "$@"', "sh", *super()._command()]


def all_of_them() -> Iterator[Start]:
    for name, key in BROKER_KEYS.items():
        if name not in LEFT_OUT:
            for index, value in enumerate(values.config_values(key)):
                if "\0" not in value:  # it cannot be passed as an argument
                    yield Start(name, index, value)


def chosen(match: str | None, seed: int, count: int | None) -> list[Start]:
    """The keys that the broker acts upon, or all of them."""
    every = list(all_of_them())
    if match is not None:
        return [each for each in every if all(word in str(each).split() for word in match.split())]
    if count is None:
        return every
    honoured = [each for each in every if each.key in HONOURED]
    return random.Random(seed).sample(honoured, min(count, len(honoured)))


def run(wanted: Sequence[Start], jobs: int) -> list[tuple[Start, Fault]]:
    began, found, served = time.monotonic(), [], 0
    with ThreadPoolExecutor(jobs) as pool:
        for start, (serves, faults) in zip(wanted, pool.map(try_it, wanted), strict=True):
            served += serves
            for fault in faults:
                if not is_known(fault.kind, fault.about, fault.text):
                    found.append((start, fault))
                    say(
                        f"FAULT: {fault}\n  {start.shown}\n  again: python -m tests.storm starts --match '{start}'"
                    )
    say(
        f"starts: {len(wanted)} values, {served} of them served, {len(found)} faults, {time.monotonic() - began:.0f} s"
    )
    return found


def try_it(start: Start) -> tuple[bool, list[Fault]]:
    """Whether the broker served, and what was wrong."""
    broker = Limited(config={start.key: start.value}, start=False)
    try:
        try:
            broker.start()
        except BrokerError as error:
            return False, refusal(broker, start, str(error))
        return True, [*served(broker, start), *stopped(broker, start)]
    except (OSError, ValueError) as problem:
        return True, [
            Fault("unserved", start.key, f"{type(problem).__name__}: {problem}; {broker.log_tail()[-300:]}")
        ]
    finally:
        broker.close()


def refusal(broker: Broker, start: Start, said: str) -> list[Fault]:
    assert broker._process is not None
    code = broker._process.poll()
    faults = in_log(broker, start)
    if code not in REFUSED:
        faults.append(Fault(CRASH, start.key, f"a start ended with {code}: {said[-300:]}"))
    return [fault for fault in faults if fault.kind != LOGGED or "Traceback" in fault.text]


def served(broker: Broker, start: Start) -> list[Fault]:
    """It does what brokers do, also with timers, and then nothing."""
    faults = []
    with broker.client() as client:
        client._socket.settimeout(TIMER_SECONDS)
        ask_everything(client)
        try:
            client.call(messages.FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1000, topics=[]), 6)
        except TimeoutError:
            faults.append(Fault(LATE, start.key, f"a fetch of {WAIT_MS} ms was not answered"))
    clock = (~broker.pid << 3) | 2
    share = 1.0
    for seconds in (0.05, BUSY_SECONDS):
        if share > BUSY_SHARE:
            ran, began = time.clock_gettime(clock), time.monotonic()
            time.sleep(seconds)
            share = (time.clock_gettime(clock) - ran) / (time.monotonic() - began)
    if share > BUSY_SHARE:
        faults.append(Fault("busy", start.key, f"it takes {share:.0%} of a processor with nothing to do"))
    resident = next(
        int(line.split()[1])
        for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines()
        if "VmHWM" in line
    )
    if resident > MEMORY_KIB:
        faults.append(Fault(MEMORY, start.key, f"{resident >> 10} MiB"))
    return faults


def ask_everything(client: Client) -> None:
    """Versions, a topic that is created automatically, a record to and from it, a coordinator, a producer id."""
    client.call(messages.ApiVersionsRequest(client_software_name="storm", client_software_version="1"), 3)
    topic = messages.MetadataRequest.MetadataRequestTopic(name="made")
    client.call(messages.MetadataRequest(topics=[topic]), 9)
    produce = messages.ProduceRequest
    row = produce.PartitionProduceData(index=0, records=BATCH)
    client.call(
        produce(
            acks=-1, timeout_ms=1000, topic_data=[produce.TopicProduceData(name="made", partition_data=[row])]
        ),
        9,
    )
    fetch = messages.FetchRequest
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
    client.call(
        fetch(max_wait_ms=0, max_bytes=10_000, topics=[fetch.FetchTopic(topic="made", partitions=[part])]), 11
    )
    client.call(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
    client.call(messages.InitProducerIdRequest(transaction_timeout_ms=1000), 4)


def stopped(broker: Broker, start: Start) -> list[Fault]:
    began = time.monotonic()
    code = broker.stop()
    faults = in_log(broker, start)
    if code:
        faults.append(Fault(CRASH, start.key, f"it was told to stop and ended with {code}"))
    if time.monotonic() - began > STOP_SECONDS:
        faults.append(Fault(LATE, start.key, f"the stop took {time.monotonic() - began:.0f} s"))
    return faults


def in_log(broker: Broker, start: Start) -> list[Fault]:
    lines = Path(broker.log_path).read_text(errors="replace").splitlines()
    bad = [line for line in lines if "Traceback" in line or "] ERROR" in line or "held the loop" in line]
    return [Fault(LOGGED, start.key, bad[0])] if bad else []
