"""Writes what README.md says of APIs and configs, from what the code declares; --check only compares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from pykafkad import handlers
from pykafkad.cluster.dynamic_config import DYNAMIC, without_effect
from pykafkad.config import BROKER_KEYS, OWN_KEYS
from pykafkad.config_table import HONOURED, IN_PART

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


def listed(names: Iterable[str]) -> str:
    lines, line = [], ""
    for name in sorted(names):
        word = f"`{name}`, "
        if len(line) + len(word) > 118:
            lines.append(line.rstrip())
            line = ""
        line += word
    lines.append(line.removesuffix(", ") + ".")
    return "\n".join(lines) + "\n"


def configs() -> str:
    """The keys that work, and how many do not: those are all the others."""
    others = len(BROKER_KEYS) - len(HONOURED)
    in_part = "; ".join(f"`{name}` ({how})" for name, how in sorted(IN_PART.items()))
    own = ", ".join(f"`{name}` ({key.default}: {ABOUT_OWN[name]})" for name, key in OWN_KEYS.items())
    silent = [name for name in DYNAMIC if without_effect(name)]
    return (
        f"Of Kafka's {len(BROKER_KEYS)} broker keys these {len(HONOURED)} are honoured; the other {others} are known,"
        " checked, and change nothing:\nwhere one is set, the broker says so in one line at start.\n\n"
        f"{listed(HONOURED)}\nIn part: {in_part}.\n\nKeys of our own: {own}.\n\n"
        f"Of the keys that can be set while the broker runs, these {len(silent)} are stored and shown, and change"
        f" nothing; the broker says\nso in one line when one is set.\n\n{listed(silent)}"
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
