"""The control socket of a running broker, over which its owner sees what happens in it.

A Unix socket in the first data directory, `SOCKET`, for its owner alone. What is said are lines of JSON:

    -> {"version": 1, "command": "status"}                    a request, with the command's arguments beside
    <- {"topic": {"name": "orders", ...}}                      a row of the answer; there may be many
    <- {"end": true}                                           the end of the answer, with "error" where there is one,
                                                               and "left_out" where not all rows could be given
    <- {"request": {...}}                                      after `trace`: a request of some client, as it comes

One request of a connection is answered after the other. server.py listens, and is all that a start imports; commands.py
is the table of the commands; client.py is the other side.
"""

from __future__ import annotations

SOCKET = ".pykafkad.sock"
VERSION = 1
LINE_BYTES = 16 * 1024  # of a request
