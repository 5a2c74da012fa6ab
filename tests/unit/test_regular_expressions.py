"""Regular expressions over topic names: what matches, what RE2 refuses and in which words, and what it costs.

Compared with re2j 1.8 (Kafka's) by 80,000 generated patterns when it was written; these are the kinds there are.
"""

from __future__ import annotations

import time

import pytest

from pykafkad.pure.groups.regular_expressions import STATES_MAX, InvalidPattern, RegularExpression

NAMES = [
    "a",
    "b",
    "ab",
    "aa",
    "abc",
    "A",
    "foo",
    "foo.bar",
    "foo-bar",
    "foo_bar",
    "0",
    "42",
    "a1",
    ".",
    "-",
    "_",
    "k",
    "K",
]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("a", ["a"]),
        ("a|b", ["a", "b"]),
        ("a*", ["a", "aa"]),
        ("a+b?c?", ["a", "ab", "aa", "abc"]),
        ("a{2}", ["aa"]),
        ("a{1,}", ["a", "aa"]),
        ("a{0,1}b", ["b", "ab"]),
        ("a{,3}", []),
        ("foo.bar", ["foo.bar", "foo-bar", "foo_bar"]),
        ("foo\\.bar", ["foo.bar"]),
        ("foo[.-]bar", ["foo.bar", "foo-bar"]),
        ("foo[^.-]bar", ["foo_bar"]),
        ("[a-b]+", ["a", "b", "ab", "aa"]),
        ("[]a]", ["a"]),
        ("[^]a]", ["b", "A", "0", ".", "-", "_", "k", "K"]),
        ("[-a]", ["a", "-"]),
        ("\\d+", ["0", "42"]),
        ("[[:upper:]]", ["A", "K"]),
        ("[[:^alnum:]]", [".", "-", "_"]),
        ("\\W", [".", "-"]),
        ("\\pN+", ["0", "42"]),
        ("\\p{^L}", ["0", ".", "-", "_"]),
        ("\\P{Lu}", ["a", "b", "0", ".", "-", "_", "k"]),
        ("\\p{Greek}", []),
        ("(?i)a", ["a", "A"]),
        ("(?i:A)b", ["ab"]),
        ("(?i)\\x{212a}", ["k", "K"]),
        ("(?i)[^a]", ["b", "0", ".", "-", "_", "k", "K"]),
        ("a(?i)", ["a"]),
        ("^a$", ["a"]),
        ("(?m)^a$", ["a"]),
        ("\\Aab\\z", ["ab"]),
        ("a^b", []),
        ("foo\\b.bar", ["foo.bar", "foo-bar"]),
        ("foo\\B.bar", ["foo_bar"]),
        ("\\Qfoo.bar\\E", ["foo.bar"]),
        ("\\x61\\142", ["ab"]),
        ("(?P<x>a)(?<y>b)", ["ab"]),
        ("(a|b|)*c?", ["a", "b", "ab", "aa", "abc"]),
        ("a*?b", ["b", "ab"]),
        ("(?U)a+", ["a", "aa"]),
        ("ü|a", ["a"]),
        (".*", NAMES),
        ("()", []),
        ("x{0}a", ["a"]),
    ],
)
def test_what_matches(pattern: str, matched: list[str]) -> None:
    expression = RegularExpression(pattern)
    assert [name for name in NAMES if expression.matches(name)] == matched


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("[[:no:]]", "invalid character class range"),
        ("\\p{Nope}", "invalid character class range"),
        ("\\p{", "invalid character class range"),
        ("*", "missing argument to repetition operator"),
        ("a|*", "missing argument to repetition operator"),
        ("(*)", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2}{3}", "invalid nested repetition operator"),
        ("{+", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("a{999999999}", "invalid repeat count"),
        ("\\", "trailing backslash at end of expression"),
        ("\\8", "invalid escape sequence"),
        ("\\y", "invalid escape sequence"),
        ("\\C", "invalid escape sequence"),
        ("\\x{110000}", "invalid escape sequence"),
        ("(?z)", "invalid or unsupported Perl syntax"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?i-", "invalid or unsupported Perl syntax"),
        ("(?<n", "invalid named capture"),
        ("(?P<a-b>x)", "invalid named capture"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)
def test_what_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(InvalidPattern, match=f"^{words.replace(')', chr(92) + ')')}$"):
        RegularExpression(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){20}", "((a?){30})a{30}", ".*.*.*.*.*=b"]
)
def test_nothing_goes_back(pattern: str) -> None:
    """Each of these takes for ever in engines that do."""
    expression = RegularExpression(pattern)
    started = time.monotonic()
    expression.matches("a" * 249)
    assert time.monotonic() - started < 5


def test_what_would_need_too_much_memory_is_refused() -> None:
    for pattern in ("((a{250}){250}){250}", "(" * 10_000, "(" * 300 + "a" + ")" * 300):
        with pytest.raises(InvalidPattern):
            RegularExpression(pattern)
    large = RegularExpression("|".join(f"topic-{number}" for number in range(STATES_MAX // 20)))
    assert large.matches("topic-7") and not large.matches("topic-x")


def test_repetitions_longer_than_a_name_match_as_if_they_were_as_long() -> None:
    assert RegularExpression("a{1,1000}").matches("a" * 249)
    assert not RegularExpression("a{250}").matches("a" * 249)
    assert RegularExpression("(a?){1000}").matches("a" * 249)
