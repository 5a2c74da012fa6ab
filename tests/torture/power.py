"""Power failures: the file system under a working broker is shut down at a random moment, and mounted again.

With log.flush.interval.messages=1 nothing that was acknowledged is lost. By default a log may lose its end and nothing
else. Files are written back at random in between, since a disk does that in any order.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.torture.cases import Life, Outcome, life
from tests.torture.disks import Disk
from tests.torture.ledger import After

MEGABYTES = 48
LONGEST_SECONDS = 1.2
FLUSHED = "flushed"
VARIANTS = (FLUSHED, "usual", "flushed-now-and-then", FLUSHED, "preallocated")


@dataclass(frozen=True)
class PowerCuts:
    """Several failures of one disk, one after the other."""

    variant: str
    cuts: int
    seed: int

    @property
    def command(self) -> str:
        return f"python -m tests.torture power --variant {self.variant} --cuts {self.cuts} --seed {self.seed}"

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life(self.variant, self.seed, where, outcome) as one:
            disk = Disk(one.home, MEGABYTES)
            try:
                os.symlink(disk.path, one.home / "data")
                self.live(one, disk, outcome)
            except BaseException:
                keep(one, disk)
                raise
            finally:
                one.close()
                disk.close()
        return outcome

    def live(self, one: Life, disk: Disk, outcome: Outcome) -> None:
        after: After = "a kill" if self.variant == FLUSHED else "a power cut"
        one.has_transactions = self.variant == FLUSHED
        for _ in range(self.cuts):
            cut_one(one, disk)
            outcome.notes["power cuts"] = outcome.notes.get("power cuts", 0) + 1
            broker = one.begin()
            broker.start()
            one.verify(after)
            if after == "a power cut":
                forget_producers(one)
            broker.kill()
        one.come_back("a kill")
        one.check_log(errors=True)


def cut_one(one: Life, disk: Disk) -> None:
    broker = one.begin()
    broker.start()
    done = threading.Event()
    writer = threading.Thread(target=write_back, args=(disk.path, random.Random(one.chance.random()), done))
    cut = threading.Timer(one.chance.uniform(0.0, LONGEST_SECONDS), disk.cut_power)
    writer.start()
    cut.start()
    try:
        one.work(LONGEST_SECONDS, tolerant=True)
    finally:
        done.set()
        cut.join()
        writer.join()
        broker.kill()
    disk.unmount()
    disk.mount()


def write_back(path: Path, chance: random.Random, done: threading.Event) -> None:
    """As an operating system that writes some files back early, in no order."""
    while not done.wait(chance.uniform(0.0, 0.1)):
        try:
            files = [each for each in path.rglob("*") if each.is_file()]
            fd = os.open(chance.choice(files), os.O_RDONLY) if files else -1
        except OSError:
            continue
        if fd >= 0:
            try:
                os.fdatasync(fd)
            except OSError:
                pass
            os.close(fd)


def forget_producers(one: Life) -> None:
    """A producer whose last batches are lost begins anew."""
    for log in one.ledger.logs.values():
        if log.idempotent:
            log.producer_id, log.unsure, log.last_stored = -1, [], None


def keep(one: Life, disk: Disk) -> None:
    """Copy what is on the disk, for the investigation of a failure."""
    one.close()
    try:
        shutil.copytree(disk.path, one.home / "kept")
    except (OSError, shutil.Error):
        pass
