"""Findings of the storm that are intended, or known: a short list, each with its reason."""

from __future__ import annotations

import re

# kind of fault, what it is about, its text (regular expressions, from the beginning), the reason
KNOWN: tuple[tuple[str, str, str, str], ...] = (
    (
        "closed",
        "DescribeProducers",
        "no reason is logged|described again and again",
        "refused beyond 16 MiB, which is said once a minute",
    ),
    (
        "closed",
        "",
        r"\([0-9]{9,} bytes\): Invalid receive",
        "larger than socket.request.max.bytes: Kafka closes, too",
    ),
    (
        "closed",
        "(Create|Describe|Delete)Acls",
        "no reason is logged|(unknown|UNKNOWN) elements",
        "a code is 0, which nothing has: Kafka closes, too",
    ),
    ("unserved", "socket.request.max.bytes", "", "no request is as small as that"),
    ("unserved", "max.connections", "", "none, or none of an address, are let in"),
    (
        "logged",
        "",
        "does not take records of groups: One or more records",
        "the storm has set the topic's configs so",
    ),
)


def is_known(kind: str, about: str, text: str) -> bool:
    return any(kind == row[0] and re.match(row[1], about) and re.search(row[2], text) for row in KNOWN)
