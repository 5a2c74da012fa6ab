"""The tools with their options, as Markdown: for docs/tools.md and docs/tool-options.md (readme.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

from pykafkad.tools import TOOLS

COMMANDS = ["start", "open", *TOOLS]
WIDTH = 80
INDENT = " " * 7


def table() -> str:
    rows = [
        f"| [`pykafkad {name}`](tool-options.md#{name}) | {about} |\n" for name, (_, about) in TOOLS.items()
    ]
    return "| | |\n|---|---|\n" + "".join(rows)


def pages() -> str:
    return "\n".join(f"## {name}\n\n```text\n{explained(name).rstrip()}\n```\n" for name in COMMANDS)


def explained(name: str) -> str:
    """What `--help` prints; Kafka's tools, and so ours, print it to standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", name, "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**environment, "COLUMNS": str(WIDTH)},
        check=False,
    )
    said = re.sub(
        r"(perf-consumer-)\d+", r"\1NUMBER", done.stdout or done.stderr
    )  # a new number at each call
    return rewrapped(said) if said.startswith("usage: kafka-") else said


def rewrapped(said: str) -> str:
    """With the usage in lines of ours: where argparse breaks them is different from one Python to the next."""
    usage, rest = said.split("\n\n", 1)
    filled = textwrap.fill(
        " ".join(usage.split()),
        WIDTH,
        subsequent_indent=INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return f"{filled}\n\n{rest}"
