"""Unix sockets in a directory, for their owner alone: binding one, connecting to it, asking who came.

Invariants: nobody can connect before the socket has the mode PRIVATE, since it listens only after that; what lies at its
path is replaced, so whoever binds must own the directory (a broker has its lock). An address of a Unix socket has room
for some 100 bytes, and a data directory may have a longer path: then the address goes by way of a descriptor of the
directory, which needs Linux' /proc and leaves nothing behind that would have to be found or removed.
"""

from __future__ import annotations

import _socket
import errno
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

ADDRESS_BYTES = 100  # sun_path has 108 on Linux, 104 elsewhere, with a zero at its end
PRIVATE = 0o600
CREDENTIALS = struct.Struct("3i")  # process, user, group


def _with_address(use: Callable[[str], None], path: str) -> None:
    """Calls `use` (bind, or connect) with what names this path for as long, and is short enough."""
    if len(os.fsencode(path)) <= ADDRESS_BYTES:
        use(path)
        return
    if sys.platform != "linux":
        raise OSError(errno.ENAMETOOLONG, f"{os.strerror(errno.ENAMETOOLONG)} for a Unix socket")
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)


def bind(path: str) -> _socket.socket:
    """A socket that only its owner can open, bound and not listening yet; OSError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _with_address(sock.bind, path)
        _keep_private(path)
    except BaseException:
        sock.close()
        raise
    return sock


def _keep_private(path: str) -> None:
    try:
        os.chmod(path, PRIVATE)
        if stat.S_IMODE(os.stat(path).st_mode) != PRIVATE:
            raise OSError(errno.EPERM, "the file system does not keep others from a socket")
    except OSError:
        try:
            os.unlink(path)
        except OSError:
            pass
        raise


def connect(path: str, timeout_s: float) -> socket.socket:
    """OSError: nobody listens there, or it is somebody else's."""
    import socket

    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        _with_address(sock.connect, path)
    except BaseException:
        sock.close()
        raise
    return sock


def is_ours(fd: int) -> bool:
    """Whether who connected is this user (or root), where the system says who it is; elsewhere the mode alone counts."""
    if sys.platform != "linux":
        return True
    sock = _socket.socket(fileno=os.dup(fd))
    try:
        asked = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, CREDENTIALS.size)
    finally:
        sock.close()
    return CREDENTIALS.unpack(asked)[1] in (os.geteuid(), 0)
