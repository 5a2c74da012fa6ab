"""Topic names: Kafka's rules with Kafka's messages."""

from __future__ import annotations

import pytest

from pykafkad.cluster import topic_names


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names_are_taken(name: str) -> None:
    assert topic_names.why_invalid(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "a/b",
            "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "é",
            "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_illegal_names_are_refused_in_kafkas_words(name: str, why: str) -> None:
    assert topic_names.why_invalid(name) == f"Topic name is invalid: {why}"


def test_length_counts_utf16_units_as_java_does() -> None:
    assert "is longer than" in str(topic_names.why_invalid("\U0001f600" * 125))
    assert "contains one or more" in str(topic_names.why_invalid("\U0001f600" * 124))


def test_dots_and_underscores_collide() -> None:
    assert topic_names.collision_key("a.b_c") == topic_names.collision_key("a_b.c")
    assert topic_names.can_collide("a.b") and topic_names.can_collide("a_b")
    assert not topic_names.can_collide("a-b")


def test_what_others_say_of_partitions_becomes_a_path_if_it_can_be_one() -> None:
    may = topic_names.may_be_a_directory
    assert may("t", 0) and may("t", 999_999) and may("__consumer_offsets", 49)
    assert not may("t", -1) and not may("t", 1_000_000)
    assert not may("..", 0) and not may("a/b", 0) and not may("__cluster_metadata", 0)
    assert may("x" * 249, 99_999), "a file's name has 255 bytes"
    assert not may("x" * 249, 100_000) and may("x" * 248, 100_000)
