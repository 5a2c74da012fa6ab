"""The command line: `pykafkad start [server.properties] [options]`, and the dispatch to the tools (tools/).

Owns the options of `start`, the choice of the data directory and the exit codes: 0 stopped when asked to, 1 could not
start (a taken port, a locked directory), 2 a wrong command line or config. Every error is one line on standard error.
Options are parsed by hand: argparse alone would cost 8 ms of a start that takes 60.
"""

from __future__ import annotations

import os
import sys

from pykafkad import __version__, config_single_node
from pykafkad.errors import StartupError
from pykafkad.logs import FORMATS, LEVELS, logger, set_format, set_level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from pykafkad.config import BrokerConfig
    from pykafkad.config_def import ConfigError

    Given = TypeVar("Given", bound="Options")

EXIT_STARTUP = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

USAGE = """\
usage: pykafkad start [server.properties] [options]
       pykafkad open DIR... --read-only [options]
       pykafkad run [options] -- COMMAND
       pykafkad cluster up [--brokers N] [options]
       pykafkad sql [COMMAND] [options]
       pykafkad TOOL [options]
       pykafkad completion bash|zsh|fish
       pykafkad help | --version

Serves Kafka's protocol. Without arguments: on 127.0.0.1:9092, with its data in a directory of yours.

  --host HOST           listen there (0.0.0.0: on every interface); also what clients are told, unless
                        advertised.listeners says otherwise
  --port PORT           0: any free one; the ready line names it
  --data DIR            where the data is kept (log.dirs)
  --ephemeral           keep the data in a temporary directory that is gone at exit
  --until-eof           stop when standard input ends: with the program that holds its other end
  --remove-at-eof DIR   with --until-eof: remove DIR then
  --single-node         replication factors and in-sync replicas above 1 count as 1, whoever asks for them
  --override KEY=VALUE  any config key; may be given again and again
  --log-level LEVEL     trace, debug, info, warn, error or off
  --log-format FORMAT   pykafkad, or kafka: lines as Kafka's images write them, with those that Testcontainers waits for

Configs come from the file, from KAFKA_ environment variables (KAFKA_LOG_DIRS is log.dirs; those of Kafka's,
Confluent's, Bitnami's and wurstmeister's images are understood), and from the options; a later one wins.
--host and --port replace those of the first listener that is for clients.
"""


# The commands with modules of their own.
MODULES = {
    "open": "pykafkad.opening",
    "run": "pykafkad.running",
    "cluster": "pykafkad.local_cluster.command",
    "sql": "pykafkad.pipelines.commands.sql",
    "completion": "pykafkad.completion",
}


class UsageError(Exception):
    """The command line is wrong; str() is the message for the user."""


class Options:
    """The options of `pykafkad start`."""

    __slots__ = (
        "data",
        "ephemeral",
        "file",
        "host",
        "log_format",
        "log_level",
        "overrides",
        "port",
        "remove_at_eof",
        "until_eof",
    )

    def __init__(self) -> None:
        self.file: str | None = None
        self.host: str | None = None
        self.port: int | None = None
        self.data: str | None = None
        self.ephemeral = False
        self.until_eof = False
        self.remove_at_eof: str | None = None
        self.overrides: dict[str, str] = {}
        self.log_level: str | None = None
        self.log_format = FORMATS[0]


def parse_start(arguments: Sequence[str]) -> Options:
    """Parse the options of `start`, which may come in any order; UsageError for an unknown one."""
    options = Options()
    read_options(options, arguments, _take, SETTERS)
    _check_data(options)
    if options.remove_at_eof is not None and not options.until_eof:
        raise UsageError("--remove-at-eof goes with --until-eof")
    return options


