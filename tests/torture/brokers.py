"""A broker under strace: killed at its N-th call of a kind, or with that call failing.

strace is attached to it (tests.torture.launch), so the process that the test kit starts is the broker. The trace shows
which call was hit.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pykafkad.testing import Broker, BrokerError

# Calls by their purpose: other C libraries use other system calls for the same.
SYSCALLS = {
    "write": "write",
    "pwritev": "pwritev,pwritev2",
    "pwrite64": "pwrite64",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "rename": "rename,renameat,renameat2",
    "unlink": "unlink,unlinkat",
    "rmdir": "rmdir",
    "ftruncate": "ftruncate,truncate",
    "fallocate": "fallocate",
    "mkdir": "mkdir,mkdirat",
    "openat": "openat",
    "pread64": "pread64,preadv,preadv2",
    "read": "read",
    "mmap": "mmap",
    "sendfile": "sendfile",
    "copy_file_range": "copy_file_range",
}
LARGEST_NUMBER = 65_535  # strace counts no further than this


@dataclass(frozen=True)
class Injection:
    """The `number`-th call of `syscall` in a thread fails (`EIO`), with `lasting` all later ones too, or kills the
    process.
    """

    syscall: str
    number: int
    error: str = ""
    lasting: bool = False

    def arguments(self) -> list[str]:
        what = f"error={self.error}" if self.error else "signal=KILL"
        when = f"{self.number}+" if self.lasting else f"{self.number}"
        names = SYSCALLS[self.syscall]
        return ["-e", f"trace={names}", "-e", f"inject={names}:{what}:when={when}"]

    def __str__(self) -> str:
        return f"{self.error or 'kill'} at {self.syscall} {self.number}{' and on' if self.lasting else ''}"


class Tortured(Broker):
    """A broker on `home/data` (or several directories of it); with an injection it runs under strace."""

    def __init__(self, home: Path, config: Mapping[str, object], injection: Injection | None = None) -> None:
        self.home = home
        self.injection = injection
        self.trace_path = home / "trace"
        super().__init__(config=config, data=home / "data", start=False)
        self.log_path = str(home / "broker.log")

    def _command(self) -> list[str]:
        command = super()._command()
        if self.injection is None:
            return command
        strace = [
            "-f",
            "-y",
            "-ttt",
            "-qq",
            "-s",
            "0",
            "-o",
            str(self.trace_path),
            *self.injection.arguments(),
        ]
        at = command.index("pykafkad")
        return [*command[:at], "tests.torture.launch", *strace, "--", *command[at + 1 :]]

    def start_or_die(self) -> bool:
        """Whether it started; an injection may prevent that."""
        try:
            self.start()
        except BrokerError:
            if self.injection is None or self.running or not (self.injection.error or self.was_killed):
                raise
            return False
        return True

    def end(self) -> int:
        """Its exit code; if it runs it is stopped."""
        if self.running:
            return self.stop()
        assert self._process is not None
        return self._process.wait()

    @property
    def was_killed(self) -> bool:
        return not self.running and self._process is not None and self._process.returncode == -signal.SIGKILL

    def hit(self) -> str:
        """The call that was hit: its name and the file, without the changing parts of the file's name."""
        calls = self.calls()
        wanted = self.injected() or [call for call in calls if call.endswith("= ?")] or calls[-1:]
        return kind_of_call(wanted[0]) if wanted else ""

    def hit_data(self) -> bool:
        """Whether all failed calls were for files of the data directories, not for a socket, a pipe or the log."""
        directories = [f"{self.home}/{name}" for name in ("data", "jbod")]
        calls = self.injected()
        return bool(calls) and all(any(path in call for path in directories) for call in calls)

    def injected(self) -> list[str]:
        """The calls that failed."""
        return [call for call in self.calls() if "(INJECTED)" in call]

    def calls(self) -> list[str]:
        """The trace, in the order in which the calls ended; a call that was interrupted by those of other threads is
        one line."""
        try:
            lines = self.trace_path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        begun: dict[str, str] = {}
        calls = []
        for line in lines:
            thread = line.partition(" ")[0]
            if line.endswith("<unfinished ...>"):
                begun[thread] = line.removesuffix("<unfinished ...>")
            elif " resumed>" in line:
                calls.append(begun.pop(thread, "") + line.partition(" resumed>")[2])
            elif "+++" not in line and "---" not in line:
                calls.append(line)
        return calls + list(begun.values())


def kind_of_call(line: str) -> str:
    """`rename .log.deleted` from a line of a trace."""
    name = re.search(r"(\w+)\(", line)
    paths = re.findall(r'[<"]([^<>"]*/[^<>"]*)[>"]', line)
    if name is None:
        return line
    if not paths:
        return f"{name[1]} (no file)"
    base = os.path.basename(paths[-1])
    if base.endswith((".so", ".py", ".pyc", ".json")):
        base = "of the program"
    return f"{name[1]} {re.sub(r'[0-9a-f]{32}', '*', re.sub(r'[0-9]{20}', '*', base))}"


def scratch(where: str | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="pykafkad-torture-", dir=where))
