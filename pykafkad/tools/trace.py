"""`pykafkad trace`: the requests of a running broker, as they are answered. Kafka has no such tool."""

from __future__ import annotations

import json
import time

from pykafkad.control.client import ControlError
from pykafkad.logs import escaped
from pykafkad.tools import output, running
from pykafkad.tools.options import INTEGER, Option, OptionError, Options, flag, run, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Row = dict[str, Any]

ABOUT = "This tool shows the requests of a running broker, a line for each as it is answered, until Ctrl-C."

OPTIONS: tuple[Option, ...] = (
    *running.OPTIONS,
    value("api", "name", "Only this API, as Fetch; * stands for any letters, here and below."),
    value("client", "client id", "Only requests of this client id."),
    value("topic", "topic", "Only requests about this topic."),
    value("group", "group", "Only requests about this group."),
    flag("errors", "Only requests that were answered with an error."),
    flag("bodies", "With what is in the requests and answers, shortened."),
    value("n", "count", "End after so many requests.", kind=INTEGER),
)
FILTERS = ("api", "client", "topic", "group")


def main(arguments: Sequence[str]) -> int:
    return run(
        OPTIONS, list(arguments) or ["--"], ABOUT, body
    )  # without arguments it is not explained but run


def body(options: Options) -> int:
    count = options.number("n")
    if count is not None and count < 1:
        raise OptionError(f"Cannot parse argument '{count}' of option n: 1 or more")
    filters: dict[str, Any] = {name: text for name in FILTERS if (text := options.value(name)) is not None}
    try:
        client = running.connect(options)
        try:
            list(client.ask("trace", **filters, errors=options.has("errors"), bodies=options.has("bodies")))
            for row in client.events():
                output.line(line_of(row))
                output.flush()
                if "request" in row and count is not None:
                    count -= 1
                    if not count:
                        break
        finally:
            client.close()
    except KeyboardInterrupt:
        return 0
    except ControlError as problem:
        output.error(escaped(str(problem)))
        return 1
    return 0


def line_of(row: Row) -> str:
    if "left_out" in row:
        return f"... {row['left_out']} requests are not shown: they came faster than they could be read"
    request = row["request"]
    second, ms = divmod(request["time_ms"], 1000)
    at = time.strftime("%H:%M:%S", time.localtime(second))
    parts = [
        f"{at}.{ms:03d}",
        request["address"],
        json.dumps(request["client_id"], ensure_ascii=False),
        request["api"],
    ]
    parts += [f"{what}={','.join(request[what])}" for what in ("topics", "groups") if request[what]]
    parts += [",".join(request["errors"]) or "OK", f"{request['us']} us"]
    bodies = {what: request[what] for what in ("request", "response") if what in request}
    if bodies:
        parts.append(json.dumps(bodies, ensure_ascii=False))
    return escaped(" ".join(parts))
