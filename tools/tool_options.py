"""The tools with their options, as Markdown: for docs/tools.md and docs/tool-options.md (readme.py).

A tool's table of options becomes a table there, and its example of --json an example; a command that explains itself
with a text is shown with that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from pykafkad import completion
from pykafkad.completion import Command
from pykafkad.tools import TOOLS
from pykafkad.tools.options import COMMON, REQUIRED, Option

WIDTH = 80


def table() -> str:
    rows = [
        f"| [`pykafkad {name}`](tool-options.md#{name}) | {about} |\n" for name, (_, about) in TOOLS.items()
    ]
    return "| | |\n|---|---|\n" + "".join(rows)


def pages() -> str:
    return "\n".join(page(command) for command in completion.commands() if command.name != "help")


def page(command: Command) -> str:
    known: tuple[Option, ...] | None = getattr(command.module, "OPTIONS", None)
    if known is None:
        body = f"```text\n{explained(command.name).rstrip()}\n```\n"
    else:
        body = f"{sentence(command.about)}\n\n{command_table(command)}{option_table(known)}"
    return f"## {command.name}\n\n{body}{json_shape(command)}"


def sentence(about: str) -> str:
    return about[0].upper() + about[1:] + "."


def command_table(command: Command) -> str:
    """The words that say what a tool with commands is to do."""
    rows = [
        f"| `{name}` | {word.about} |\n" for name, word in getattr(command.module, "COMMANDS", {}).items()
    ]
    return "| command | |\n|---|---|\n" + "".join(rows) + "\n" if rows else ""


def option_table(known: tuple[Option, ...]) -> str:
    """Those that are required first; the two that every tool has are not repeated."""
    rows = [
        f"| {code(f'--{option.name}{argument(option)}')} | {meaning(option)} |\n"
        for option in sorted(known, key=lambda option: not option.needed)
        if option not in COMMON
    ]
    return "| option | |\n|---|---|\n" + "".join(rows)


def argument(option: Option) -> str:
    shown = option.shown or option.kind.lower()
    return ("", f" [{shown}]", f" {shown}", f" {shown}...")[option.argument]


def meaning(option: Option) -> str:
    required = "Required. " if option.needed and option.argument >= REQUIRED else ""
    default = f" Default: {code(option.default)}." if option.default else ""
    return required + option.help.replace("|", r"\|").replace("<", "&lt;").replace("\n", " ") + default


def code(text: str) -> str:
    return "`" + text.replace("|", r"\|") + "`"


def json_shape(command: Command) -> str:
    example = getattr(command.module, "JSON_EXAMPLE", None)
    if example is None:
        return ""
    json.loads(example)  # it is shown as it stands in the code
    note: str = getattr(command.module, "JSON_NOTE", "")
    return f"\nWith `--json`:\n\n```json\n{example.rstrip()}\n```\n" + (f"\n{note}\n" if note else "")


def explained(name: str) -> str:
    """What `--help` prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", name, "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**environment, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    return done.stdout
