"""The quick starts of README.md and docs/: fenced blocks, each below a comment `<!-- quick start: NAME -->`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^<!-- quick start: ([^\n]+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:9092"  # of the broker that `make run` starts, which all quick starts talk to


def blocks() -> dict[str, str]:
    """Each quick start by its name, as it is written."""
    found: dict[str, str] = {}
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = file.read_text()
        named = BLOCK.findall(text)
        assert len(named) == text.count("<!-- quick start: "), (
            f"{file}: a quick start without a fenced block below"
        )
        for name, _language, code in named:
            assert name not in found, f"two quick starts are called {name}"
            found[name] = code
    return found


def block(name: str, bootstrap: str = ADDRESS) -> str:
    """One of them, for the broker that runs at `bootstrap`."""
    return blocks()[name].replace(ADDRESS, bootstrap)
