"""Damaged files of transactions: what can be made anew from the log is, and nothing of a transaction is lost or seen.

A broker is killed or stopped after transactions of all kinds, open ones among them. One file of the topics, of
`__transaction_state` or of `__consumer_offsets` is damaged. A broker that starts with it must have all that was
committed, and nothing else; of what can only be read from the damaged bytes it must at least tell, and serve on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pykafkad.messages import FindCoordinatorRequest
from tests.torture import transactional
from tests.torture.cases import Life, Outcome, life
from tests.torture.ledger import Fault
from tests.torture.pipeline import Pipeline
from tests.torture.verify import check_directories, committed

ROUNDS = 30
CONFIG: dict[str, object] = {"index.interval.bytes": 256, "retention.ms": -1}
SETTINGS = {
    "transactions-killed": False,
    "transactions-stopped": True,
}  # whether the broker was stopped in order
STATE, OFFSETS = "__transaction_state-*", "__consumer_offsets-*"

Change = Callable[[Path, random.Random], None]


def gone(path: Path, chance: random.Random) -> None:
    path.unlink()


def emptied(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def noise(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(34 * 3 + 1))


def half_an_entry(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + bytes(17))


def doubled(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() * 2)


def noise_behind(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(100))


@dataclass(frozen=True)
class Harm:
    """A change of each file that is named so, in directories that are."""

    directories: str
    files: str
    change: Change
    stopped: bool = True  # whether it is found out after a clean stop as well, when little is read

    def __str__(self) -> str:
        return f"{self.directories}/{self.files}: {self.change.__name__}"

    def apply(self, data: Path, chance: random.Random) -> None:
        for directory in sorted(data.glob(self.directories)):
            if any(
                path.stat().st_size for path in directory.glob("*.log")
            ):  # else nobody looks at the others
                for path in sorted(directory.glob(self.files)):
                    self.change(path, chance)


TOPICS = "[lr]*t-0"  # left and right
HARMS = [
    Harm(TOPICS, "*.txnindex", gone, stopped=False),
    Harm(TOPICS, "*.txnindex", emptied, stopped=False),
    Harm(TOPICS, "*.txnindex", noise),
    Harm(TOPICS, "*.txnindex", half_an_entry),
    Harm(TOPICS, "*.txnindex", doubled, stopped=False),
    # As for Kafka, a log that was stopped in order and has no snapshot at all has no producers to find.
    Harm(TOPICS, "*.snapshot", gone, stopped=False),
    Harm(TOPICS, "*.log", noise_behind, stopped=False),
    *(Harm(where, "*.snapshot", change) for where in (TOPICS, STATE, OFFSETS) for change in (noise, emptied)),
    *(Harm(where, "*.snapshot", gone) for where in (STATE, OFFSETS)),
    *(Harm(where, "*.log", noise_behind, stopped=False) for where in (STATE, OFFSETS)),
    *(
        Harm(where, files, change)
        for where in (TOPICS, STATE, OFFSETS)
        for files in ("*.index", "*.timeindex")
        for change in (gone, emptied, noise)
    ),
]


@dataclass(frozen=True)
class DamagedTransactions:
    setting: str
    seed: int
    only: int

    @property
    def command(self) -> str:
        return (
            f"python -m tests.torture damage --setting {self.setting} --seed {self.seed} --only {self.only}"
        )

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life("usual", self.seed, where, outcome) as one:
            outcome.notes["damages of transactions"] = 1
            self.live(one)
        return outcome

    def live(self, one: Life) -> None:
        harm = HARMS[self.only]
        begin(one, SETTINGS[self.setting])
        harm.apply(one.home / "data", one.chance)
        broker = one.begin()
        broker.start()
        try:
            with broker.client() as client:
                transactional.settle(client, one.ledger.producers, committed)
            transact(one)
            with broker.client() as client:
                transactional.settle(client, one.ledger.producers, committed)
        except Fault as fault:
            raise Fault(f"{harm}: {fault}") from fault
        one.stop()
        check_directories(one.directories)
        one.check_log(errors=True)


def begin(one: Life, is_stopped: bool) -> None:
    """A broker that has worked, and is gone."""
    one.ledger.producers = transactional.producers()
    broker = one.begin()
    broker.start()
    for topic in transactional.TOPICS:
        broker.create_topic(topic, 1, CONFIG)
    with broker.client() as client:
        client.call(FindCoordinatorRequest(coordinator_keys=["group-of-giver"]), 4)
        client.call(FindCoordinatorRequest(key_type=transactional.TRANSACTION, coordinator_keys=["giver"]), 4)
        for producer in one.ledger.producers.values():
            transactional.come_back(client, producer)
            committed(client, producer.group)
    transact(one)
    if is_stopped:
        one.stop()
    else:
        broker.kill()


def transact(one: Life) -> None:
    def passes(code: int, what: str) -> bool:
        raise Fault(f"{what} was answered {code}")

    assert one.broker is not None
    with Pipeline(one.broker.host, one.broker.port) as client:
        for _ in range(ROUNDS):
            producer = one.chance.choice(list(one.ledger.producers.values()))
            transactional.transact(client, producer, one.chance, one.ledger.next_number, passes)


def cases(chance: random.Random, at_most: int) -> list[DamagedTransactions]:
    """Some of them all, or all of them."""
    found = [
        DamagedTransactions(setting, chance.randrange(1 << 30), number)
        for setting, is_stopped in SETTINGS.items()
        for number, harm in enumerate(HARMS)
        if harm.stopped or not is_stopped
    ]
    return chance.sample(found, min(at_most, len(found)))
