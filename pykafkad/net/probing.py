"""Whether a client on this machine can connect somewhere, and why not."""

from __future__ import annotations

import socket


def why_unreachable(host: str, port: int, timeout_s: float) -> str | None:
    """None: a connection was made, and closed."""
    try:
        socket.create_connection((host, port), timeout_s).close()
    except socket.gaierror as error:
        return f"{host} does not resolve ({error.strerror})"
    except UnicodeError as error:
        return f"{host} is no host name ({error})"
    except TimeoutError:
        return f"no answer within {timeout_s:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return None
