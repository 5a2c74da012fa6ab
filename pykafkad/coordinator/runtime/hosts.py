"""Addresses of clients as Java's InetAddress writes them, which is how groups show and store them."""

from __future__ import annotations

MAPPED = "::ffff:"


def java_text(address: str) -> str:
    """ "/127.0.0.1"; IPv6 without the short form of its zeros, "/0:0:0:0:0:0:0:1"."""
    if ":" not in address:
        return f"/{address}"
    if address.lower().startswith(MAPPED) and "." in address:
        return f"/{address[len(MAPPED) :]}"
    address, percent, scope = address.partition("%")
    head, _, tail = address.partition("::")
    left = head.split(":") if head else []
    right = tail.split(":") if tail else []
    missing = 8 - len(left) - len(right) if "::" in address else 0
    groups = [*left, *["0"] * missing, *right]
    return "/" + ":".join(f"{int(group, 16):x}" for group in groups) + percent + scope
