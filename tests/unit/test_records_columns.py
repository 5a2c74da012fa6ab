"""Records in columns: the batches and partitions are those of the same records one by one."""

from __future__ import annotations

import random
from array import array

import pytest

from pykafkad.hot import records
from pykafkad.hot.records import Columns
from pykafkad.tools.batching import partition_of_key as by_key
from pykafkad.tools.batching import pieces, size_of
from tests.unit.columns_kit import Row, column, columns


def random_rows(seed: int, count: int) -> list[Row]:
    rng = random.Random(seed)

    def cell() -> bytes | None:
        return rng.choice((None, b"", rng.randbytes(rng.randrange(1, 300))))

    return [(cell(), cell(), rng.choice((0, 2**40, rng.randrange(10**13)))) for _ in range(count)]


@pytest.mark.parametrize("before", [0, 3, 9])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_is_that_of_its_rows(before: int, codec: str) -> None:
    rows = random_rows(before, 50)
    indexes = array("i", range(1, 50, 3))
    made = columns(rows, before).build(
        indexes, codec=codec, producer_id=7, producer_epoch=2, base_sequence=5, transactional=True
    )
    same = [(rows[index][0], rows[index][1], (), rows[index][2]) for index in indexes]
    assert made == records.build(
        same, codec=codec, producer_id=7, producer_epoch=2, base_sequence=5, transactional=True
    )


@pytest.mark.parametrize("partitions", [0, 1, 2, 7, 100])
def test_keys_choose_partitions_and_rows_keep_their_order(partitions: int) -> None:
    rows = random_rows(partitions, 200)
    found = {number: list(indexes) for number, indexes in columns(rows, 5).spread(partitions)}
    expected: dict[int, list[int]] = {}
    for place, (key, _, _) in enumerate(rows):
        at = -1 if key is None or not partitions else by_key(key, partitions)
        expected.setdefault(at, []).append(place)
    assert found == expected


def test_pieces_are_all_rows_in_their_order_and_no_larger_than_said() -> None:
    rows = random_rows(1, 300)
    made = columns(rows)
    whole = memoryview(array("i", range(300)))
    found = [list(piece) for piece in pieces(made, whole, 1000)]
    assert [index for piece in found for index in piece] == list(range(300))
    sizes = [sum(size_of(rows[index][0], rows[index][1], ()) for index in piece) for piece in found]
    assert all(size + 61 <= 1000 or len(piece) == 1 for size, piece in zip(sizes, found, strict=True))
    assert made.largest == max(len(key or b"") + len(value or b"") for key, value, _ in rows)


def test_a_row_is_what_it_was() -> None:
    made = columns([(b"k", None, 5), (None, b"", 6)], before=2)
    assert [made.row(index) for index in range(made.count)] == [
        (b"k", None, (), 5),
        (None, b"", (), 6),
    ]


def test_nothing_is_read_beyond_the_buffers() -> None:
    times = (0, array("q", [1, 2]))
    good = column([b"a", b"b"])
    short = (0, None, array("i", [0, 1]), b"ab")
    beyond = (0, None, array("i", [0, 1, 3]), b"ab")
    backwards = (0, None, array("i", [0, 2, 1]), b"ab")
    negative = (0, None, array("i", [-1, 0, 1]), b"ab")
    no_bits = (0, b"", array("i", [0, 1, 2]), b"ab")
    for bad in (short, beyond, backwards, negative, no_bits, (1, *good[1:]), (-1, *good[1:])):
        with pytest.raises(ValueError, match="a column"):
            Columns(2, bad, good, times)
        with pytest.raises(ValueError, match="a column"):
            Columns(2, good, bad, times)
    for late in ((0, array("q", [1])), (1, array("q", [1, 2])), (-1, array("q", [1, 2]))):
        with pytest.raises(ValueError, match="fewer times"):
            Columns(2, good, good, late)
    with pytest.raises(ValueError, match="rows"):
        Columns(-1, good, good, times)
    made = Columns(2, good, good, times)
    for index in (-1, 2):
        with pytest.raises(IndexError):
            made.row(index)
        with pytest.raises(IndexError):
            made.build(array("i", [index]))
    with pytest.raises(ValueError, match="needs a record"):
        made.build(array("i"))


def test_no_rows_are_columns_too() -> None:
    none = (0, None, array("i", [0]), None)
    made = Columns(0, none, none, (0, b""))
    assert (made.count, made.largest, made.spread(3)) == (0, 0, [])
