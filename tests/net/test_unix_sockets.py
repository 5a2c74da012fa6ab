"""Unix sockets in a directory: only their owner's, under paths of any length."""

from __future__ import annotations

import _socket
import os
import socket
import stat
from pathlib import Path

import pytest

from pykafkad.net import unix_sockets
from pykafkad.net.unix_sockets import ADDRESS_BYTES


def at(directory: Path, length: int) -> str:
    """A path of that many bytes."""
    between = directory / ("d" * (length - len(f"{directory}//s")))
    between.mkdir(exist_ok=True)
    return f"{between}/s"


@pytest.mark.parametrize("length", [ADDRESS_BYTES - 1, ADDRESS_BYTES, ADDRESS_BYTES + 1, 108, 300])
def test_a_socket_is_bound_and_found_under_a_path_of_any_length(tmp_path: Path, length: int) -> None:
    directory = tmp_path if len(str(tmp_path)) < ADDRESS_BYTES - 5 else Path(os.path.relpath(tmp_path))
    path = at(directory, length)
    bound = unix_sockets.bind(path)
    try:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with pytest.raises(ConnectionRefusedError):
            unix_sockets.connect(path, 5)
        bound.listen()
        with unix_sockets.connect(path, 5) as client:
            assert client.gettimeout() == 5
            server = socket.socket(fileno=bound._accept()[0])  # type: ignore[attr-defined]
            with server:
                assert unix_sockets.is_ours(server.fileno())
                client.sendall(b"hello")
                assert server.recv(10) == b"hello", "asking who it is leaves the connection open"
    finally:
        bound.close()


def test_what_lies_at_the_path_is_replaced(tmp_path: Path) -> None:
    path = f"{tmp_path}/s"
    Path(path).write_text("left by a broker that was killed")
    for _ in range(2):
        unix_sockets.bind(path).close()
        assert stat.S_ISSOCK(os.stat(path).st_mode)


def test_a_file_system_that_lets_others_in_has_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{tmp_path}/s"
    monkeypatch.setattr(os, "chmod", lambda path, mode: None)
    old = os.umask(0)
    try:
        with pytest.raises(PermissionError, match="does not keep others from a socket"):
            unix_sockets.bind(path)
    finally:
        os.umask(old)
    assert not os.path.exists(path)


def test_nobody_is_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unix_sockets.connect(f"{tmp_path}/s", 1)
    with pytest.raises(FileNotFoundError):
        unix_sockets.bind(f"{tmp_path}/missing/s")


def test_who_is_another_user_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        assert unix_sockets.is_ours(here.fileno())
        for user, is_ours in ((1 << 20, False), (0, True), (os.geteuid(), True)):
            told = unix_sockets.CREDENTIALS.pack(1, user, 0)
            monkeypatch.setattr(_socket, "socket", lambda fileno, told=told: Told(fileno, told))
            assert unix_sockets.is_ours(here.fileno()) is is_ours


class Told:
    """A socket of whose other end the system says this."""

    def __init__(self, fileno: int, told: bytes) -> None:
        self.fileno, self.told = fileno, told

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option, size) == (socket.SOL_SOCKET, socket.SO_PEERCRED, len(self.told))
        return self.told

    def close(self) -> None:
        os.close(self.fileno)
