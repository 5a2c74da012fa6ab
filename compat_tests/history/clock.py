"""The wall clock of programs that we start, moved while they run (moved_clock.c, compiled when first wanted)."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("moved_clock.c")
NS_A_MS = 1_000_000


class MovedClock:
    """Programs started within `worn()` see a wall clock that is off by what was set last."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="moved-clock-"))
        self._library = self._directory / "moved_clock.so"
        self._file = self._directory / "offset"
        self.set_ms(0)
        command = [
            os.environ.get("CC", "cc"),
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            str(self._library),
            str(SOURCE),
        ]
        subprocess.run(command, check=True)

    def set_ms(self, offset_ms: int) -> None:
        """In place: the file is mapped by the programs."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", offset_ms * NS_A_MS))

    @contextmanager
    def worn(self) -> Iterator[None]:
        given = {"LD_PRELOAD": str(self._library), "MOVED_CLOCK": str(self._file)}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
