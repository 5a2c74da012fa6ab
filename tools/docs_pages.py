"""A hook of mkdocs: pages of docs/ include parts of the texts at the top of the repository rather than repeat them.

    <!-- include README.md -->                      the whole text
    <!-- include README.md "First records" -->      a section with its heading, up to the next heading of its level

A title's section (level 1) ends at the first heading of level 2. A link from one of these texts to another becomes one
to the page that includes it, a link to a page of docs/ one to that page, a link to any other file of the repository
plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parent.parent
# The page that includes the whole of a text.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
INCLUDE = re.compile(r'^<!-- include (\S+?)(?: "(.+)")? -->$', re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
HEADING = re.compile(r"(#+) (.*)")


def on_page_markdown(markdown: str, **_event: Any) -> str:
    """Called by mkdocs with each page."""
    return INCLUDE.sub(lambda found: LINK.sub(_link, included(found[1], found[2])), markdown)


def included(name: str, title: str | None) -> str:
    text = (ROOT / name).read_text()
    return section(text, title, name) if title else text


def section(text: str, title: str, name: str) -> str:
    lines: list[str] = []
    level = 0  # of the section's heading, once it is found
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        heading = None if in_code else HEADING.fullmatch(line)
        if heading and level and len(heading[1]) <= max(level, 2):
            break
        if heading and heading[2] == title:
            level = len(heading[1])
        if level:
            lines.append(line)
    if not level:
        raise PluginError(f"{name} has no section {title!r}")
    return "\n".join(lines)


def _link(found: re.Match[str]) -> str:
    text, target, anchor = found.groups()
    page = target.removeprefix("docs/") if target.startswith("docs/") else PAGES.get(target)
    return f"[{text}]({page}{anchor or ''})" if page else text
