"""Small values that thousands have alike are one object each, and large ones are not kept."""

from __future__ import annotations

import pytest

from pykafkad.pure import sharing


def test_small_values_that_are_equal_are_the_same() -> None:
    assert sharing.set_of_numbers([1, 2]) is sharing.set_of_numbers([1, 2]) == {1, 2}
    assert sharing.set_of_texts(["a", "b"]) is sharing.set_of_texts(["a", "b"]) == {"a", "b"}
    assert sharing.tuple_of_texts(["a", "b"]) is sharing.tuple_of_texts(["a", "b"]) == ("a", "b")
    pairs = [("range", b"x")]
    assert sharing.pairs_of(pairs) is sharing.pairs_of(dict(pairs).items()) == (("range", b"x"),)


@pytest.mark.parametrize("items", [[str(number) for number in range(9)], ["x" * 200, "y" * 57]])
def test_large_ones_are_as_they_came(items: list[str]) -> None:
    assert sharing.set_of_texts(items) == set(items) and sharing.tuple_of_texts(items) == tuple(items)
    pairs = [(text, text.encode()) for text in items]
    assert sharing.pairs_of(pairs) == tuple(pairs)
    assert sharing.set_of_texts(items) is not sharing.set_of_texts(items)
    assert sharing.tuple_of_texts(items) is not sharing.tuple_of_texts(items)
    assert sharing.pairs_of(pairs) is not sharing.pairs_of(pairs)
    assert sharing.set_of_numbers(range(9)) == set(range(9))


def test_who_puts_something_into_a_table_has_one_of_its_own() -> None:
    table: dict[str, int] = sharing.NONE
    table = sharing.own(table)
    table["a"] = table["b"] = 1
    assert sharing.own(table) is table and not sharing.NONE
    assert sharing.without(table, "a") == {"b": 1}
    assert sharing.without(table, "b") is sharing.without(table, "b") is sharing.NONE
    assert sharing.without(sharing.NONE, "a") is sharing.NONE == {}
