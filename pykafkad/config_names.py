"""Names of configs that nobody knows: which ones were meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NEAREST = 3
ALIKE = 0.8  # of 1, for difflib


def nearest(name: str) -> list[str]:
    """The names that are most like one that is unknown, the likeliest first."""
    from difflib import get_close_matches

    from pykafkad.config import BROKER_KEYS, OWN_KEYS
    from pykafkad.config_entities import TOPIC_SYNONYMS

    lowered = name.lower().replace("_", ".")
    if lowered in TOPIC_SYNONYMS:  # a topic's key, where a broker's is wanted
        return [key for key, _ in TOPIC_SYNONYMS[lowered]]
    shown = [key for key, row in BROKER_KEYS.items() if not row.internal] + list(OWN_KEYS)
    return get_close_matches(lowered, shown, NEAREST, ALIKE)


def hint(name: str) -> str:
    """`, did you mean a or b?`; nothing if there is nothing like it."""
    names = nearest(name)
    return f", did you mean {' or '.join(names)}?" if names else ""


def check(names: Iterable[str]) -> None:
    """ValueError for the first one that is unknown: whoever writes a test wants to know of a slip at once."""
    from pykafkad.config_keys import OF_3_9  # a broker on ZooKeeper may be meant

    for name in names:
        if OF_3_9.known(name) is None:
            raise ValueError(f"{name} is no broker config{hint(name)}")
