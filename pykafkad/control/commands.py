"""The commands of the control socket: a table of their names, and how a line becomes rows.

A command is `command(broker, client, arguments)`, a generator: it yields the rows of its answer, and None wherever others
may have their turn. CommandError is a mistake of whoever asked, and is told in the answer. Between two rows everything
may change, as in a handler.
"""

from __future__ import annotations

import json

from pykafkad.control import VERSION, facts, isolation, status, tracing
from pykafkad.control.lines import CommandError, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pykafkad.control.server import Client
    from pykafkad.server import Broker
    from pykafkad.slices import Work

    Arguments = dict[str, Any]
    Row = dict[str, Any]
    Command = Callable[[Broker, Client, Arguments], Iterator[Row | None]]

COMMANDS: dict[str, Command] = {
    "status": status.rows,
    "facts": facts.rows,
    "trace": tracing.begin,
    "isolate": isolation.isolate,
    "heal": isolation.heal,
}


def perform(broker: Broker, client: Client, line: bytes, lines: list[bytes], most_bytes: int) -> Work:
    """Do what the line asks for, and append the lines of the answer."""
    end: Row = {"end": True}
    size = left_out = 0
    try:
        command, arguments = parse(line)
        for row in COMMANDS[command](broker, client, arguments):
            if row is not None and size < most_bytes:
                lines.append(encoded(row))
                size += len(lines[-1])
            elif row is not None:
                left_out += 1
            yield
    except CommandError as error:
        end["error"] = str(error)
    if left_out:
        end["left_out"] = left_out
    lines.append(encoded(end))


def parse(line: bytes) -> tuple[str, Arguments]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"this is no JSON: {error}") from None
    if not isinstance(request, dict):
        raise CommandError('a request is an object, {"version": 1, "command": "status"}')
    version, command = request.pop("version", None), request.pop("command", None)
    if version != VERSION or isinstance(version, bool):
        raise CommandError(f"version {version} of the control protocol is not spoken here, but {VERSION}")
    if not isinstance(command, str) or command not in COMMANDS:
        raise CommandError(f"no command {command!r}: there are {', '.join(COMMANDS)}")
    return command, request
