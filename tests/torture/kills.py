"""kill -9 at the N-th call of a kind: of a new broker, or of one that starts again after a kill.

Each case is a life of its own: start (under strace), work until that call, finally a clean stop, in which the call may
happen as well. Then, in one of four cases, a start that is killed too, then one that must have everything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.torture.brokers import Injection
from tests.torture.cases import Life, Outcome, life, put_template
from tests.torture.ledger import Fault

SYSCALLS = ("write", "pwritev", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "ftruncate")
SECOND_KILL = 0.25
SECOND_NUMBERS = 12
TEMPLATE_SECONDS = 3.0
TEMPLATE_ROUNDS = 250


@dataclass(frozen=True)
class Kill:
    variant: str
    syscall: str
    number: int
    fresh: bool
    seed: int

    @property
    def command(self) -> str:
        fresh = " --fresh" if self.fresh else ""
        return (
            f"python -m tests.torture kill --variant {self.variant} --syscall {self.syscall}"
            f" --number {self.number} --seed {self.seed}{fresh}"
        )

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life(self.variant, self.seed, where, outcome) as one:
            if not self.fresh:
                put_template(one, where, make_template)
            outcome.hit = self.kill(one, Injection(self.syscall, self.number))
            if outcome.hit and one.chance.random() < SECOND_KILL:
                self.kill_start(one, outcome)
            one.come_back("a kill")
            one.check_log()
        return outcome

    def kill(self, one: Life, injection: Injection) -> str:
        """The call at which it was killed, or nothing if it never happened."""
        broker = one.begin(injection)
        if broker.start_or_die():
            try:
                if not self.fresh:
                    one.verify("a kill")
                one.work()
            except (ConnectionError, TimeoutError):
                pass
            broker.end()
        if broker.was_killed:
            return broker.hit()
        if broker.end() != 0:
            raise Fault(f"the broker ended with {broker.end()}")
        return ""

    def kill_start(self, one: Life, outcome: Outcome) -> None:
        """The next start, which has to recover, is killed as well."""
        again = Injection(one.chance.choice(SYSCALLS), one.chance.randint(1, SECOND_NUMBERS))
        broker = one.begin(again)
        if broker.start_or_die():
            broker.kill()
        outcome.notes["killed twice"] = 1


def make_template(one: Life) -> None:
    """A broker that has worked, was stopped, has continued and was killed."""
    for ending in ("stop", "kill"):
        broker = one.begin()
        broker.start()
        if not one.work(TEMPLATE_SECONDS, TEMPLATE_ROUNDS):
            raise Fault("the broker went away by itself")
        getattr(broker, ending)()
        if ending == "stop":
            broker.start()
            one.verify("a stop")
            broker.stop()


def sample(chance: random.Random, count: int, variants: list[str]) -> list[Kill]:
    """A few of all points, with each kind of call among them."""
    kills = []
    for index in range(count):
        syscall = SYSCALLS[index % len(SYSCALLS)]
        number = int(2 ** chance.uniform(0, 7 if syscall in ("pwritev", "write") else 5.5))
        kills.append(
            Kill(chance.choice(variants), syscall, number, chance.random() < 0.3, chance.randrange(1 << 30))
        )
    return kills


class Sweep:
    """Every number of each call, variant and beginning from 1 on, until a case does not reach it any more; then lower
    numbers at random, with other seeds. If there are very many calls the numbers grow faster.
    """

    DENSE = 40

    def __init__(self, chance: random.Random, variants: list[str]) -> None:
        self.chance = chance
        self.kinds = [
            (variant, syscall, fresh)
            for syscall in SYSCALLS
            for variant in variants
            for fresh in (False, True)
        ]
        self.next = dict.fromkeys(self.kinds, 1)
        self.missed: dict[tuple[str, str, bool], int] = {}
        self._at = 0

    def case(self) -> Kill:
        kind = self.kinds[self._at % len(self.kinds)]
        self._at += 1
        variant, syscall, fresh = kind
        bound = self.missed.get(kind)
        if bound is not None:
            number = self.chance.randint(1, bound)
        else:
            number = self.next[kind]
            self.next[kind] = number + 1 + max(0, number - self.DENSE) // 8
        return Kill(variant, syscall, number, fresh, self.chance.randrange(1 << 30))

    def learn(self, case: Kill, hit: bool) -> None:
        kind = case.variant, case.syscall, case.fresh
        if not hit and kind not in self.missed:
            self.missed[kind] = case.number
        if self.missed.get(kind, 2) <= 1 and kind in self.kinds and len(self.kinds) > 1:
            self.kinds.remove(kind)  # such a call never happens
