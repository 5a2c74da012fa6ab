"""Two brokers on which the same tools are run: `both.same("topics", "--list")` fails if their outputs differ.

Owns: which words of an output are a broker's own. A test makes its changes through `same` or through `both.each`, so
that the two brokers stay alike.
"""

from __future__ import annotations

import difflib
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from compat_tests.tools import meant
from compat_tests.tools.said import Said, said
from compat_tests.tools.toolbox import ANSWER_SECONDS, SECONDS, Printed, Toolbox

# If a tool that only reads does not show the expected output for Kafka, it is run again for a while.
READS = frozenset({"--describe", "--list", "describe", "list", "describe-producers", "find-hanging"})
LAG_SECONDS = 3
BOOTSTRAP_FIRST = frozenset(
    {"features", "metadata-quorum", "transactions"}
)  # before the word that says what to do
SHOWN = 6000  # characters of an output

Argument = str | Callable[["Side"], str]


class Side(NamedTuple):
    name: str
    bootstrap: str
    data: str
    lags: bool  # Kafka's broker applies its controller's changes a moment later

    @property
    def own(self) -> dict[str, str]:
        port = self.bootstrap.rpartition(":")[2]
        return {
            self.data: "DATA",
            self.bootstrap: "BOOTSTRAP",
            f"PLAINTEXT://127.0.0.1:{port}": "LISTENER",
            f"127.0.0.1:{int(port) + 1}": "CONTROLLER",
            f"127.0.0.1 {port}": "HOST PORT",
        }


class Both:
    def __init__(self, toolbox: Toolbox, ours: Side, theirs: Side) -> None:
        self.toolbox = toolbox
        self.ours = ours
        self.theirs = theirs
        self._numbers = itertools.count(1)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.ours, self.theirs

    def name(self, stem: str) -> str:
        return f"{stem}-{next(self._numbers)}"

    def topic(self, stem: str, partitions: int = 1, **configs: str) -> str:
        """A new topic on both."""
        name = self.name(stem)
        pairs = [
            word
            for key, value in configs.items()
            for word in ("--config", f"{key.replace('_', '.')}={value}")
        ]
        self.same("topics", "--create", "--topic", name, "--partitions", str(partitions), *pairs)
        return name

    def produce(self, topic: str, *values: str) -> None:
        """Records whose keys equal their values, so that each broker has them in the same partitions."""
        keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        lines = "".join(f"{value}:{value}\n" for value in values)
        self.same("console-producer", "--topic", topic, *keyed, stdin=lines)

    def raw(self, tool: str, *arguments: Argument, stdin: str = "", seconds: int = SECONDS) -> list[Printed]:
        """The tool's output for our broker and for Kafka, each with its own --bootstrap-server, at the same time."""
        futures = [
            self.toolbox.start(tool, *self._arguments(tool, side, arguments), stdin=stdin, seconds=seconds)
            for side in self.sides
        ]
        return [future.result(seconds + ANSWER_SECONDS) for future in futures]

    def same(
        self,
        tool: str,
        *arguments: Argument,
        stdin: str = "",
        exits: int | None = 0,
        ordered: bool = False,
        has: str = "",
        rewrite: Callable[[str], str | None] | None = None,
        seconds: int = SECONDS,
    ) -> Said:
        """Run the tool on both; returns its output for Kafka.

        `exits` and `has` are the exit code and a part of the output that Kafka must give, which shows that the test is
        right. `ordered`: the order of lines matters. `rewrite` removes from a line the fields that cannot be equal
        (speeds, times), or the whole line (None).
        """
        asked = f"{tool} {' '.join(a if isinstance(a, str) else '...' for a in arguments)}"

        def shaped(printed: list[Printed]) -> list[Said]:
            pairs = zip(printed, self.sides, strict=True)
            return [self._shaped(said(one, side.own), ordered, rewrite) for one, side in pairs]

        ours, theirs = shaped(self.raw(tool, *arguments, stdin=stdin, seconds=seconds))
        deadline = time.monotonic() + LAG_SECONDS
        while (problem := wrong(asked, ours, theirs, exits, has)) is not None:
            if time.monotonic() > deadline or not READS.intersection(arguments):
                pytest.fail(problem, pytrace=False)
            again = shaped(self.raw(tool, *arguments, stdin=stdin, seconds=seconds))
            theirs = again[1]
            ours = again[0] if self.ours.lags else ours
        return theirs

    @staticmethod
    def _arguments(tool: str, side: Side, arguments: tuple[Argument, ...]) -> list[str]:
        words = [word if isinstance(word, str) else word(side) for word in arguments]
        if "--no-bootstrap" in words:
            words.remove("--no-bootstrap")
            return words
        where = ["--bootstrap-server", side.bootstrap]
        return [*where, *words] if tool in BOOTSTRAP_FIRST else [*words, *where]

    @staticmethod
    def _shaped(one: Said, ordered: bool, rewrite: Callable[[str], str | None] | None) -> Said:
        shaped = []
        for lines in (one.out, one.err):
            if rewrite is not None:
                lines = [line for line in map(rewrite, lines) if line is not None]
            shaped.append(lines if ordered else sorted(lines))
        return Said(one.code, *shaped)


def wrong(asked: str, ours: Said, theirs: Said, exits: int | None, has: str) -> str | None:
    if theirs.code != exits:
        return f"{asked}: exit code {theirs.code} on Kafka: {theirs!r:.{SHOWN}}"
    if has not in "\n".join(theirs.out + theirs.err):
        return f"{asked}: no {has!r} on Kafka: {theirs!r:.{SHOWN}}"
    found = differences(ours, theirs)
    return f"{asked}\n{found:.{SHOWN}}" if found else None


def differences(ours: Said, theirs: Said) -> str:
    """A diff of the two, without lines that only Kafka may have (meant.LATER); empty if they are alike."""
    found = [] if ours.code == theirs.code else [f"exit code: ours {ours.code}, Kafka's {theirs.code}"]
    for name, mine, other in (("out", ours.out, theirs.out), ("err", ours.err, theirs.err)):
        other = [line for line in other if line in mine or not meant.is_later(line)]
        if mine != other:
            diff = difflib.unified_diff(other, mine, f"Kafka's {name}", f"our {name}", lineterm="", n=1)
            found.append("\n".join(diff))
    return "\n".join(found)
