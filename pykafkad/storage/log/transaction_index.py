"""`<base offset>.txnindex`: the aborted transactions whose marker lies in that segment. No file: none.

34 bytes each: int16 version 0, int64 producer id, int64 first offset, int64 last offset (of the marker),
int64 last stable offset when it was written

In the order of the markers, so both kinds of last offsets ascend, and what is asked for is found by halving.
"""

from __future__ import annotations

import os
from struct import Struct

from pykafkad.pure.producer_state import CompletedTransaction
from pykafkad.storage import files
from pykafkad.storage.files import TRANSACTION_INDEX, offset_name, offset_of, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VERSION = 0
AT_ONCE = 64  # entries that are read together
_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size

# (producer id, first offset, last offset, last stable offset)
AbortedTransaction = tuple[int, int, int, int]


class TransactionIndexError(Exception):
    """Not a transaction index of that segment: it is made anew from the log."""


def path_of(directory: str, base_offset: int) -> str:
    return f"{directory}/{offset_name(base_offset, TRANSACTION_INDEX)}"


def bases_of(names: Iterable[str]) -> list[int]:
    """The segments that have one, among a directory's files."""
    return sorted(base for name in names if (base := offset_of(name, TRANSACTION_INDEX)) is not None)


def append(
    directory: str, base_offset: int, completed: CompletedTransaction, last_stable_offset: int
) -> None:
    entry = _ENTRY.pack(
        VERSION, completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )
    with open(path_of(directory, base_offset), "ab") as file:
        file.write(entry)


def remove(directory: str, base_offset: int) -> None:
    files.remove(path_of(directory, base_offset))


def read(directory: str, base_offset: int) -> Iterator[AbortedTransaction]:
    """The entries in order; TransactionIndexError when the file cannot be one of that segment."""
    try:
        data = read_file(path_of(directory, base_offset))
    except FileNotFoundError:
        return
    yield from parse(data, base_offset)


def parse(data: bytes, base_offset: int) -> Iterator[AbortedTransaction]:
    if len(data) % ENTRY_SIZE:
        raise TransactionIndexError(f"{len(data)} bytes are no whole entries")
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != VERSION or last < base_offset or first > last:
            raise TransactionIndexError(
                f"version {version}, offsets {first} to {last} in segment {base_offset}"
            )
        yield producer_id, first, last, stable


def collect_from(directory: str, bases: Iterable[int], start: int, end: int) -> list[AbortedTransaction]:
    """The whole entries of those that touch [start, end), out of the segments with these bases. For a thread: the
    last file may be appended to meanwhile, and half an entry is none of those that matter."""
    found: list[AbortedTransaction] = []
    for base in bases:
        try:
            data = read_file(path_of(directory, base))
        except FileNotFoundError:
            continue
        for entry in parse(data[: len(data) - len(data) % ENTRY_SIZE], base):
            if entry[2] >= start and entry[1] < end:
                found.append(entry)
            if entry[3] >= end:
                return found
    return found


def collect(
    directory: str, base_offset: int, fetch_offset: int, upper_bound: int
) -> tuple[list[tuple[int, int]], bool]:
    """(producer id, first offset) of those that touch [fetch_offset, upper_bound); whether that is all there
    is."""
    found: list[tuple[int, int]] = []
    try:
        fd = os.open(path_of(directory, base_offset), os.O_RDONLY)
    except FileNotFoundError:
        return found, False
    try:
        slot = first_since(fd, base_offset, fetch_offset)
        while data := os.pread(fd, AT_ONCE * ENTRY_SIZE, slot * ENTRY_SIZE):
            for producer_id, first, _, stable in parse(data, base_offset):
                if first < upper_bound:
                    found.append((producer_id, first))
                if stable >= upper_bound:
                    return found, True
            slot += AT_ONCE
    finally:
        os.close(fd)
    return found, False


def first_since(fd: int, base_offset: int, fetch_offset: int) -> int:
    """The place of the first entry whose marker is not below this offset."""
    low, high = 0, os.fstat(fd).st_size // ENTRY_SIZE
    while low < high:
        middle = (low + high) // 2
        ((_, _, last, _),) = parse(os.pread(fd, ENTRY_SIZE, middle * ENTRY_SIZE), base_offset)
        if last < fetch_offset:
            low = middle + 1
        else:
            high = middle
    return low
