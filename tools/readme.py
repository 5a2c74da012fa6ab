"""Writes what README.md says of APIs and configs, from what the code declares; --check only compares."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pykafkad import handlers
from pykafkad.config import BROKER_KEYS, OWN_KEYS
from pykafkad.config_table import HONOURED

# What our own keys do where nobody sets them.
ABOUT_OWN = {
    "pykafkad.scrub.max.bytes.per.second": "off; else the logs are read over and over at that rate in the background,"
    " and damaged batches are named in the log",
}
README = Path(__file__).parent.parent / "README.md"


def apis() -> str:
    rows = [
        f"| {key} | {api.name} | {api.versions[0]}–{api.versions[1]} |\n"
        for key, api in handlers.APIS.items()
    ]
    return "| key | API | versions |\n|---|---|---|\n" + "".join(rows)


def configs() -> str:
    """The keys that work, and how many do not: those are all the others."""
    lines, line = [], ""
    for name in sorted(HONOURED):
        word = f"`{name}`, "
        if len(line) + len(word) > 118:
            lines.append(line.rstrip())
            line = ""
        line += word
    lines.append(line.removesuffix(", ") + ".")
    others = len(BROKER_KEYS) - len(HONOURED)
    return (
        f"Of Kafka's {len(BROKER_KEYS)} broker keys these {len(HONOURED)} are honoured; the other {others} are known,"
        " checked, and change nothing:\nwhere one is set, the broker says so in one line at start.\n\n"
        + "\n".join(lines)
        + "\n\nKeys of our own: "
        + ", ".join(f"`{name}` ({key.default}: {ABOUT_OWN[name]})" for name, key in OWN_KEYS.items())
        + ".\n"
    )


PARTS: dict[str, Callable[[], str]] = {"apis": apis, "configs": configs}


def main() -> int:
    text = wanted = README.read_text()
    for name, write in PARTS.items():
        begin, end = f"<!-- {name}: written by `make format` -->\n", f"<!-- /{name} -->\n"
        before, rest = wanted.split(begin)
        after = rest.split(end)[1]
        wanted = f"{before}{begin}{write()}{end}{after}"
    if wanted == text:
        return 0
    if "--check" in sys.argv:
        print("README.md: what is generated is out of date; `make format` writes it", file=sys.stderr)
        return 1
    README.write_text(wanted)
    return 0


sys.exit(main())
