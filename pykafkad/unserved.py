"""What a broker refuses because it is not built, or not configured: one line a minute for each client and thing, that
names both. The client's own error seldom says why, and whoever runs the broker is who can change it.
"""

from __future__ import annotations

import re
from functools import cache

from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.context import Context
    from pykafkad.quiet import Quiet

ID_CHARACTERS = 100

log = logger("unserved")


def say(quiet: Quiet, context: Context, what: str, write: Callable[[str], None] = log.warn) -> None:
    """`what`: a sentence without its end."""
    who = client_of(context)
    host = context.connection.peer[0]
    if quiet.allows(log, f"refused: {what}", f"{shown_id(context)} at {host}"):
        write(f"{who}: {what}")


def client_of(context: Context) -> str:
    """Its id is not known where the API is not, since the header of the request was not read."""
    host, port = context.connection.peer
    state = getattr(context.connection, "state", None)
    software = getattr(state, "software", None)
    by = f" ({' '.join(software)})" if software else ""
    return f"{shown_id(context)}{by} at {host}:{port}"


def shown_id(context: Context) -> str:
    """The beginning of it: an id may be 32 KiB long."""
    return f"client {context.client_id[:ID_CHARACTERS]}" if context.client_id else "a client"


def say_api(quiet: Quiet, context: Context) -> None:
    """A request for an API or a version that this broker does not have."""
    route = context.route
    if route is None:
        known = context.api_key in _api_names()  # else it is noise
        what = f"{api_name(context.api_key)} is not served"
        say(quiet, context, what, log.warn if known else log.info)
    else:
        served = f"versions {route.min_version} to {route.max_version} are"
        say(quiet, context, f"version {context.version} of {route.name} is not served; {served}")


def api_name(key: int) -> str:
    name = _api_names().get(key)
    return f"{name} (API key {key})" if name else f"API key {key}"


@cache
def _api_names() -> dict[int, str]:
    """Of all APIs that Kafka has: looked up in the schemas' texts, since to make classes of all would hold the loop."""
    from pykafkad import messages

    names = {}
    for each in messages.names():
        if each.endswith("Request"):
            with open(f"{messages.SCHEMAS}/{each}.json", encoding="utf-8") as file:
                found = re.search(r'"key": *(\d+)', file.read())
            if found:
                names[int(found[1])] = each.removesuffix("Request")
    return names
