"""The other side of the control socket: one connection to a broker of this machine, for the tools.

`ask` gives the rows of an answer; after `trace`, `events` gives what comes. ControlError: what is wrong, in a sentence
for the user.
"""

from __future__ import annotations

import json
import os

from pykafkad.control import SOCKET, VERSION
from pykafkad.net import unix_sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]

TIMEOUT_S = 10.0
ROW_BYTES = 1 << 20


class ControlError(Exception):
    """No broker answers there, or it refused."""


class ControlClient:
    def __init__(self, directory: str) -> None:
        path = os.path.join(directory, SOCKET)
        try:
            self._socket = unix_sockets.connect(path, TIMEOUT_S)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise ControlError(f"no broker runs in {directory}") from None
        except PermissionError:
            raise ControlError(f"the broker in {directory} is another user's") from None
        except OSError as error:
            raise ControlError(f"{path}: {error.strerror or error}") from None
        self._lines = self._socket.makefile("rb")

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, command: str, **arguments: Any) -> Iterator[Row]:
        """The rows of the answer."""
        request = {"version": VERSION, "command": command, **arguments}
        self._send(json.dumps(request).encode() + b"\n")
        while True:
            row = self._next()
            if "end" not in row:
                yield row
                continue
            if "error" in row:
                raise ControlError(row["error"])
            if "left_out" in row:
                yield {"left_out": row["left_out"]}
            return

    def events(self) -> Iterator[Row]:
        """What comes after `trace`, as long as it comes."""
        self._socket.settimeout(None)
        while True:
            yield self._next()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ControlError(f"the broker has gone: {error.strerror or error}") from None

    def _next(self) -> Row:
        while True:
            try:
                line = self._lines.readline(ROW_BYTES)
            except TimeoutError:
                raise ControlError(f"the broker did not answer within {TIMEOUT_S:g} s") from None
            except OSError as error:
                raise ControlError(f"the broker has gone: {error.strerror or error}") from None
            if not line.endswith(b"\n"):
                raise ControlError("the broker has closed the control connection")
            if line != b"\n":
                row: Row = json.loads(line)
                return row
