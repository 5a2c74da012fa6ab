"""A file system in a file: it can be full, and its power can fail.

Needs root, loop devices, mkfs.ext4 and mount; `why_not` says what is missing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN, _IOR('X', 125, __u32)
NO_LOG_FLUSH = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH: the journal is lost as well
PROGRAMS = ("mkfs.ext4", "mount", "umount")
TRIES = 50


def why_not() -> str | None:
    """What is missing; None if disks can be made here."""
    if os.geteuid() != 0:
        return "only root may mount a file system"
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        return f"there is no {missing[0]}"
    try:
        with tempfile.TemporaryDirectory(prefix="pykafkad-torture-") as home, Disk(Path(home), 8) as disk:
            disk.cut_power()
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        return f"no file system can be mounted and cut off: {said}".strip()
    return None


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"PATH": _path()})


class Disk:
    """ext4 in `home/disk.img`, mounted on `home/disk`."""

    def __init__(self, home: Path, megabytes: int) -> None:
        self.image, self.path = home / "disk.img", home / "disk"
        self._mounted = False
        self.path.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        _run("mkfs.ext4", "-q", "-F", "-O", "^resize_inode", str(self.image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.path))
        self._mounted = True

    def cut_power(self) -> None:
        """Nothing reaches the disk any more; what was not synced is gone, or is there in part."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        for left in reversed(range(TRIES)):
            try:
                _run("umount", str(self.path))
                break
            except subprocess.CalledProcessError:  # a killed process may not have ended yet
                if not left:
                    raise
        self._mounted = False

    def close(self) -> None:
        if self._mounted:
            self.unmount()

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
