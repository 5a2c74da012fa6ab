"""A process that other processes know by a file: it holds a lock on the file as long as it lives.

Invariants: the lock is taken before the process begins, and inherited by it, so it ends with the process, however that
ends, and nobody takes another process for it that was given the same id later. The file holds the id while it is locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

POLL_S = 0.01
PAUSED, ISOLATED = "paused", "isolated"  # files beside that of the process, while it is so
WRITTEN_S = 5.0  # after the lock is taken the id is written at once


class ClusterError(RuntimeError):
    """What a command cannot do, in a sentence for the user."""


class Process:
    def __init__(self, name: str, path: str) -> None:
        """`path`: of the file. `name`: what the user calls it."""
        self.name = name
        self._path = path
        self._child: subprocess.Popen[bytes] | None = None  # if we are its parent: it is waited for

    @property
    def pid(self) -> int | None:
        """None: it does not run."""
        deadline = time.monotonic() + WRITTEN_S
        while self.is_running:
            with open(self._path, encoding="ascii") as file:
                text = file.read()
            if text.endswith("\n"):
                return int(text)
            if time.monotonic() > deadline:
                raise ClusterError(f"{self._path} does not say which process {self.name} is")
            time.sleep(POLL_S)
        return None

    @property
    def is_running(self) -> bool:
        """Whether the lock is held. Those who look share it among themselves."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        try:
            file = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    @property
    def is_paused(self) -> bool:
        return self._is_marked(PAUSED)

    @property
    def is_isolated(self) -> bool:
        return self._is_marked(ISOLATED)

    def mark_isolated(self, isolated: bool) -> None:
        """Whoever has cut it off, or joined it again, says so here; it ends with the process."""
        (self._mark if isolated else self._unmark)(ISOLATED)

    def _is_marked(self, mark: str) -> bool:
        return os.path.exists(f"{self._path}.{mark}") and self.is_running

    def _mark(self, mark: str) -> None:
        with open(f"{self._path}.{mark}", "w", encoding="ascii"):
            pass

    def _unmark(self, mark: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._path}.{mark}")

    # -- what is done to it

    def start(self, command: Sequence[str], output: str, environment: Mapping[str, str]) -> None:
        """In a session of its own, so that Ctrl-C in a terminal does not reach it; what it says is added to `output`."""
        lock = self.take()
        try:
            with open(output, "ab") as log:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
            self.write(lock, self._child.pid)
        except OSError as problem:
            raise ClusterError(f"{self.name} cannot be started: {problem}") from problem
        finally:
            os.close(lock)

    def take(self) -> int:
        """The locked file, for whoever is the process from now on; ClusterError: another one is."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # or somebody looks just now
                if self.is_running:
                    os.close(file)
                    raise ClusterError(f"{self.name} is running already") from None
        os.ftruncate(file, 0)
        self._unmark(PAUSED)
        self._unmark(ISOLATED)
        return file

    @staticmethod
    def write(file: int, pid: int) -> None:
        os.pwrite(file, f"{pid}\n".encode(), 0)

    def signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is None:
            raise ClusterError(f"{self.name} is not running")
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, number)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)
        self._mark(PAUSED)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        self._unmark(PAUSED)

    def kill(self) -> None:
        """As in a crash."""
        self.signal(signal.SIGKILL)
        self.wait(WRITTEN_S)

    def ask_to_stop(self) -> None:
        """Nothing, if it does not run. One that is paused hears it."""
        if self.is_running:
            with contextlib.suppress(ClusterError):  # it has just ended
                self.signal(signal.SIGTERM)
                self.resume()

    def wait(self, seconds: float) -> bool:
        """Until it has ended; whether it has."""
        deadline = time.monotonic() + seconds
        while self.is_running:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
