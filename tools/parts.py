"""Runs the parts of a test run, each as `make PART`, and says how far it is: which part of how many, the time that is
gone and about how much is left.

    tools/parts.py make check unit asan-short

What a part prints passes through; every EVERY_S a line of ours stands between its lines. A part's usual time is its
row of USUAL_S. What is left is reckoned from these rows and from how much faster or slower the ended parts were. The
first part that fails ends the run, with its exit code. Tests that failed at first and passed at the second try are named
at the end: they failed for a reason, be it the machine's load.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence

EVERY_S = 30
COUNTS_FROM_S = 60  # ended parts tell how fast this machine is once they usually take as long as this
COLOUR = rb"(?:\x1b\[[\d;]*m)*"
TRIED_AGAIN = re.compile(
    rb"^%bRERUN%b ([^\s\x1b]+)" % (COLOUR, COLOUR), re.MULTILINE
)  # in pytest's summary (-r R)
LEAST_LEFT = 0.1  # of the time that the running part has taken already, which may be longer than usual
# About, on two cores with nothing else to do, where what is downloaded and built once is there already.
USUAL_S = {
    "setup": 5,
    "check": 15,
    "unit": 560,
    "unit-quick": 60,
    "torture-short": 60,
    "storm-short": 45,
    "bench-smoke": 90,
    "compat-clients": 80,
    "compat-clients-quick": 15,
    "compat-groups": 150,
    "compat-transactions": 140,
    "compat-tools": 180,
    "compat-exchange": 90,
    "compat-cleaner": 25,
    "compat-differential": 420,
    "compat-history": 75,
    "compat-spark": 340,
    "compat-quickstart": 30,
    "compat-recipes": 110,
    "compat-cluster": 370,
    "compat-znodes": 15,
    "asan-short": 270,
}


class Run:
    """The state of a run: which parts have ended, when it began and when the running part did."""

    def __init__(self, parts: Sequence[str], now: float) -> None:
        self.parts = parts
        self.done = 0
        self.tried_again: list[str] = []
        self.began = self.part_began = now

    def end_part(self, now: float) -> None:
        self.done += 1
        self.part_began = now

    def left_s(self, now: float) -> float:
        usual = [USUAL_S[part] for part in self.parts]
        ended = sum(usual[: self.done])
        pace = (self.part_began - self.began) / ended if ended >= COUNTS_FROM_S else 1.0
        running, *later = usual[self.done :]
        gone = now - self.part_began
        return max(running * pace - gone, gone * LEAST_LEFT) + sum(later) * pace

    def line(self, now: float) -> str:
        place = f"part {self.done + 1} of {len(self.parts)}, {self.parts[self.done]}"
        return f"== {place}; {minutes(now - self.began)} gone, about {minutes(self.left_s(now))} left"


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


def say(line: str) -> None:
    sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.flush()


def follow(process: subprocess.Popen[bytes], run: Run) -> int:
    """Pass on what the part prints, and say how far the run is in between; the part's exit code."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    said = time.monotonic()
    line = b""  # what has come of the line that is not whole yet
    while True:
        readable, _, _ = select.select([output], [], [], EVERY_S)
        data = os.read(output, 1 << 16) if readable else b"\n"  # after a long silence our line ends theirs
        if not data:
            return process.wait()
        lines, end, rest = data.rpartition(b"\n")
        sys.stdout.buffer.write(lines + end)
        run.tried_again += [test.decode() for test in TRIED_AGAIN.findall(line + lines)]
        line = rest if end else line + rest
        now = time.monotonic()
        if end and now - said >= EVERY_S:
            say(run.line(now))
            said = now
        sys.stdout.buffer.write(rest)
        sys.stdout.flush()


def main() -> int:
    make, *parts = sys.argv[1:]
    run = Run(parts, time.monotonic())
    say(f"== {len(parts)} parts, about {minutes(run.left_s(run.began))} on two cores: {', '.join(parts)}")
    environment = {**os.environ, **({"FORCE_COLOR": "1"} if sys.stdout.isatty() else {})}
    for part in parts:
        began = run.part_began
        say(run.line(began))
        process = subprocess.Popen(
            [make, part], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        try:
            code = follow(process, run)
        except KeyboardInterrupt:
            process.wait()  # it had its Ctrl-C too
            return 130
        took = minutes(time.monotonic() - began)
        if code:
            say(f"== part {run.done + 1} of {len(parts)}, {part}, failed after {took}; alone: make {part}")
            return code
        run.end_part(time.monotonic())
        say(f"== {part} took {took}")
    for test in run.tried_again:
        say(f"== passed only at the second try: {test}")
    say(f"== all {len(parts)} parts passed in {minutes(run.part_began - run.began)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
