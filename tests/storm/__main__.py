"""`make storm`: requests of every kind against a live broker.

    python -m tests.storm                       random requests, 1,000,000 of them
    python -m tests.storm --short               what make test does: 20,000, and a sample of the kinds below
    python -m tests.storm arrays                every array of every API filled to a megabyte; --match 'Fetch v18'
    python -m tests.storm configs               each config that can be changed while serving, at its extremes
    python -m tests.storm starts                each key of server.properties at its extremes: a broker each
    python -m tests.storm --api Fetch           of one API
    python -m tests.storm --seed N --burst M    one burst again, as a fault prints it
    python -m tests.storm --replay FILE         requests of a file, as a fault prints it

What is asked follows from the seed (--seed or SEED); how the broker and the connections are timed does not. Exit code:
0 nothing was found, 1 something was, 2 a wrong command line.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys

from pykafkad import handlers
from tests.storm import arrays as filled
from tests.storm import configs as dynamic
from tests.storm import kept
from tests.storm import starts as static
from tests.storm.arrays import Arrays
from tests.storm.campaign import Campaign, say
from tests.storm.configs import Configs

TOPICS = 100
COUNT, SHORT_COUNT = 1_000_000, 20_000
SHORT_ARRAYS, SHORT_CONFIGS, SHORT_STARTS = 40, 300, 30
SHRINK_SECONDS, SHORT_SHRINK_SECONDS = 120.0, 20.0


class Options(argparse.Namespace):
    kind: str | None
    match: str | None
    topics: int
    jobs: int
    short: bool
    seed: int | None
    count: int | None
    api: str | None
    burst: int | None
    replay: str | None
    shrink: float | None


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m tests.storm", description="Storms a broker; see the module."
    )
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--short", action="store_true", help="as in make test")
    parser.add_argument("--seed", type=int, default=int(os.environ["SEED"]) if "SEED" in os.environ else None)
    parser.add_argument("--count", type=int, help="how many requests")
    parser.add_argument(
        "--api", choices=sorted(api.name for api in handlers.APIS.values()), help="of one API only"
    )
    parser.add_argument("--burst", type=int, help="this burst only")
    parser.add_argument("--replay", help="the requests of a file")
    parser.add_argument("--match", help="of arrays, configs and starts, those with these words")
    parser.add_argument(
        "--topics", type=int, default=TOPICS, help="how many topics of ten partitions there are, for arrays"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="brokers at a time, of starts")
    parser.add_argument("--shrink", type=float, help="seconds for making a fault smaller; 0: not at all")
    return parser.parse_args(arguments, namespace=Options())


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    # So that no broker is left behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if options.replay is not None:
        return replay(options.replay)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    say(f"SEED={options.seed}")
    kinds = KINDS if options.short and options.kind is None else (options.kind or "requests",)
    found = [kind for kind in kinds if KINDS[kind](options, options.seed)]
    if found:
        say(f"something was found by: {', '.join(found)}")
    return 1 if found else 0


def requests(options: Options, seed: int) -> bool:
    """Whether anything is wrong; so with the other kinds."""
    count = options.count or (SHORT_COUNT if options.short else COUNT)
    if options.burst is not None:
        count = 1
    shrink = options.shrink
    if shrink is None:
        shrink = SHORT_SHRINK_SECONDS if options.short else SHRINK_SECONDS
    campaign = Campaign(seed, count, options.api, shrink)
    return bool(campaign.run(options.burst or 0).faults)


def arrays(options: Options, seed: int) -> bool:
    count = options.count or (SHORT_ARRAYS if options.short else None)
    return bool(Arrays(options.topics).run(filled.chosen(options.match, seed, count)))


def configs(options: Options, seed: int) -> bool:
    count = options.count or (SHORT_CONFIGS if options.short else None)
    return bool(Configs().run(dynamic.chosen(options.match, seed, count)))


def starts(options: Options, seed: int) -> bool:
    count = options.count or (SHORT_STARTS if options.short else None)
    return bool(static.run(static.chosen(options.match, seed, count), options.jobs))


KINDS = {"requests": requests, "arrays": arrays, "configs": configs, "starts": starts}


def replay(path: str) -> int:
    faults, fates = kept.again(kept.load(path))
    for fate in fates:
        say(f"{fate.request}: {fate.outcome} {fate.detail} {fate.took_ms:.0f} ms, {fate.size} bytes")
    for fault in faults:
        say(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
