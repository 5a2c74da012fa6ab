"""`<base offset>.txnindex`: the aborted transactions whose marker lies in that segment. No file: none.

34 bytes each: int16 version 0, int64 producer id, int64 first offset, int64 last offset (of the marker),
int64 last stable offset when it was written
"""

from __future__ import annotations

from struct import Struct

from pykafkad.pure.producer_state import CompletedTransaction
from pykafkad.storage.files import TRANSACTION_INDEX, offset_name, read_file, remove_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 0
_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size

# (producer id, first offset, last offset, last stable offset)
AbortedTransaction = tuple[int, int, int, int]


class TransactionIndexError(Exception):
    """Not a transaction index of that segment: it is made anew from the log."""


def path_of(directory: str, base_offset: int) -> str:
    return f"{directory}/{offset_name(base_offset, TRANSACTION_INDEX)}"


def append(
    directory: str, base_offset: int, completed: CompletedTransaction, last_stable_offset: int
) -> None:
    entry = _ENTRY.pack(
        VERSION, completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )
    with open(path_of(directory, base_offset), "ab", buffering=0) as file:
        file.write(entry)


def remove(directory: str, base_offset: int) -> None:
    remove_if_there(path_of(directory, base_offset))


def read(directory: str, base_offset: int) -> Iterator[AbortedTransaction]:
    """The entries in order; TransactionIndexError when the file cannot be one of that segment."""
    try:
        data = read_file(path_of(directory, base_offset))
    except FileNotFoundError:
        return
    if len(data) % ENTRY_SIZE:
        raise TransactionIndexError(f"{len(data)} bytes are no whole entries")
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != VERSION or last < base_offset or first > last:
            raise TransactionIndexError(
                f"version {version}, offsets {first} to {last} in segment {base_offset}"
            )
        yield producer_id, first, last, stable


def collect(
    directory: str, base_offset: int, fetch_offset: int, upper_bound: int
) -> tuple[list[tuple[int, int]], bool]:
    """(producer id, first offset) of those that touch [fetch_offset, upper_bound); whether that is all there
    is."""
    found = []
    for producer_id, first, last, stable in read(directory, base_offset):
        if last >= fetch_offset and first < upper_bound:
            found.append((producer_id, first))
        if stable >= upper_bound:
            return found, True
    return found, False
