"""The log line about a callback that held the loop for long, which names the request.

The loop counts callbacks from 20 ms on (ext/reactor_holds.pxi); a line is written from PYKAFKAD_HOLD_MS on. The header
of the request is read again for it, from the first bytes of its frame. PYKAFKAD_HOLD_LOG names a file that gets the
lines too: a run of tests with many brokers looks there at its end (conftest.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

from pykafkad.hot.wire import Exchange
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_MS = 100
CLIENT_ID_SHOWN = 60

log = logger("server")


def on_hold(where: str, held_us: int, detail: Any) -> None:
    if held_us >= 1000 * limit_ms():
        line = f"{named(where, detail)} held the loop for {held_us // 1000} ms of CPU"
        log.warn(line)
        path = os.environ.get("PYKAFKAD_HOLD_LOG")
        if path:
            with open(path, "a") as file:
                file.write(line + "\n")


def limit_ms() -> int:
    text = os.environ.get("PYKAFKAD_HOLD_MS", "")
    return int(text) if text.isdecimal() else DEFAULT_MS


def named(where: str, detail: Any) -> str:
    if where == "on_frame":
        connection, head, size = detail
        host, port = connection.peer[:2]
        return f"{request_of(head)} from {host}:{port} ({client_of(head)}, {size} bytes)"
    callback, arguments = detail
    work = getattr(getattr(callback, "__self__", None), "last", None)  # of Slices
    passed = next((f" with {name_of(each)}" for each in arguments if callable(each)), "")
    return f"{where} {name_of(work or callback)}{passed}{for_whom((callback, *arguments))}"


def for_whom(parts: Iterable[Any]) -> str:
    """The request that a callback or its arguments belong to, if that can be seen."""
    for part in parts:
        if isinstance(part, partial):
            found = for_whom((part.func, *part.args))
            if found:
                return found
        elif isinstance(part, Exchange) and part.route is not None:
            return f", for {part.route.name} v{part.version} (client {part.client_id[:CLIENT_ID_SHOWN]!r}),"
    return ""


def request_of(head: bytes) -> str:
    from pykafkad.handlers import APIS

    key, version = int.from_bytes(head[:2], "big", signed=True), int.from_bytes(head[2:4], "big", signed=True)
    return f"{APIS[key].name if key in APIS else key} v{version}"


def client_of(head: bytes) -> str:
    size = max(0, int.from_bytes(head[8:10], "big", signed=True))
    return f"client {head[10 : 10 + size][:CLIENT_ID_SHOWN].decode(errors='replace')!r}"


def name_of(callback: Any) -> str:
    callback = getattr(callback, "func", callback)  # the arguments of a partial
    code = getattr(callback, "gi_code", None) or getattr(callback, "__code__", None)
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return f"{name} of {os.path.basename(code.co_filename)}" if code is not None else name
