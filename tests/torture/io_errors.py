"""EIO and ENOSPC at the N-th call of a kind, once or for all later calls.

The broker may continue without the directory that failed, or stop; it may refuse anything. It may not acknowledge what
is not there afterwards, serve a bad record, repeat a failed fsync, or end without a message. When the errors are over
it starts and has everything.
"""

from __future__ import annotations

import random
import re
import signal
from dataclasses import dataclass

from tests.torture.brokers import Injection, Tortured
from tests.torture.cases import Life, Outcome, life, put_template
from tests.torture.kills import make_template
from tests.torture.ledger import Fault

WRITES = (
    "write",
    "pwritev",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "unlink",
    "ftruncate",
    "mkdir",
    "fallocate",
)
READS = ("openat", "pread64", "read", "mmap", "sendfile", "copy_file_range")
SYNCS = ("fsync", "fdatasync")
NO_SPACE = ("write", "pwritev", "pwrite64", "mkdir", "fallocate", "rename", "openat")
ONCE = ("write",)  # threads also wake the loop and write log lines with it, which does not fail in reality
# It was asked to stop when it was ending already, and did not read signals any more.
STOPPED = (0, 1, -signal.SIGTERM)
SYNC = re.compile(r"f(?:data)?sync\(\d+<([^>]*\.log)>")


@dataclass(frozen=True)
class IoError:
    variant: str
    syscall: str
    number: int
    error: str
    lasting: bool
    fresh: bool
    seed: int

    @property
    def command(self) -> str:
        flags = f"{' --lasting' if self.lasting else ''}{' --fresh' if self.fresh else ''}"
        return (
            f"python -m tests.torture errors --variant {self.variant} --syscall {self.syscall}"
            f" --number {self.number} --error {self.error} --seed {self.seed}{flags}"
        )

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life(self.variant, self.seed, where, outcome) as one:
            if not self.fresh:
                put_template(one, where, make_template)
            self.suffer(one, outcome)
            one.come_back("a kill")
            one.check_log(errors=True)
        return outcome

    def suffer(self, one: Life, outcome: Outcome) -> None:
        broker = one.begin(Injection(self.syscall, self.number, self.error, self.lasting))
        came_up = broker.start_or_die()
        unexcused: Fault | None = None
        stayed = False
        if came_up:
            try:
                if not self.fresh:
                    one.verify("a kill")
                stayed = one.work(tolerant=True)
            except (ConnectionError, TimeoutError):
                pass
            except Fault as fault:
                unexcused = fault
        outcome.notes["served on" if stayed else "stopped by itself" if came_up else "did not start"] = 1
        if broker.injected() and not broker.hit_data():
            broker.kill()
            outcome.notes["not the data"] = 1
            return
        code = broker.end()
        if unexcused is not None and not broker.injected():
            raise unexcused
        if broker.hit_data():
            outcome.hit = f"{self.error} {broker.hit()}"
            check_end(broker, code, came_up)
        elif code != 0:
            raise Fault(f"the broker ended with {code}, and no call had failed")


def check_end(broker: Tortured, code: int, came_up: bool) -> None:
    if code not in STOPPED:
        what = signal.Signals(-code).name if code < 0 else str(code)
        raise Fault(f"the broker ended with {what}")
    text = broker.log_text()
    if code == 1 and not re.search(r" ERROR |^pykafkad: ", text, re.MULTILINE):
        raise Fault("the broker ended with 1 and does not say why")
    check_syncs(broker)


def check_syncs(broker: Tortured) -> None:
    """A log whose sync has failed is never synced again, since the second fsync would succeed wrongly."""
    failed: set[str] = set()
    for line in broker.calls():
        call = SYNC.search(line)
        if call is None:
            continue
        if call[1] in failed:
            raise Fault(f"{call[1]} is synced again after that had failed")
        if "(INJECTED)" in line:
            failed.add(call[1])


def sample(chance: random.Random, count: int, variants: list[str]) -> list[IoError]:
    """Some of each kind of call, with one of its possible errors."""
    found = []
    syscalls = [*WRITES, *WRITES, *READS]
    for index in range(count):
        syscall = syscalls[index % len(syscalls)]
        error = "ENOSPC" if syscall in NO_SPACE and chance.random() < 0.5 else "EIO"
        number = int(2 ** chance.uniform(0, 6.5))
        lasting, fresh = chance.random() < 0.5 and syscall not in ONCE, chance.random() < 0.3
        found.append(
            IoError(
                chance.choice(variants), syscall, number, error, lasting, fresh, chance.randrange(1 << 30)
            )
        )
    return found


def every_call(chance: random.Random, most: int, variants: list[str]) -> list[IoError]:
    """The calls of each kind one after the other."""
    return [
        IoError(
            chance.choice(variants),
            syscall,
            number,
            error,
            bool((number + lasting) % 2) and syscall not in ONCE,
            bool(number % 3 == 0),
            chance.randrange(1 << 30),
        )
        for lasting, error in ((0, "EIO"), (1, "ENOSPC"))
        for syscall in (NO_SPACE if error == "ENOSPC" else (*WRITES, *READS))
        for number in range(1, most + 1)
    ]
