"""`pykafkad cluster`: a cluster on one machine, from the command line.

`up` stays until it is told to stop, and takes all down with it; with --detach it ends when the cluster is ready. The
other commands find the cluster by its directory. Exit codes: 0, 1 where it could not be done, 2 for a wrong command line.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile

from pykafkad import cli
from pykafkad.cli import EXIT_STARTUP, EXIT_USAGE, Options, UsageError
from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster.cluster import STOP_S, LocalCluster, open_or_make
from pykafkad.local_cluster.guard import Guard
from pykafkad.local_cluster.process import ClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

USAGE = """\
usage: pykafkad cluster up [--brokers N] [--zookeeper HOST:PORT] [--data DIR] [--override KEY=VALUE] [--detach]
       pykafkad cluster status --data DIR [--json]
       pykafkad cluster kill|start|stop|pause|resume|isolate|heal N --data DIR
       pykafkad cluster down --data DIR

Several brokers on this machine, with ZooKeeper. The ready line names all of them:
pykafkad ready: bootstrap.servers=HOST:PORT,HOST:PORT,HOST:PORT

  up           start it, and keep it up until Ctrl-C, SIGTERM or `cluster down`
  status       who runs, the controller, leaders, in-sync replicas, lag and epochs
  kill N       end broker N at once (SIGKILL), as in a crash
  start N      start broker N again, with its data
  stop N       stop broker N in order (SIGTERM): it hands over what it leads
  pause N      stop the process of broker N where it is (SIGSTOP)
  resume N     let it go on
  isolate N    cut broker N off from the other brokers and from ZooKeeper; its clients still reach it
  heal N       join it to them again
  down         stop all brokers, and ZooKeeper if it was started by `up`

  --brokers N            how many brokers: 3, or as many as DIR has
  --zookeeper HOST:PORT  a ZooKeeper that runs already (or several, with commas, and /CHROOT); else one is started,
                         which needs Java, and Maven the first time
  --data DIR             where all of it is kept; else it is gone at the end
  --override KEY=VALUE   a config of all brokers of a new cluster; may be given again and again
  --detach               return when the cluster is ready; `down` ends it
  --json                 one JSON document on standard output
"""
PREFIX = "pykafkad-cluster-"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ClusterOptions(Options):
    __slots__ = ("brokers", "detach", "json", "words", "zookeeper")

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.brokers: int | None = None
        self.zookeeper: str | None = None
        self.detach = False
        self.json = False

    @property
    def directory(self) -> str:
        if self.data is None:
            raise UsageError("which cluster? --data DIR names it")
        return self.data


class Ended(BaseException):
    """A signal asks `up` to end."""


def main(arguments: Sequence[str]) -> int:
    if not arguments or {"--help", "-h", "help"} & set(arguments):
        (sys.stdout if arguments else sys.stderr).write(USAGE)
        return 0 if arguments else EXIT_USAGE
    try:
        options = parse(arguments[1:])
        return chosen(arguments[0])(options)
    except UsageError as problem:
        return cli.fail(str(problem), EXIT_USAGE)
    except ClusterError as problem:
        return cli.fail(str(problem), EXIT_STARTUP)


def chosen(command: str) -> Callable[[ClusterOptions], int]:
    found = COMMANDS.get(command)
    if found is None:
        from pykafkad.tools.names import nearest

        raise UsageError(
            f"unknown command cluster {command}; see pykafkad cluster --help{nearest(command, COMMANDS)}"
        )
    return found


def parse(arguments: Sequence[str]) -> ClusterOptions:
    options = ClusterOptions()
    cli.read_options(options, arguments, _take, SETTERS)
    return options


def _take(options: ClusterOptions, argument: str) -> bool:
    if argument == "--detach":
        options.detach = True
    elif argument == "--json":
        options.json = True
    elif argument.startswith("-"):
        return False
    else:
        options.words.append(argument)
    return True


def _set_brokers(options: ClusterOptions, value: str) -> None:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= homes.BROKERS_MAX):
        raise UsageError(f"--brokers {value}: a number from 1 to {homes.BROKERS_MAX} is allowed")
    options.brokers = int(value)


def _set_zookeeper(options: ClusterOptions, value: str) -> None:
    if not value:
        raise UsageError("--zookeeper needs HOST:PORT")
    options.zookeeper = value


SETTERS = {
    "--brokers": _set_brokers,
    "--zookeeper": _set_zookeeper,
    "--data": cli.SETTERS["--data"],
    "--override": cli.SETTERS["--override"],
}


# -- the commands


def up(options: ClusterOptions) -> int:
    nothing_but(options, ())
    if options.detach and options.data is None:
        raise UsageError("--detach goes with --data DIR: without it nobody finds the cluster again")
    directory = options.data or tempfile.mkdtemp(prefix=PREFIX)
    try:
        home = open_or_make(directory, options.brokers, options.zookeeper, options.overrides)
        cluster = LocalCluster(home)
        if options.detach:
            return begin(cluster)
        lock = home.up.take()
        home.up.write(lock, os.getpid())
        guard = Guard(directory, remove=options.data is None)
        try:
            return stay(cluster)
        finally:
            guard.dismiss()
            os.close(lock)
    finally:
        if options.data is None:
            shutil.rmtree(directory, ignore_errors=True)


def begin(cluster: LocalCluster) -> int:
    try:
        cluster.start()
    except BaseException:
        cluster.kill()
        raise
    say_ready(cluster)
    return 0


def stay(cluster: LocalCluster) -> int:
    """Until a signal comes; a second one ends all at once."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended

    for number in ENDING:
        signal.signal(number, end)
    try:
        begin(cluster)
        while True:
            signal.pause()
    except Ended:
        try:
            cluster.stop()
        except Ended:
            cluster.kill()
    return 0


