"""The completion scripts, in the shells that are there: bash always; zsh and fish where they are installed. How the
scripts are built is in tests/unit/test_completion.py, wherever that is."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad import completion
from pykafkad.testing import Broker

SECONDS = 60  # against hangs
PYKAFKAD = str(Path(sys.executable).with_name("pykafkad"))
# what is typed before Tab -> the line after it
TYPED = {
    "pykafkad top": "pykafkad topics",
    "pykafkad topics --des": "pykafkad topics --describe",
    "pykafkad topics --describe --topic ord": "pykafkad topics --describe --topic orders",
    "pykafkad topics --topic=ord": "pykafkad topics --topic=orders",
    "pykafkad groups --describe --group bil": "pykafkad groups --describe --group billing",
    "pykafkad configs --entity-type bro": "pykafkad configs --entity-type broker",  # brokers, broker-loggers
    "pykafkad produce --topic orders --compression-codec zs": (
        "pykafkad produce --topic orders --compression-codec zstd"
    ),
    "pykafkad consume --command-config pyproject.to": "pykafkad consume --command-config pyproject.toml",
    "pykafkad start --ephe": "pykafkad start --ephemeral",
    "pykafkad start --log-level war": "pykafkad start --log-level warn",
    "pykafkad check --jso": "pykafkad check --json",
    "pykafkad completion fi": "pykafkad completion fish",
}
START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
}
SETUP = {
    "bash": "bind 'set enable-bracketed-paste off'",
    "zsh": "unsetopt zle_bracketed_paste; bindkey -e; autoload -Uz compinit; compinit -D -u",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        for name in ("orders", "$(touch ran)", "other"):
            subprocess.run(
                [
                    PYKAFKAD,
                    "topics",
                    "--create",
                    "--topic",
                    name,
                    "--bootstrap-server",
                    broker.bootstrap_servers,
                ],
                check=name.isalpha(),
                capture_output=True,
            )
        for group in ("billing", "$(touch ran)", "`touch ran`"):
            _commit(broker, group)
        yield broker


def _commit(broker: Broker, group: str) -> None:
    """A group that is there because it has committed something."""
    where = ["--bootstrap-server", broker.bootstrap_servers]
    how = ["--reset-offsets", "--group", group, "--topic", "orders", "--to-earliest", "--execute"]
    subprocess.run([PYKAFKAD, "groups", *how, *where], check=True, capture_output=True)


class Terminal:
    """A shell in a terminal, to type into."""

    def __init__(self, shell: str, bootstrap: str, directory: Path) -> None:
        path = f"{Path(PYKAFKAD).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(directory), "TERM": "dumb", "PS1": "> "}
        environment |= {"KAFKA_BOOTSTRAP_SERVERS": bootstrap, "LC_ALL": "C.UTF-8"}
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [shell, *START[shell]],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
        os.close(slave)
        self._number = 0
        self.run(SETUP[shell])
        self.run(f'eval "$(pykafkad completion {shell})"')

    def run(self, command: str) -> str:
        """What it prints. The mark at the end is not in the echo of what is typed."""
        self._number += 1
        self._write(f"{command}; echo mar''ker-{self._number}-\n")
        return self._until(f"marker-{self._number}-")

    def completed(self, typed: str) -> str:
        """The line that Tab makes of it. At the end it is a comment, of a command that prints it."""
        self._write(f"{typed}\t")
        self._number += 1
        # to the beginning of the line, a quote; to its end, a quote, and the mark
        self._write(f"\x01echo \"line=\x05\" mar''ker-{self._number}-\n")
        shown = self._until(f" marker-{self._number}-")
        return shown.rpartition("line=")[2].strip()

    def _write(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _until(self, mark: str) -> str:
        found = ""
        deadline = time.monotonic() + SECONDS
        while mark not in found:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {mark} in {found!r}"
            found += os.read(self._master, 65536).decode(errors="replace")
        return found.partition(mark)[0]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


def typed_into(shell: str, broker: Broker, directory: Path) -> None:
    terminal = Terminal(shell, broker.bootstrap_servers, directory)
    try:
        assert {typed: terminal.completed(typed) for typed in TYPED} == TYPED
        terminal.completed("pykafkad groups --describe --group ")
    finally:
        terminal.close()


def asked_of_fish(shell: str, broker: Broker, directory: Path) -> None:
    """It tells what it would offer."""
    script = directory / "script"
    script.write_text(printed("fish"))
    path = f"{Path(PYKAFKAD).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(directory), "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    for typed, line in TYPED.items():
        done = subprocess.run(
            [shell, "-N", "-c", f"source {script}; complete -C '{typed}'"],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        offered = [row.partition("\t")[0] for row in done.stdout.splitlines()]
        last = line.split()[-1]
        assert any(word in (last, f"{last}s") for word in offered), (typed, done)


TRIED = {"bash": typed_into, "zsh": typed_into, "fish": asked_of_fish}


@pytest.mark.parametrize("shell", ["bash", *(shell for shell in ("zsh", "fish") if shutil.which(shell))])
def test_what_tab_makes_of_it(shell: str, broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    TRIED[shell](shell, broker, tmp_path)
    assert not (tmp_path / "ran").exists(), "the name of a group was run"


def printed(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [PYKAFKAD, "completion", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert not done.stderr
    return done.stdout


def test_names_of_a_broker(broker: Broker) -> None:
    assert printed("topics", "--bootstrap-server", broker.bootstrap_servers).split()[-2:] == [
        "orders",
        "other",
    ]
    assert "billing\n" in printed("groups", KAFKA_BOOTSTRAP_SERVERS=broker.bootstrap_servers)


@pytest.mark.parametrize("kind", completion.NAMES)
def test_no_broker_is_no_names(kind: str) -> None:
    assert printed(kind, "--bootstrap-server", "127.0.0.1:1") == ""
    assert printed(kind, KAFKA_BOOTSTRAP_SERVERS="no address") == ""
