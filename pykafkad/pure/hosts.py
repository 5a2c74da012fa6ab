"""Addresses of clients as Java's InetAddress writes them: groups show and store them so, and ACLs name them so."""

from __future__ import annotations

MAPPED = "::ffff:"


def java_text(address: str) -> str:
    """ "127.0.0.1"; IPv6 without the short form of its zeros, "0:0:0:0:0:0:0:1"."""
    if ":" not in address:
        return address
    if address.lower().startswith(MAPPED) and "." in address:
        return address[len(MAPPED) :]
    address, percent, scope = address.partition("%")
    head, _, tail = address.partition("::")
    left = head.split(":") if head else []
    right = tail.split(":") if tail else []
    missing = 8 - len(left) - len(right) if "::" in address else 0
    groups = [*left, *["0"] * missing, *right]
    return ":".join(f"{int(group, 16):x}" for group in groups) + percent + scope