def say_ready(cluster: LocalCluster) -> None:
    sys.stderr.write(f"pykafkad: the cluster is in {cluster.home.directory}\n")
    sys.stdout.write(f"pykafkad ready: bootstrap.servers={cluster.home.bootstrap_servers}\n")
    sys.stdout.flush()


def status(options: ClusterOptions) -> int:
    from pykafkad.local_cluster import status as facts
    from pykafkad.tools import output

    nothing_but(options, ())
    found = facts.gather(homes.load(options.directory))
    if options.json:
        output.json_document(found)
    else:
        for line in facts.lines(found):
            output.line(line)
    output.flush()
    return 0


def down(options: ClusterOptions) -> int:
    nothing_but(options, ())
    home = homes.load(options.directory)
    home.up.ask_to_stop()
    if not home.up.wait(STOP_S * (len(home.brokers) + 1)):
        raise ClusterError(f"the cluster in {home.directory} did not stop")
    LocalCluster(home).stop()
    return 0


def of_broker(act: Callable[[LocalCluster, int], None]) -> Callable[[ClusterOptions], int]:
    def command(options: ClusterOptions) -> int:
        (text,) = nothing_but(options, ("N, the number of the broker,",))
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"{text}: the number of a broker is wanted")
        act(LocalCluster(homes.load(options.directory)), int(text))
        return 0

    return command


def nothing_but(options: ClusterOptions, wanted: Sequence[str]) -> list[str]:
    """The words of the command line: these, and no others."""
    if len(options.words) < len(wanted):
        raise UsageError(f"{wanted[len(options.words)]} is missing; see pykafkad cluster --help")
    if len(options.words) > len(wanted):
        raise UsageError(
            f"{options.words[len(wanted)]}: nothing is expected there; see pykafkad cluster --help"
        )
    return options.words


COMMANDS: dict[str, Callable[[ClusterOptions], int]] = {
    "up": up,
    "status": status,
    "kill": of_broker(LocalCluster.kill_broker),
    "start": of_broker(LocalCluster.start_broker),
    "stop": of_broker(LocalCluster.stop_broker),
    "pause": of_broker(LocalCluster.pause_broker),
    "resume": of_broker(LocalCluster.resume_broker),
    "isolate": of_broker(LocalCluster.isolate_broker),
    "heal": of_broker(LocalCluster.heal_broker),
    "down": down,
}
