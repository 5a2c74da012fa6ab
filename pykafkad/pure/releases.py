"""The versions of Apache Kafka 3.9 and before it, as log.message.format.version and its like name them.

A release has levels, 2.8-IV0 and 2.8-IV1; its number alone means the last of them, and so does one with a patch's number
behind it (2.8.1). Before 1.0 a release has three numbers.
"""

from __future__ import annotations

# Each with its last level; -1: it has none.
LAST_LEVELS = {
    "0.8.0": -1, "0.8.1": -1, "0.8.2": -1, "0.9.0": -1, "0.10.0": 1, "0.10.1": 2, "0.10.2": 0, "0.11.0": 2,
    "1.0": 0, "1.1": 0,
    "2.0": 1, "2.1": 2, "2.2": 1, "2.3": 1, "2.4": 1, "2.5": 0, "2.6": 0, "2.7": 2, "2.8": 1,
    "3.0": 1, "3.1": 0, "3.2": 0, "3.3": 3, "3.4": 0, "3.5": 2, "3.6": 2, "3.7": 4, "3.8": 0, "3.9": 0,
}  # fmt: skip
NAMES = {
    **{f"{release}-IV{each}": each for release, last in LAST_LEVELS.items() for each in range(last + 1)},
    **LAST_LEVELS,
    "4.0-IV0": 0, "4.0-IV1": 1,  # 3.9 knew them, and no release 4.0
}  # fmt: skip


def full_name(text: str) -> str | None:
    """With its level; None: there is no such version."""
    numbers = text.split(".")
    count = 3 if text.startswith("0.") else 2
    release = ".".join(numbers[:count]) if len(text.rstrip(".").split(".")) > count else text
    if release not in NAMES:
        return None
    level = NAMES[release]
    return release if level < 0 or "-IV" in release else f"{release}-IV{level}"
