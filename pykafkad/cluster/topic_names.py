"""What a topic may be called, and which names are Kafka's own. The texts are Kafka's, word for word.

Metrics have '.' and '_' in one namespace, so two topics whose names differ only there collide.
"""

from __future__ import annotations

from pykafkad.storage.files import METADATA_TOPIC

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = METADATA_TOPIC

INTERNAL = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE))
MAX_LENGTH = 249
MOST_PARTITIONS = 1_000_000  # of a topic: an index beyond is nobody's
MOST_OF_A_FILE_NAME = 255
LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def why_invalid(name: str) -> str | None:
    """Kafka's text on what is wrong with this name, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if utf16_length(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than "
            f"the max allowed length {MAX_LENGTH}"
        )
    if not LEGAL.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def may_be_a_directory(name: str, index: int) -> bool:
    """Whether a partition of this name and number can be one: what others say of it goes into a path."""
    is_named = why_invalid(name) is None and name != CLUSTER_METADATA
    return is_named and 0 <= index < MOST_PARTITIONS and len(f"{name}-{index}") <= MOST_OF_A_FILE_NAME


def utf16_length(name: str) -> int:
    return len(name) if name.isascii() else len(name.encode("utf-16-le", "surrogatepass")) // 2


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    return name.replace(".", "_")
