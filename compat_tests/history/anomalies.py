"""The kinds of anomalies, and what a rule says of one that it found."""

from __future__ import annotations

from typing import NamedTuple

LOST_WRITE = "lost write"
UNSEEN = "unseen"
DUPLICATE = "duplicate"
INCONSISTENT_OFFSETS = "inconsistent offsets"
UNEXPECTED_READ = "unexpected read"
G1A = "G1a"
PRECOMMITTED_READ = "precommitted read"
INTERNAL_POLL_SKIP = "internal poll skip"
POLL_SKIP = "poll skip"
INTERNAL_NONMONOTONIC_POLL = "internal non-monotonic poll"
NONMONOTONIC_POLL = "non-monotonic poll"
NONMONOTONIC_SEND = "non-monotonic send"
G0 = "G0"
G1C = "G1c"
G1C_WRITES = "G1c with writes"
# Kafka does not isolate writes: transactions that are open at the same time take turns in the logs, which closes cycles
# of what was written before what. Cycles of reads alone are never right.
ALLOWED = frozenset({G0, G1C_WRITES})


class Anomaly(NamedTuple):
    kind: str
    what: str  # a sentence
    values: tuple[str, ...] = ()  # those that show it
    transactions: tuple[str, ...] = ()
