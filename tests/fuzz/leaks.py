"""The compiled modules free what they allocate: `python tests/fuzz/leaks.py [DOOR...]`.

Each does the same cases of its fuzzer, good and bad, in several rounds; afterwards as many bytes are in use as before.
With malloc behind Python's objects too, a reference that is not released shows just like memory that is not freed. The
address sanitizer's own search for leaks is of no use: Python frees little at its end. The first rounds are not counted,
since classes, codecs and caches are made in them.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import random
import sys
import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from pykafkad import messages  # noqa: E402
from pykafkad.hot import index, reactor, records, segment, wire  # noqa: E402
from tests.fuzz import fuzz_cleaner, fuzz_frames, fuzz_records, fuzz_segments, fuzz_wire  # noqa: E402

WARM_UP, ROUNDS = 3, 6
NEEDED = {
    "PYTHONMALLOC": "malloc",
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "1",  # others are not in the statistics
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",  # what is kept there counts as in use
}


class MallInfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = MallInfo2


def bytes_in_use() -> int:
    gc.collect()
    info = mallinfo2()
    return info.uordblks + info.hblkhd


class Doors:
    """A round of each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.vectors = fuzz_wire.golden()
        names = {name for name, _, _ in self.vectors if name.endswith("Request")}
        routes = {
            kind.api_key: wire.Route(kind, (0, 99), None)
            for kind in (getattr(messages, name) for name in names)
        }
        self.reader = wire.RequestReader(routes.get)
        self.batches = fuzz_records.golden()
        self.content = random.Random(0).randbytes(fuzz_frames.CONTENT_BYTES)
        self.file = directory / "content"
        self.file.write_bytes(self.content)

    def wire(self) -> None:
        for seed in range(1500):
            chance = random.Random(seed)
            name, version, data = fuzz_wire.mutant(chance, self.vectors)
            noise = chance.randbytes(chance.randrange(32))
            fuzz_wire.try_message(name, version, data, noise)
            fuzz_wire.try_header(self.reader, chance, noise)

    def records(self) -> None:
        for seed in range(1500):
            chance = random.Random(seed)
            data = fuzz_records.mutation(chance, self.batches)
            fuzz_records.attempt(data, fuzz_records.some_rules(chance))

    def segment(self) -> None:
        """Segments that others damaged are inspected, and one of our own is written, read, truncated and checked."""
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            for seed in range(150):
                fuzz_segments.run_one(seed, Path(directory))
            for _ in range(100):
                self.write_segment(directory)

    def write_segment(self, directory: str) -> None:
        indexes = (
            index.OffsetIndex(directory, 1, 800, fresh=True),
            index.TimeIndex(directory, 1, 800, fresh=True),
        )
        made = segment.Segment(directory, 1, *indexes, fresh=True)
        made.index_interval_bytes = 100
        for offset in range(1, 20):
            data = records.build([(b"key", b"value" * 9, [("name", None)], offset)], base_offset=offset)
            made.queue(data, offset, offset, offset)
        made.discard()
        for offset in range(1, 20):
            made.queue(data, offset, offset, offset)
            if offset % 5 == 0:
                made.write()
        found = made.read(4, 1000, 15, True)
        assert found is not None and found.read()
        made.batch_since(7, 1)
        self.refused(lambda: segment.SegmentFile(f"{directory}/none"))
        made.truncate(made.size // 2 // len(data) * len(data))
        list(made.headers())
        made.check(lambda header: None)
        made.queue(data, 99, 99, 99)  # and is not written
        made.seal()
        made.release()

    def index(self) -> None:
        """An index is appended to, searched, truncated; and a missing one is opened."""
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            for number in range(300):
                for kind in (index.OffsetIndex, index.TimeIndex):
                    made = kind(directory, number, 240, fresh=True)
                    for entry in range(12):
                        if isinstance(made, index.OffsetIndex):
                            made.append(number + entry + 1, entry * 100)
                        else:
                            made.maybe_append(entry, number + entry)
                    made.lookup(number + 5)
                    made.entry(3)
                    self.refused(lambda made=made: made.entry(99))  # type: ignore[misc]
                    made.trim()
                    made.close()
                    self.refused(lambda kind=kind: kind(f"{directory}/none", 0, 240).lookup(1))  # type: ignore[misc]

    @staticmethod
    def refused(call: Callable[[], object]) -> None:
        try:
            call()
        except (OSError, IndexError, ValueError):
            return
        raise AssertionError("this is to be refused")

    def cleaner(self) -> None:
        for seed in range(60):
            with tempfile.TemporaryDirectory(dir=self.directory) as directory:
                fuzz_cleaner.run_one(seed, Path(directory))

    def reactor(self) -> None:
        for seed in range(12):
            fuzz_frames.Case(reactor, seed, self.file, self.content).run()


DOORS = ("wire", "records", "segment", "index", "cleaner", "reactor")


def growth(door: Callable[[], None]) -> list[int]:
    """By how many bytes each round after the first ones grows the memory in use. The results are stored in place, so
    that measuring allocates nothing."""
    marks = array("q", bytes(8 * (WARM_UP + ROUNDS + 1)))
    for number in range(len(marks)):
        marks[number] = bytes_in_use()
        door()
    return [after - before for before, after in itertools.pairwise(marks[WARM_UP:])]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=", ".join(DOORS))
    chosen = parser.parse_args().doors or DOORS
    if any(os.environ.get(name) != value for name, value in NEEDED.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | NEEDED)
    leaking = []
    with tempfile.TemporaryDirectory() as directory:
        doors = Doors(Path(directory))
        for name in chosen:
            grown = growth(getattr(doors, name))
            print(f"{name}: {', '.join(f'{size:+}' for size in grown)} bytes a round", flush=True)
            if min(grown) > 0:
                leaking.append(name)
    for name in leaking:
        print(f"{name} LEAKS: every round leaves more in use")
    return 1 if leaking else 0


if __name__ == "__main__":
    sys.exit(main())
