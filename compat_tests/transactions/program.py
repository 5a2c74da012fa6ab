"""A client's program (drivers/line.py has the lines): the process, its answers, what it complained about."""

from __future__ import annotations

import subprocess
import tempfile
import threading

from .flavours import Flavour

ANSWER_SECONDS = 60.0  # for any command
STDERR_SHOWN = 3000


class Refused(Exception):
    """The client refused a command."""


class Program:
    """`ready` when it is made."""

    def __init__(self, flavour: Flavour, bootstrap: str) -> None:
        self.flavour = flavour
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*flavour.command(), f"bootstrap={bootstrap}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        assert self._answer("start") == ["ready"], self._trouble("did not start")

    def ask(self, *words: object) -> list[str]:
        """Send one command; returns the values it found, or raises Refused."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(self._trouble(f"was gone when told {words}")) from None
        answer = self._answer(words)
        if answer[:1] != ["ok"]:
            raise Refused(f"{self.flavour.name} {words}: {' '.join(answer)}")
        return answer[1:]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            assert stream is not None
            stream.close()

    def _answer(self, asked: object) -> list[str]:
        """The next line; a program that does not answer in time is killed, which is an end of its lines."""
        assert self._process.stdout is not None
        late = threading.Timer(ANSWER_SECONDS, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        assert line, self._trouble(f"ended, or did not answer {asked} in {ANSWER_SECONDS} s")
        return line.split()

    def _trouble(self, what: str) -> str:
        self._stderr.seek(0)
        return f"{self.flavour.name} {what}\n{self._stderr.read()[-STDERR_SHOWN:]}"
