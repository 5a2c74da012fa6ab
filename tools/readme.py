"""Writes the generated parts of README.md and of docs/, from what the code declares; --check only compares.

A part stands between two comments that name it. PARTS says which file has it and what writes it; config_tables.py and
tool_options.py beside this file make those that are looked up rather than read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import config_tables
import tool_options

from pykafkad import handlers
from pykafkad.handlers import cluster_apis

ROOT = Path(__file__).parent.parent


def apis() -> str:
    alone, together = handlers.APIS, cluster_apis.APIS
    rows = [
        f"| {key} | {(alone.get(key) or together[key]).name} | {versions(alone, key)} | {versions(together, key)} |\n"
        for key in sorted({*alone, *together})
    ]
    return "| key | API | alone | in a cluster |\n|---|---|---|---|\n" + "".join(rows)


def versions(served: dict[int, handlers.Api], key: int) -> str:
    if key not in served:
        return ""
    first, last = served[key].versions
    return f"{first}–{last}"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"apis": apis, "configs": config_tables.summary},
    "docs/configuration.md": {
        "configs": config_tables.honoured,
        "topic configs": config_tables.topics,
        "silent configs": config_tables.without_effect_while_running,
    },
    "docs/tools.md": {"tools": tool_options.table},
    "docs/tool-options.md": {"options": tool_options.pages},
}


def written(text: str, parts: dict[str, Callable[[], str]]) -> str:
    for name, write in parts.items():
        begin, end = f"<!-- {name}: written by `make format` -->\n", f"<!-- /{name} -->\n"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = f"{before}{begin}{write()}{end}{after}"
    return text


def main() -> int:
    code = 0
    for file, parts in PARTS.items():
        text = (ROOT / file).read_text()
        if (wanted := written(text, parts)) == text:
            continue
        if "--check" in sys.argv:
            print(f"{file}: what is generated is out of date; `make format` writes it", file=sys.stderr)
            code = 1
        else:
            (ROOT / file).write_text(wanted)
    return code


sys.exit(main())