def read_options(
    options: Given,
    arguments: Sequence[str],
    take: Callable[[Given, str], bool],
    setters: Mapping[str, Callable[[Given, str], None]],
) -> None:
    """Call the setter of each option that has a value. Other arguments are passed to `take`, which returns whether it
    knows them."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if take(options, argument):
            continue
        name, equals, value = argument.partition("=")
        if name not in setters:
            from pykafkad.tools.names import nearest

            raise UsageError(f"unknown option {name}; see pykafkad help{nearest(name, setters)}")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        setters[name](options, value)


def _take(options: Options, argument: str) -> bool:
    if argument == "--ephemeral":
        options.ephemeral = True
    elif argument == "--until-eof":
        options.until_eof = True
    elif argument == "--single-node":
        options.overrides[config_single_node.KEY] = "true"
    elif argument.startswith("-") and argument != "-":
        return False
    elif options.file is not None:
        raise UsageError(f"one properties file only: {options.file} or {argument}?")
    else:
        options.file = argument
    return True


def _check_data(options: Options) -> None:
    if options.ephemeral and (options.data is not None or "log.dirs" in options.overrides):
        raise UsageError("--ephemeral keeps nothing: leave it out, or the directory")
    if options.data is not None and "," in options.data:
        raise UsageError(
            f"--data {options.data}: a comma separates directories in log.dirs, and cannot be in one"
        )


def _set_host(options: Options, value: str) -> None:
    host = value.removeprefix("[").removesuffix("]")
    if not host or any(character.isspace() or character in "/,@" for character in host):
        raise UsageError(f"--host {value}: a host name or an address is allowed")
    options.host = host


def _set_port(options: Options, value: str) -> None:
    if not (value.isascii() and value.isdigit() and int(value) <= 65535):
        raise UsageError(f"--port {value}: a number from 0 (any free port) to 65535 is allowed")
    options.port = int(value)


def _set_data(options: Options, value: str) -> None:
    if not value:
        raise UsageError("--data needs a directory")
    options.data = os.path.abspath(value)


def _set_remove_at_eof(options: Options, value: str) -> None:
    if not value:
        raise UsageError("--remove-at-eof needs a directory")
    options.remove_at_eof = os.path.abspath(value)


def _set_override(options: Options, value: str) -> None:
    key, equals, text = value.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--override {value}: key=value is allowed")
    options.overrides[key.strip()] = text


def _set_log_level(options: Options, value: str) -> None:
    if value.lower() not in LEVELS:
        raise UsageError(f"--log-level {value}: one of {', '.join(LEVELS)} is allowed")
    options.log_level = value


def _set_log_format(options: Options, value: str) -> None:
    if value not in FORMATS:
        raise UsageError(f"--log-format {value}: one of {', '.join(FORMATS)} is allowed")
    options.log_format = value


SETTERS = {
    "--host": _set_host,
    "--port": _set_port,
    "--data": _set_data,
    "--remove-at-eof": _set_remove_at_eof,
    "--override": _set_override,
    "--log-level": _set_log_level,
    "--log-format": _set_log_format,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit code."""
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or ["", ""]
    if command == "help" and rest:
        return main([rest[0], "--help"])
    if command in ("help", "--help", "-h") or (command == "start" and {"--help", "-h"} & set(rest)):
        sys.stdout.write(USAGE + tools_usage())
        return 0
    if command in ("--version", "version"):
        sys.stdout.write(f"pykafkad {__version__}\n")
        return 0
    if command in MODULES:
        from importlib import import_module

        code: int = import_module(MODULES[command]).main(rest)
        return code
    if command != "start":
        from pykafkad import tools

        if command in tools.TOOLS:
            return tools.main(command, rest)
        if not command:
            sys.stderr.write(USAGE + tools_usage())
            return EXIT_USAGE
        return fail(unknown(command), EXIT_USAGE)
    try:
        options = parse_start(rest)
    except UsageError as problem:
        return fail(str(problem), EXIT_USAGE)
    return start(options)


def tools_usage() -> str:
    """The part of the usage about the tools."""
    from pykafkad.tools import TOOLS

    lines = "".join(f"  {name:<13} {about}\n" for name, (_, about) in TOOLS.items())
    return f"\nThe tools take the options of Kafka's; `pykafkad TOOL --help` explains them.\n\n{lines}"


def unknown(command: str) -> str:
    """What to say of a command that is none, with the name that is nearest."""
    from pykafkad.completion import names
    from pykafkad.tools.names import nearest

    return f"unknown command {command}; see pykafkad help{nearest(command, names())}"


def start(options: Options) -> int:
    """Make the config, then serve until the process is asked to stop."""
    return guarded(options, _start, with_directory=options.ephemeral)


