"""`pykafkad run -- COMMAND`: a broker for as long as one command runs, which finds it by its environment.

Owns the names under which programs look for a broker, the passing on of signals and the exit code, which is the
command's: 128 and the number of the signal that ended it, 127 and 126 where it cannot be found or run, as shells do.
The broker's data is in a temporary directory and gone at the end, however that comes (testing/broker.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from pykafkad import cli
from pykafkad.cli import EXIT_STARTUP, EXIT_USAGE, Options, UsageError
from pykafkad.testing.broker import Broker
from pykafkad.testing.errors import BrokerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127
SIGNALLED = 128
DEFAULT_LOG_LEVEL = "warn"

VARIABLES = (
    "KAFKA_BOOTSTRAP_SERVERS",  # pykafkad's tools, Quarkus and whatever reads MicroProfile's configuration
    "BOOTSTRAP_SERVERS",
    "KAFKA_BROKERS",
    "SPRING_KAFKA_BOOTSTRAP_SERVERS",  # Spring Boot
)
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)

USAGE = f"""\
usage: pykafkad run [options] -- COMMAND [arguments]

Starts a broker with a temporary data directory, runs the command, and ends with its exit code. The command finds
the broker in its environment, by {", ".join(VARIABLES[:-1])}
or {VARIABLES[-1]}.

  --topic NAME[:PARTITIONS]  make this topic first; may be given again and again
  --port PORT                where the broker listens; any free port if it is left out
  --override KEY=VALUE       any config key of the broker; may be given again and again
  --log-level LEVEL          of what the broker logs, which is shown at the end: warn, or any other that start has

Everything after -- is the command's.
"""


class RunOptions(Options):
    __slots__ = ("command", "topics")

    def __init__(self) -> None:
        super().__init__()
        self.command: list[str] = []
        self.topics: dict[str, int] = {}


def main(arguments: Sequence[str]) -> int:
    """The command; returns its exit code."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if {"--help", "-h"} & set(own):
        sys.stdout.write(USAGE)
        return 0
    try:
        options = parse(arguments)
    except UsageError as problem:
        return cli.fail(str(problem), EXIT_USAGE)
    try:
        with Broker(
            options.topics,
            options.overrides,
            port=options.port or 0,
            log_level=options.log_level or DEFAULT_LOG_LEVEL,
        ) as broker:
            code = run(options.command, {**os.environ, **dict.fromkeys(VARIABLES, broker.bootstrap_servers)})
            sys.stderr.write(broker.log_text())
        return code
    except BrokerError as problem:
        return cli.fail(str(problem), EXIT_STARTUP)
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT


def parse(arguments: Sequence[str]) -> RunOptions:
    options = RunOptions()
    at = arguments.index("--") if "--" in arguments else len(arguments)
    cli.read_options(options, arguments[:at], _take, SETTERS)
    options.command = list(arguments[at + 1 :])
    if not options.command:
        raise UsageError("which command? pykafkad run -- COMMAND")
    return options


def _take(options: RunOptions, argument: str) -> bool:
    name = argument.partition("=")[0]
    if name not in SETTERS:
        hint = "" if name.startswith("-") else f": pykafkad run -- {name}"
        raise UsageError(f"unknown option {name}; the command comes after --{hint}")
    return False


def _set_topic(options: RunOptions, value: str) -> None:
    name, colon, count = value.partition(":")
    if not name or (colon and not (count.isascii() and count.isdigit() and int(count))):
        raise UsageError(f"--topic {value}: NAME or NAME:PARTITIONS is allowed")
    options.topics[name] = int(count or 1)


OF_START = ("--port", "--override", "--log-level")
SETTERS = {"--topic": _set_topic, **{name: cli.SETTERS[name] for name in OF_START}}


class Signals:
    """From now on the signals that come are the command's; those that come before it is there, too."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        # what is ignored stays so, and the command ignores it as well
        numbers = [each for each in (*PASSED_ON, *FROM_TERMINAL) if signal.getsignal(each) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._came) for number in numbers}

    def _came(self, number: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._early.append(number)
        elif number not in FROM_TERMINAL or not in_foreground():
            self._process.send_signal(number)

    def are_for(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Its exit code, as a shell has it."""
    signals = Signals()
    try:
        process = subprocess.Popen(command, env=environment)
        signals.are_for(process)
        code = process.wait()
    except FileNotFoundError:
        return cli.fail(f"{command[0]}: command not found", EXIT_NOT_FOUND)
    except OSError as problem:
        return cli.fail(f"{command[0]}: {problem.strerror}", EXIT_NOT_EXECUTABLE)
    finally:
        signals.restore()
    return SIGNALLED - code if code < 0 else code


def in_foreground() -> bool:
    """Whether a terminal sends its signals to us, and so to the command as well."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
