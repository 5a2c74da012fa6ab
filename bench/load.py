"""load.c, compiled with cc when it is first needed, and its runs: one JSON line each."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("load.c")
BUILD = SOURCE.parent.parent / "build" / "bench"


def program() -> Path:
    target = BUILD / "load"
    if not target.exists() or target.stat().st_mtime < SOURCE.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC", "cc")
        fresh = BUILD / f"load.{os.getpid()}"
        subprocess.run(
            [compiler, "-O2", "-std=c11", "-D_GNU_SOURCE", "-o", str(fresh), str(SOURCE)], check=True
        )
        fresh.replace(target)
    return target


class Load:
    """One run of the load client against a port; `result()` waits for it."""

    def __init__(
        self,
        port: int,
        frames: list[bytes],
        *,
        error_at: int,
        seconds: float,
        warmup: float,
        connections: int = 1,
        depth: int = 1,
        stride: int = 0,
        awake: bool = False,
    ) -> None:
        with tempfile.NamedTemporaryFile(prefix="bench-frames-", delete=False) as file:
            file.write(b"".join(frames))
        self.frames = Path(file.name)
        numbers = [connections, depth, warmup, seconds, stride, error_at, int(awake)]
        self.process = subprocess.Popen(
            [str(program()), str(port), file.name, *map(str, numbers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self) -> dict[str, float]:
        out, error = self.process.communicate()
        self.frames.unlink(missing_ok=True)
        if self.process.returncode:
            raise RuntimeError(f"the load client failed: {error.strip()}")
        result: dict[str, float] = json.loads(out)
        if not result["answers"]:
            raise RuntimeError("the load client got no answer in its time")
        return result
