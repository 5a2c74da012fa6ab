"""The words of `pykafkad explain`: names and members in a sentence, and names that may have been meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Row = dict[str, Any]

SHOWN = 5  # members, partitions and names in a sentence
NEAR = 2  # letters in which a name may differ from another


def name_of(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"


def who(member: Row) -> str:
    instance = f", group.instance.id {member['instance_id']}" if member["instance_id"] else ""
    return f'member {member["id"]} (client id "{member["client_id"]}", {member["host"]}{instance})'


def listed(names: Iterable[object]) -> str:
    texts = [str(name) for name in names]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    return "is" if count == 1 else "are"


def are_near(one: str, other: str) -> bool:
    """Whether it may have been meant: the same but for case and separators, or for a few letters."""
    one, other = plain(one), plain(other)
    if one == other or (len(one) > NEAR and (one.startswith(other) or other.startswith(one))):
        return True
    return abs(len(one) - len(other)) <= NEAR and distance(one, other) <= min(NEAR, len(one) // 3)


def plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(".", "")


def distance(one: str, other: str) -> int:
    """How many letters have to be put in, left out or changed."""
    row = list(range(len(other) + 1))
    for letter in one:
        before, row[0] = row[0], row[0] + 1
        for place, there in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(before + (letter != there), row[place] + 1, row[place - 1] + 1),
            )
    return row[-1]
