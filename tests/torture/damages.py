"""How the files of one partition are damaged, and how many records must be left.

`kept` is what Apache Kafka 4.3.1 was measured to keep of such a log, or what we promise where Kafka throws away more
than it has to.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FAR = 1 << 31  # the largest distance of an offset from the segment's base offset


@dataclass(frozen=True)
class Batch:
    position: int
    size: int
    count: int


@dataclass(frozen=True)
class Layout:
    """The segments of the log to be damaged: their names and batches, and the number of records before each batch."""

    segments: tuple[tuple[str, tuple[Batch, ...]], ...]

    def records_before(self, segment: int, batch: int) -> int:
        whole = sum(each.count for _, batches in self.segments[:segment] for each in batches)
        return whole + sum(each.count for each in self.segments[segment][1][:batch])

    @property
    def all(self) -> int:
        return sum(each.count for _, batches in self.segments for each in batches)


@dataclass(frozen=True)
class Damage:
    """`kept` is how many of the records must be there afterwards."""

    name: str
    apply: Callable[[Path], None]
    kept: int
    gap: bool = False  # later records may be there as well
    served_damaged: bool = False  # as in Kafka: after a clean stop a start does not check it


def patch(path: Path, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


def flip(path: Path, position: int, mask: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ mask]))


# -- one batch


def kept_with_flip(layout: Layout, segment: int, index: int, byte: int, mask: int, offset: int) -> int:
    """Fields before the attributes are not under the checksum; `offset` is the batch's first."""
    before = layout.records_before(segment, index)
    name, batches = layout.segments[segment]
    is_last = segment == len(layout.segments) - 1 and index == len(batches) - 1
    if byte < 8 and is_last:
        changed = offset ^ mask << 8 * (7 - byte)
        if offset < changed < int(name[:20]) + FAR:
            return layout.all  # a higher offset is as good as any other
    return before


def flips(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Every byte of the last batch, and as many bytes of other ones."""
    segment = len(layout.segments) - 1
    last = len(layout.segments[segment][1]) - 1
    for byte in range(layout.segments[segment][1][last].size):
        yield flip_of(layout, segment, last, byte, chance)
    for _ in range(layout.segments[segment][1][last].size):
        segment = chance.randrange(len(layout.segments))
        index = chance.randrange(len(layout.segments[segment][1]))
        byte = chance.randrange(layout.segments[segment][1][index].size)
        yield flip_of(layout, segment, index, byte, chance)


def flip_of(layout: Layout, segment: int, index: int, byte: int, chance: random.Random) -> Damage:
    name, batches = layout.segments[segment]
    batch = batches[index]
    mask = 1 << chance.randrange(8)
    kept = kept_with_flip(layout, segment, index, byte, mask, layout.records_before(segment, index))
    return Damage(
        f"byte {byte} of batch {index} of {name} xor {mask:#x}",
        lambda home: flip(home / name, batch.position + byte, mask),
        kept,
    )


def cuts(layout: Layout) -> Iterator[Damage]:
    name, batches = layout.segments[-1]
    last = batches[-1]
    for size in range(last.size):
        yield Damage(
            f"{name} cut at byte {size} of its last batch",
            lambda home, size=size: os.truncate(home / name, last.position + size),  # type: ignore[misc]
            layout.all - last.count,
        )


def tails(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Bytes behind the end: zeros, noise, older batches again."""
    name, batches = layout.segments[-1]

    def append(data: bytes) -> Callable[[Path], None]:
        def apply(home: Path) -> None:
            with open(home / name, "ab") as file:
                file.write(data)

        return apply

    for size in (1, 11, 12, 17, 60, 61, 4096):
        yield Damage(f"{size} zeroes behind the end", append(bytes(size)), layout.all)
        yield Damage(f"{size} random bytes behind the end", append(chance.randbytes(size)), layout.all)
    for index, batch in enumerate(batches):

        def again(home: Path, batch: Batch = batch) -> None:
            data = (home / name).read_bytes()
            append(data[batch.position : batch.position + batch.size])(home)

        yield Damage(f"batch {index} once more behind the end", again, layout.all)


def fields(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Rows that overwrite a whole field of a batch in the middle, and stretches of zeros."""
    segment = len(layout.segments) // 2
    name, batches = layout.segments[segment]
    for index in {len(batches) // 2, chance.randrange(1, len(batches))}:
        at, before = batches[index].position, layout.records_before(segment, index)
        offset = before
        rows = {
            "lower base offset": (0, max(0, offset - 2).to_bytes(8, "big")),
            "far base offset": (0, (offset + (1 << 40)).to_bytes(8, "big")),
            "negative base offset": (0, (-5).to_bytes(8, "big", signed=True)),
            "giant length": (8, b"\x7f\xff\xff\xff"),
            "negative length": (8, b"\xff\xff\xff\xff"),
            "no length": (8, bytes(4)),
            "leader epoch 99": (12, (99).to_bytes(4, "big")),
            "magic 9": (16, b"\x09"),
            "magic 1": (16, b"\x01"),
            "zeroes": (0, bytes(batches[index].size)),
        }
        for what, (byte, data) in rows.items():
            yield Damage(
                f"{what} in batch {index} of {name}",
                lambda home, at=at + byte, data=data: patch(home / name, at, data),  # type: ignore[misc]
                before,
            )
    first, last = sorted(chance.sample(range(len(batches)), 2))
    start, end = batches[first].position, batches[last].position
    yield Damage(
        f"batches {first}..{last} of {name} zeroed",
        lambda home: patch(home / name, start, bytes(end - start)),
        layout.records_before(segment, first),
    )
    before = layout.records_before(segment, 0)
    yield Damage(f"{name} emptied", lambda home: os.truncate(home / name, 0), before, gap=True)


# -- the files beside the log


def other_files(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Files that can be created anew are: nothing is lost by it."""
    stems = [name.removesuffix(".log") for name, _ in layout.segments]
    files = [f"{stem}.{kind}" for stem in stems for kind in ("index", "timeindex", "txnindex", "snapshot")]
    for name in (*files, "leader-epoch-checkpoint", "partition.metadata"):
        for what, data in (
            ("gone", None),
            ("empty", b""),
            ("noise", chance.randbytes(chance.randint(1, 200))),
            ("zeroes", bytes(96)),
        ):
            if name == "partition.metadata" and what in ("noise", "zeroes"):
                continue  # the id of another topic cannot be told from a damaged one

            def apply(home: Path, name: str = name, data: bytes | None = data) -> None:
                if data is None:
                    (home / name).unlink(missing_ok=True)
                else:
                    (home / name).write_bytes(data)

            yield Damage(f"{name} {what}", apply, layout.all)
    yield from leftovers(stems[-1], layout)


def leftovers(stem: str, layout: Layout) -> Iterator[Damage]:
    """Files that a crash leaves beside them."""
    for name in (
        f"{stem}.log.cleaned",
        f"{stem}.index.cleaned",
        f"{stem}.log.deleted",
        "leader-epoch-checkpoint.tmp",
        f"{777:020d}.index",
        f"{777:020d}.timeindex",
        f"{777:020d}.snapshot",
        f"{3:020d}.snapshot",
    ):
        yield Damage(
            f"a left over {name}",
            lambda home, name=name: (home / name).write_bytes(b"left over") and None,  # type: ignore[misc]
            layout.all,
        )

    def swapped(home: Path) -> None:
        shutil.copy(home / f"{stem}.log", home / f"{stem}.log.swap")

    yield Damage("a finished swap that was not renamed", swapped, layout.all)
