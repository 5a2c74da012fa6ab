"""`pykafkad completion bash|zsh|fish`: a script that completes the command line in that shell.

Owns what there is to complete, `commands()`, which is read from the tables of options of the tools and from the usage
texts of what has no table, and from which docs/tools.md is written too. The scripts are in completion_shells. They ask
`pykafkad completion topics` and `groups` for the names on the running broker: these say nothing at all if there is none,
and do not wait for it.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from pykafkad.tools.options import Option

SHELLS = ("bash", "zsh", "fish")
NAMES = ("topics", "groups")
REACH_MS = (
    2000  # how long an answer is waited for while somebody types; where nobody listens, that is known at once
)
USAGE = """\
usage: pykafkad completion bash|zsh|fish
       pykafkad completion topics|groups [--bootstrap-server HOST:PORT]

Prints a script that completes pykafkad's commands, options, and the names of topics and groups. To use it:

  bash  eval "$(pykafkad completion bash)"     in ~/.bashrc
  zsh   eval "$(pykafkad completion zsh)"      in ~/.zshrc, after compinit
  fish  pykafkad completion fish | source      in ~/.config/fish/config.fish

With topics or groups: their names on the running broker, for the scripts; nothing if it does not answer at once.
"""
# commands that are no tools -> the module with their usage text, and what they do
OTHERS = {
    "start": ("pykafkad.cli", "serve Kafka's protocol"),
    "open": ("pykafkad.opening", "serve copied data directories, read only"),
    "run": ("pykafkad.running", "run a command with a broker of its own"),
    "cluster": ("pykafkad.local_cluster.command", "several brokers on this machine, with ZooKeeper"),
    "sql": ("pykafkad.pipelines.commands.sql", "streams and tables over topics in SQL: a shell, scripts"),
    "completion": ("", "a script that completes this command line in bash, zsh or fish"),
    "help": ("", "explain the commands"),
}
# a line of a usage text that explains an option, and one of a command
OPTION_LINE = re.compile(r" +--([a-z][a-z-]*)(?: ([A-Z][][A-Z=|:]*))?(?:  +(.*))?")
COMMAND_LINE = re.compile(r"(?:usage:|      ) pykafkad ([a-z][a-z-]*)\b")
HELP_MARGIN = 20  # where the explanations begin, at least


class Command:
    """A word after `pykafkad`, and the options that may follow it."""

    __slots__ = ("about", "module", "name", "options")

    def __init__(self, name: str, about: str, options: Sequence[Option], module: ModuleType | None) -> None:
        self.name = name
        self.about = about
        self.options = options
        self.module = module


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in ("--help", "-h"):
        sys.stdout.write(USAGE)
        return 0
    if not arguments or arguments[0] not in (*SHELLS, *NAMES):
        sys.stderr.write(USAGE)
        return 2
    if arguments[0] in NAMES:
        for name in live_names(arguments[0], arguments[1:]):
            sys.stdout.write(f"{name}\n")
        return 0
    from pykafkad import completion_shells

    sys.stdout.write(completion_shells.SCRIPTS[arguments[0]](commands()))
    return 0


# -- what there is


def names() -> list[str]:
    """Those of the usage text first, then the tools."""
    from pykafkad import cli
    from pykafkad.tools import TOOLS

    return list(dict.fromkeys([*COMMAND_LINE.findall(cli.USAGE), *TOOLS]))


def commands() -> list[Command]:
    return [_command(name) for name in names()]


def _command(name: str) -> Command:
    from importlib import import_module

    from pykafkad.tools import TOOLS

    if name in TOOLS:
        module_name, about = TOOLS[name]
        module = import_module(f"pykafkad.tools.{module_name}")
        return Command(name, about, options_of(module), module)
    module_name, about = OTHERS.get(name, ("", f"see pykafkad {name} --help"))
    if not module_name:
        return Command(name, about, (), None)
    module = import_module(module_name)
    return Command(name, about, options_in(module.USAGE), module)


def options_of(module: ModuleType) -> tuple[Option, ...]:
    from pykafkad.tools.options import COMMON

    table: tuple[Option, ...] | None = getattr(module, "OPTIONS", None)
    return (*table, *COMMON) if table is not None else options_in(module.USAGE_TEXT)


def options_in(usage: str) -> tuple[Option, ...]:
    """The options that the lines of a usage text explain, for commands that have no table."""
    from pykafkad.logs import LEVELS
    from pykafkad.tools.options import HELP, flag, value

    rows: list[list[str]] = []
    for line in usage.splitlines():
        found = OPTION_LINE.fullmatch(line)
        if found is not None:
            rows.append([found[1], found[2] or "", found[3] or ""])
        elif rows and line.startswith(" " * HELP_MARGIN):
            rows[-1][2] += " " + line.strip()
    choices = {"log-level": tuple(LEVELS)}
    return (
        *(
            value(name, shown, help, choices=choices.get(name, ())) if shown else flag(name, help)
            for name, shown, help in rows
        ),
        HELP,
    )


# -- names of the running broker


def live_names(kind: str, arguments: Sequence[str]) -> list[str]:
    """Without what no shell could take on a line."""
    try:
        found = sorted(_ask(kind, arguments))
    except Exception:
        return []
    return [name for name in found if name.isprintable()]


def _ask(kind: str, arguments: Sequence[str]) -> Iterator[str]:
    from pykafkad.net.client import Cluster
    from pykafkad.tools import admin, admin_groups, settings

    given = arguments[1] if len(arguments) > 1 and arguments[0] == "--bootstrap-server" else None
    cluster = Cluster(settings.bootstrap(given, {}), api_timeout_ms=REACH_MS, request_timeout_ms=REACH_MS)
    try:
        cluster.any_broker()
        if kind == "topics":
            yield from (topic.name for topic in admin.list_topics(cluster))
        else:
            yield from (group.group_id for group in admin_groups.list_groups(cluster))
    finally:
        cluster.close()
