"""A full disk: the broker stops or refuses writes, nothing that it acknowledged is lost, and with space it continues."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.torture.cases import Life, Outcome, life
from tests.torture.disks import Disk
from tests.torture.io_errors import STOPPED
from tests.torture.ledger import Fault

MEGABYTES = 16
PIECE = 1 << 20
ROOM_BYTES = (0, 64 << 10, 300 << 10)
SECONDS = 2.0


@dataclass(frozen=True)
class FullDisk:
    variant: str
    seed: int

    @property
    def command(self) -> str:
        return f"python -m tests.torture full --variant {self.variant} --seed {self.seed}"

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life(self.variant, self.seed, where, outcome) as one, Disk(one.home, MEGABYTES) as disk:
            try:
                (one.home / "data").symlink_to(disk.path)
                self.live(one, disk, outcome)
            finally:
                one.close()
        return outcome

    def live(self, one: Life, disk: Disk, outcome: Outcome) -> None:
        broker = one.begin()
        broker.start()
        if not one.work(SECONDS, one.chance.randint(1, 60)):
            raise Fault("the broker is gone before the disk is full")
        ballast = disk.path / "ballast"
        fill(ballast, one.chance.choice(ROOM_BYTES))
        gone = not one.work(SECONDS, 1 << 30, tolerant=True)
        outcome.hit = "full, stopped by itself" if gone else "full, served on"
        code = broker.end()
        if code not in STOPPED:
            raise Fault(f"the broker ended with {code}")
        ballast.unlink()
        one.come_back("a kill")
        one.check_log(errors=True)


def fill(path: Path, room: int) -> None:
    """Write until the disk is full, and then free `room` bytes."""
    size = 0
    with open(path, "wb", buffering=0) as file:
        piece = PIECE
        while piece:
            try:
                size += file.write(bytes(piece))
            except OSError:
                piece //= 2
        file.truncate(max(0, size - room))