def _start(options: Options, temporary: str | None) -> int:
    config, data_is_default = load_config(options, temporary)
    say_notes(config)
    from pykafkad import server

    if not options.until_eof:
        return server.run(config, data_is_default=data_is_default)
    from pykafkad.net.starter import Starter

    starter = Starter(options.remove_at_eof)
    try:
        return server.run(config, data_is_default=data_is_default, starter=starter)
    finally:
        starter.clean_up()


def say_notes(config: BrokerConfig) -> None:
    for level, line in config.notes():
        getattr(logger("config"), level)(line)


def guarded(options: Options, serve: Callable[[Options, str | None], int], *, with_directory: bool) -> int:
    """Serve; an error becomes one line and an exit code. `with_directory`: the data is in a temporary directory, which
    is removed at the end."""
    from pykafkad.config import ConfigError
    from pykafkad.config_environment import log_level
    from pykafkad.properties import PropertiesError

    set_format(options.log_format)
    level = options.log_level or log_level(os.environ)
    if level is not None:
        set_level(level)
    temporary = None
    try:
        if with_directory:
            temporary = _make_temporary_directory()
        return serve(options, temporary)
    except ConfigError as problem:
        return fail(said_of(problem), EXIT_USAGE)
    except PropertiesError as problem:
        return fail(f"{options.file}: {problem}", EXIT_USAGE)
    except (StartupError, UsageError) as problem:
        return fail(str(problem), EXIT_STARTUP if isinstance(problem, StartupError) else EXIT_USAGE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as problem:
        logger("server").exception("the broker stopped", problem)
        return EXIT_STARTUP
    finally:
        if temporary is not None:
            from shutil import rmtree

            rmtree(temporary, ignore_errors=True)


def load_config(options: Options, temporary: str | None) -> tuple[BrokerConfig, bool]:
    """The config of all sources, and whether its data directory is the default one."""
    from pykafkad import properties
    from pykafkad.config import BrokerConfig
    from pykafkad.config_environment import properties_from_environment

    try:
        file = properties.load(options.file) if options.file is not None else None
    except OSError as problem:
        raise UsageError(f"cannot read {options.file}: {problem.strerror}") from problem
    below = {**(file or {}), **properties_from_environment(os.environ)}
    overrides = dict(options.overrides)
    data = temporary or options.data
    data_is_default = data is None and not {"log.dirs", "log.dir"} & (below.keys() | overrides.keys())
    if data_is_default:
        data = default_data_directory()
    if data is not None:
        overrides["log.dirs"] = data
        if "metadata.log.dir" in below:  # one directory was asked for, so the metadata log goes there as well
            overrides.setdefault("metadata.log.dir", data)
    config = BrokerConfig.from_sources(file, os.environ, overrides, host=options.host, port=options.port)
    return config, data_is_default


def default_data_directory() -> str:
    """The directory for this user's data."""
    from pykafkad.places import data_directory

    found = data_directory()
    if found is None:
        raise UsageError("there is no home directory to keep data in: name one with --data DIR")
    return found


def _make_temporary_directory() -> str:
    root = os.environ.get("TMPDIR") or "/tmp"
    while True:
        path = os.path.join(os.path.abspath(root), f"pykafkad-{os.urandom(6).hex()}")
        try:
            os.mkdir(path, 0o700)
            return path
        except FileExistsError:
            continue
        except OSError as problem:
            raise StartupError(f"cannot make the directory {path}: {problem.strerror}") from problem


def said_of(problem: ConfigError) -> str:
    """One line that names the key, the value and what is allowed."""
    message = problem.message.rstrip(".")
    value = "" if problem.value is None else str(problem.value)
    if problem.key not in message or value not in message:
        message = f"{problem.key}={value}: {message}"
    line = f"wrong config: {message}"
    if problem.allowed and problem.allowed.removeprefix("one of ") not in message:
        line += f" (allowed: {problem.allowed})"
    return line.replace("\r", "\\r").replace("\n", "\\n")


def fail(line: str, code: int) -> int:
    """One line on standard error; the exit code."""
    sys.stderr.write(f"pykafkad: {line}\n")
    return code
