"""Our tool and Kafka's of the same purpose, run with the same arguments on one broker.

Owns: which tool is whose, the names that each has of its own, and what of standard error is compared.
"""

from __future__ import annotations

import subprocess
import sys

from compat_tests.tools.toolbox import SECONDS, Printed, Toolbox

STOCK = {
    "topics": "topics",
    "configs": "configs",
    "groups": "consumer-groups",
    "offsets": "get-offsets",
    "produce": "console-producer",
    "consume": "console-consumer",
    "dump-log": "dump-log",
    "log-dirs": "log-dirs",
    "perf-produce": "producer-perf",
    "perf-consume": "consumer-perf",
    "transactions": "transactions",
}
NAME = "NAME"


class Twins:
    """`same()` fails if the two differ."""

    def __init__(self, toolbox: Toolbox, bootstrap: str) -> None:
        self.toolbox = toolbox
        self.bootstrap = bootstrap

    def same(
        self, tool: str, *arguments: str, stdin: str = "", stock: str = "", first_error: bool = True
    ) -> Printed:
        """Run both and compare; returns their output. NAME stands for a name of each tool's own."""
        theirs = self.theirs(stock or STOCK[tool], *arguments, stdin=stdin)
        ours = self.ours(tool, *arguments, stdin=stdin)
        asked = f"{tool} {' '.join(arguments)}"
        assert ours.out == theirs.out, asked
        assert ours.code == theirs.code, f"{asked}: {ours.err} {theirs.err}"
        if first_error:
            assert sentence(ours.err) == sentence(theirs.err), asked
        return ours

    def ours(self, tool: str, *arguments: str, stdin: str = "") -> Printed:
        command = [sys.executable, "-m", "pykafkad", tool, *self._words(arguments, "ours")]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return cleaned(Printed(done.returncode, done.stdout, done.stderr))

    def theirs(self, tool: str, *arguments: str, stdin: str = "") -> Printed:
        return cleaned(self.toolbox.run(tool, *self._words(arguments, "them"), stdin=stdin, seconds=SECONDS))

    def _words(self, arguments: tuple[str, ...], name: str) -> list[str]:
        words = [word.replace(NAME, name) for word in arguments]
        if "--no-bootstrap" in words:
            words.remove("--no-bootstrap")
            return words
        return ["--bootstrap-server", self.bootstrap, *words]


def cleaned(printed: Printed) -> Printed:
    out = printed.out.replace("ours", NAME).replace("them", NAME)
    return Printed(printed.code, out, printed.err.replace("ours", NAME).replace("them", NAME))


def sentence(err: str) -> str:
    """The first line for the user; Java's log lines and traces are skipped, and the usage before what is wrong with the
    arguments of a tool with commands, which is wrapped."""
    if err.startswith("usage: "):
        return " ".join(err.partition("error: ")[2].split())
    for line in err.splitlines():
        said = line.removeprefix('Exception in thread "main" ')
        if said.strip() and not said.startswith(("[", "\tat ", "Caused by:", "WARN ")):
            return said.partition("Exception: ")[2] or said
    return ""
