"""What a case of any kind consists of: its own home, a broker's life in it, and what must be true afterwards."""

from __future__ import annotations

import copy
import random
import shutil
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pykafkad.testing import BrokerError
from tests.torture.brokers import Injection, Tortured, scratch
from tests.torture.ledger import After, Fault, Ledger
from tests.torture.variants import config_of, directories_of
from tests.torture.verify import check_directories, verify
from tests.torture.workload import Workload

WORK_SECONDS = 3.0
ROUNDS = 150
AFTERWARDS_SECONDS = 0.5
AFTERWARDS_ROUNDS = 8
LOG_SHOWN, FAULT_SHOWN = 2500, 1500


@dataclass
class Outcome:
    """The result of a case. `hit` is the call that was hit, or empty if the case never reached it."""

    command: str
    hit: str = ""
    fault: str = ""
    notes: dict[str, int] = field(default_factory=dict)


class Life:
    """One data directory through several brokers, with one ledger for all of them."""

    def __init__(self, home: Path, variant: str, seed: int) -> None:
        self.home = home
        self.variant = variant
        self.chance = random.Random(seed)
        self.ledger = Ledger()
        self.directories = directories_of(variant, home)
        # A power cut may take from one log what another one rests on, as in Kafka; and where one directory of several
        # fails, transactions whose partitions are there cannot end.
        self.has_transactions = True
        self.broker: Tortured | None = None

    def begin(self, injection: Injection | None = None, **config: object) -> Tortured:
        """A broker that was not started yet."""
        self.close()
        (self.home / "trace").unlink(missing_ok=True)
        self.broker = Tortured(self.home, config_of(self.variant, self.home) | config, injection)
        return self.broker

    def close(self) -> None:
        if self.broker is not None:
            self.broker.close()
            self.broker = None

    def work(self, seconds: float = WORK_SECONDS, rounds: int = ROUNDS, *, tolerant: bool = False) -> bool:
        """Whether the broker was running to the end."""
        assert self.broker is not None
        transactions = self.has_transactions and not (tolerant and len(self.directories) > 1)
        workload = Workload(
            self.ledger, self.chance, self.directories, tolerant=tolerant, transactions=transactions
        )
        return workload.run(self.broker.host, self.broker.port, seconds, rounds)

    def verify(self, after: After) -> None:
        assert self.broker is not None
        with self.broker.client() as client:
            verify(client, self.ledger, after)

    def come_back(self, after: After) -> None:
        """A broker without any injection starts, has everything, accepts more, stops, and leaves a clean directory."""
        broker = self.begin()
        broker.start()
        self.verify(after)
        if not self.work(AFTERWARDS_SECONDS, AFTERWARDS_ROUNDS):
            raise Fault("the broker is gone after it had come back")
        self.stop()
        check_directories(self.directories, self.ledger)
        if self.chance.random() < 0.2:
            broker.start()
            self.verify("a stop")
            self.stop()

    def stop(self) -> None:
        assert self.broker is not None
        code = self.broker.stop()
        if code != 0:
            raise Fault(f"the broker was told to stop and ended with {code}")

    def check_log(self, *, errors: bool = False) -> None:
        """The log has no line that means a bug; with `errors` there may be error lines for the operator."""
        text = (self.home / "broker.log").read_text(errors="replace")
        if "Traceback" in text:
            raise Fault("there is a traceback in the broker's log")
        if not errors and " ERROR " in text:
            raise Fault("there are errors in the broker's log")


@contextmanager
def life(variant: str, seed: int, where: str | None, outcome: Outcome) -> Iterator[Life]:
    """A life in a new home. A Fault goes into the outcome, and then the home is kept."""
    home = scratch(where)
    one = Life(home, variant, seed)
    try:
        yield one
    except (Fault, BrokerError, OSError) as fault:
        one.close()
        outcome.fault = f"{str(fault)[:FAULT_SHOWN]}\n{log_end(home)}\nkept in {home}"
        (home / "fault").write_text(f"{outcome.command}\n{traceback.format_exc()}")
    else:
        one.close()
        shutil.rmtree(home, ignore_errors=True)


def log_end(home: Path) -> str:
    try:
        return (home / "broker.log").read_text(errors="replace")[-LOG_SHOWN:]
    except FileNotFoundError:
        return "(no log)"


_templates: dict[tuple[str, str | None], tuple[Path, Ledger]] = {}


def put_template(one: Life, where: str | None, make: Callable[[Life], None]) -> None:
    """Begin with the directory that a broker of this variant left; it is made once in each process."""
    key = one.variant, where
    if key not in _templates:
        home = scratch(where)
        first = Life(home, one.variant, 1)
        try:
            make(first)
        except Fault as fault:
            raise Fault(f"{fault}, in the beginning that is shared by many cases\n{log_end(home)}") from fault
        finally:
            first.close()
        _templates[key] = home, first.ledger
    home, ledger = _templates[key]
    for name in ("data", "jbod"):
        if (home / name).exists():
            subprocess.run(["cp", "-a", str(home / name), str(one.home / name)], check=True)
    one.ledger = copy.deepcopy(ledger)


def remove_templates() -> None:
    for home, _ in _templates.values():
        shutil.rmtree(home, ignore_errors=True)
    _templates.clear()
