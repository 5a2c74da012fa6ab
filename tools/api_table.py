"""Writes README.md's table of the APIs served, from what the handlers declare; --check only compares."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from pykafkad import handlers

README = Path(__file__).parent.parent / "README.md"
BEGIN = "<!-- apis: written by `make format` from pykafkad/handlers -->\n"
END = "<!-- /apis -->\n"


def served() -> list[ModuleType]:
    names = (found.name for found in pkgutil.iter_modules(handlers.__path__))
    modules = [importlib.import_module(f"pykafkad.handlers.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "API_KEY")), key=lambda module: int(module.API_KEY))


def row(module: ModuleType) -> str:
    first, last = module.VERSIONS
    name = module.REQUEST.removesuffix("Request")
    return f"| {module.API_KEY} | {name} | {first}–{last} |\n"


def main() -> int:
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    table = "| key | API | versions |\n|---|---|---|\n" + "".join(map(row, served()))
    wanted = f"{before}{BEGIN}{table}{END}{after}"
    if wanted == text:
        return 0
    if "--check" in sys.argv:
        print("README.md: the table of APIs is out of date; `make format` writes it", file=sys.stderr)
        return 1
    README.write_text(wanted)
    return 0


sys.exit(main())
