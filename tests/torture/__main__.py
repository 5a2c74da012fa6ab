"""`make torture`: brokers that are killed, damaged, that run out of disk space or lose their power.

    python -m tests.torture                 everything, at length
    python -m tests.torture --short         a sample of everything, as in make test
    python -m tests.torture KIND            one kind at length: kill, damage, errors, full, power
    python -m tests.torture KIND --seed N … one case of it, as a failure prints it

What is done follows from the seed (--seed or SEED); the timing of the processes does not. A kind that cannot run on
this machine is skipped with a message, and fails under REQUIRE_ALL=1. Exit code: 0 nothing failed, 1 something did, 2 a
wrong command line.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys

from tests.torture import campaign, damaged_transactions, disks, io_errors, kills, power
from tests.torture.brokers import LARGEST_NUMBER, SYSCALLS
from tests.torture.campaign import Case, Tally, say
from tests.torture.damaged import SETTINGS, Damaged
from tests.torture.damaged_transactions import DamagedTransactions
from tests.torture.full_disk import FullDisk
from tests.torture.io_errors import IoError
from tests.torture.kills import Kill
from tests.torture.power import PowerCuts
from tests.torture.variants import VARIANTS

KINDS = ("kill", "damage", "errors", "full", "power")
KILL_POINTS = 2000
ERROR_CALLS = 40
FULL_DISKS = 20
POWER_CUTS = 200
CUTS_A_DISK = 5
SHORT = {"kill": 16, "damage": 2, "errors": 16, "full": 1, "power": 2}
SHORT_DAMAGES = 250
SHORT_CUTS = 2
SHORT_TRANSACTIONS = 4


class Options(argparse.Namespace):
    kind: str | None
    short: bool
    seed: int | None
    jobs: int
    where: str | None
    points: int
    variant: str | None
    syscall: str | None
    number: int | None
    error: str
    lasting: bool
    fresh: bool
    setting: str | None
    only: int
    cuts: int | None


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description="Tortures brokers; see the module."
    )
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--short", action="store_true", help="a sample, as in make test")
    parser.add_argument("--seed", type=int, default=int(os.environ["SEED"]) if "SEED" in os.environ else None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at a time")
    parser.add_argument(
        "--where", help="where the brokers' data is; the directory for temporary files by default"
    )
    parser.add_argument("--points", type=int, default=KILL_POINTS, help="how many kill points are wanted")
    one = parser.add_argument_group("one case")
    one.add_argument("--variant", choices=VARIANTS)
    one.add_argument("--syscall", choices=SYSCALLS)
    one.add_argument("--number", type=int)
    one.add_argument("--error", default="EIO")
    one.add_argument("--lasting", action="store_true")
    one.add_argument("--fresh", action="store_true")
    one.add_argument("--setting", choices=[*SETTINGS, *damaged_transactions.SETTINGS])
    one.add_argument("--only", type=int, default=-1)
    one.add_argument("--cuts", type=int)
    options = parser.parse_args(arguments, namespace=Options())
    if options.number is not None and not 1 <= options.number <= LARGEST_NUMBER:
        parser.error(f"--number: 1 to {LARGEST_NUMBER}")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    single = one_case(options, options.seed)
    if single is not None:
        tallies = [campaign.run(options.kind or "", [single], 1, options.where)]
    else:
        say(f"SEED={options.seed}")
        kinds = (options.kind,) if options.kind else KINDS
        tallies = [run_kind(kind, options, options.seed) for kind in kinds]
    failed = [command for tally in tallies for command in tally.failed]
    for command in failed:
        say(f"failed: {command}")
    return 1 if failed else 0


def one_case(options: Options, seed: int) -> Case | None:
    variant = options.variant or "usual"
    if options.kind == "kill" and options.syscall and options.number:
        return Kill(variant, options.syscall, options.number, options.fresh, seed)
    if options.kind == "errors" and options.syscall and options.number:
        lasting, fresh = options.lasting, options.fresh
        return IoError(variant, options.syscall, options.number, options.error, lasting, fresh, seed)
    if options.kind == "damage" and options.setting in damaged_transactions.SETTINGS:
        return DamagedTransactions(options.setting, seed, max(options.only, 0))
    if options.kind == "damage" and options.setting:
        return Damaged(options.setting, seed, options.only)
    if options.kind == "full" and options.variant:
        return FullDisk(variant, seed)
    if options.kind == "power" and options.cuts:
        return PowerCuts(variant, options.cuts, seed)
    return None


def run_kind(kind: str, options: Options, seed: int) -> Tally:
    missing = why_not(kind)
    if missing is not None:
        say(f"{kind}: SKIPPED, {missing}")
        return Tally(kind, skipped=missing)
    chance = random.Random(f"{seed} {kind}")
    if kind == "kill" and not options.short:
        sweep = kills.Sweep(chance, list(VARIANTS))
        return campaign.sweep_kills(sweep, options.points, options.jobs, options.where)
    cases = short_cases(kind, chance) if options.short else long_cases(kind, chance)
    tally = campaign.run(kind, cases, options.jobs, options.where)
    if not options.short:
        campaign.say_hits(tally)
    return tally


def why_not(kind: str) -> str | None:
    if kind in ("kill", "errors") and shutil.which("strace") is None:
        return "there is no strace"
    if kind in ("full", "power"):
        return disks.why_not()
    return None


def short_cases(kind: str, chance: random.Random) -> list[Case]:
    count = SHORT[kind]
    variants = chance.sample(list(VARIANTS), 2)
    seeds = [chance.randrange(1 << 30) for _ in range(count)]
    if kind == "kill":
        return list(kills.sample(chance, count, variants))
    if kind == "errors":
        return list(io_errors.sample(chance, count, variants))
    if kind == "damage":
        settings = ["killed", chance.choice([name for name in SETTINGS if name != "killed"])]
        return [
            *(Damaged(name, seed, at_most=SHORT_DAMAGES) for name, seed in zip(settings, seeds, strict=True)),
            *damaged_transactions.cases(chance, SHORT_TRANSACTIONS),
        ]
    if kind == "full":
        return [FullDisk(variants[0], seed) for seed in seeds]
    return [
        PowerCuts(variant, SHORT_CUTS, seed) for variant, seed in zip(power.VARIANTS, seeds, strict=False)
    ]


def long_cases(kind: str, chance: random.Random) -> list[Case]:
    variants = list(VARIANTS)
    if kind == "errors":
        return list(io_errors.every_call(chance, ERROR_CALLS, variants))
    if kind == "damage":
        return [
            *(Damaged(name, chance.randrange(1 << 30)) for _ in range(3) for name in SETTINGS),
            *damaged_transactions.cases(chance, 1 << 30),
        ]
    if kind == "full":
        usable = [name for name in variants if name != "two-directories"]
        return [FullDisk(chance.choice(usable), chance.randrange(1 << 30)) for _ in range(FULL_DISKS)]
    disks_used = POWER_CUTS // CUTS_A_DISK
    return [
        PowerCuts(power.VARIANTS[index % len(power.VARIANTS)], CUTS_A_DISK, chance.randrange(1 << 30))
        for index in range(disks_used)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
