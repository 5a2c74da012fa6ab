"""Regular expressions over topic names: what matches, what RE2 refuses with which message, and the costs.

Compared with re2j 1.8 (Kafka's) by 80,000 generated patterns when it was written; here is one of each kind.
"""

from __future__ import annotations

import random
import string
from typing import Any

import pytest

from pykafkad.pure.regex import automaton
from pykafkad.pure.regex.automaton import TooMuchWork, finish, for_text, for_topics
from pykafkad.pure.regex.java_syntax import UNSUPPORTED_ESCAPES, Unsupported
from pykafkad.pure.regex.parsing import SIZE_MAX, InvalidPattern, parse, parser
from pykafkad.pure.regex.states import States

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


class Expression:
    """Match an expression once, and count its steps."""

    def __init__(self, pattern: str) -> None:
        self.pieces = 0
        self.made = self._counted(for_topics(pattern))

    def matches(self, name: str) -> Any:
        return self._counted(self.made.matches(name))

    def _counted(self, steps: Any) -> Any:
        try:
            while True:
                next(steps)
                self.pieces += 1
        except StopIteration as end:
            return end.value

    @property
    def steps(self) -> int:
        return self.made.steps


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
        ("a{01}|a{1,01}|a{1|a{1,|a{|{", []),
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
        ("[[:lower:]]", ["a", "b", "k"]),
        ("(?i)[[:lower:]]", ["a", "b", "A", "k", "K"]),
        ("(?i)\\p{Lu}", ["a", "b", "A", "k", "K"]),
        ("(?i)[[:^lower:]]", ["0", ".", "-", "_"]),
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
        ("\\bfoo\\b", ["foo"]),
        ("\\Bfoo|foo\\B", []),
        ("-\\b|\\b-", []),
        ("\\B-\\B", ["-"]),
        ("[\\a\\f\\n\\r\\t\\v]|\\n", []),
        ("[\\x{10ffff}a]", ["a"]),
        ("foo\\B.bar", ["foo_bar"]),
        ("\\Qfoo.bar\\E", ["foo.bar"]),
        ("\\x61\\142", ["ab"]),
        ("(?P<x>a)(?<y>b)", ["ab"]),
        ("[\\d.]+k", []),
        ("[k\\D]", [name for name in NAMES if len(name) == 1 and not name.isdigit()]),
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
    expression = Expression(pattern)
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
        ("\\1", "invalid escape sequence"),
        ("\\18", "invalid escape sequence"),
        ("\\y", "invalid escape sequence"),
        ("\\C", "invalid escape sequence"),
        ("\\x{110000}", "invalid escape sequence"),
        ("\\x{}", "invalid escape sequence"),
        ("\\x{61", "invalid escape sequence"),
        ("\\x{6g}", "invalid escape sequence"),
        ("\\x6", "invalid escape sequence"),
        ("\\x6g", "invalid escape sequence"),
        ("(?z)", "invalid or unsupported Perl syntax"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?i-", "invalid or unsupported Perl syntax"),
        ("(?i-:a)", "invalid or unsupported Perl syntax"),
        ("(?i-)a", "invalid or unsupported Perl syntax"),
        ("(?<n", "invalid named capture"),
        ("(?P<a-b>x)", "invalid named capture"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)
def test_what_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(InvalidPattern, match=f"^{words.replace(')', chr(92) + ')')}$"):
        parse(pattern)


@pytest.mark.parametrize(
    ("pattern", "matching", "not_matching"),
    [
        ("(?i)k(?-i:k)", ["Kk", "kk"], ["KK", "kK"]),
        ("(?i-i:k)", ["k"], ["K"]),
        ("(?U-i)a+?b", ["aab"], ["AB"]),
        ("(?m)^a$", ["a"], ["ab"]),
    ],
)
def test_flags_are_turned_off_one_by_one(pattern: str, matching: list[str], not_matching: list[str]) -> None:
    expression = Expression(pattern)
    assert [name for name in matching + not_matching if expression.matches(name)] == matching


def test_octal_numbers_have_up_to_three_digits_and_only_a_zero_may_stand_alone() -> None:
    for pattern, name in (("\\60", "0"), ("\\608", "08"), ("\\1014", "A4"), ("(\\0|a)8", "a8")):
        assert Expression(pattern).matches(name), pattern


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){20}", "((a?){30})a{30}", ".*.*.*.*.*=b"]
)
def test_nothing_goes_back(pattern: str) -> None:
    """Each of these takes practically for ever with backtracking."""
    expression = Expression(pattern)
    expression.matches("a" * 62)
    few = expression.steps
    expression = Expression(pattern)
    expression.matches("a" * 248)
    assert few < 62 * parse(pattern)[1] and expression.steps < 5 * few


@pytest.mark.parametrize(
    "pattern",
    [
        "((((){1000}){1000}){1000}){1000}",
        "((((a{0}){1000}){1000}){1000}){1000}",
        "(((^{1000}){1000}){1000}){1000}",
        "((a{250}){250}){250}",
        "((a+){1000}){1000}",
        "((|){1000}){1000}",
        "x{1000}" * 1_000,
        "[a-z]{1000}|" * 1_000,
    ],
)
def test_what_is_too_large_is_refused_before_anything_is_built(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automaton, "States", lambda: pytest.fail("it is built"))
    with pytest.raises(InvalidPattern, match=r"^expression too large$"):
        finish(for_topics(pattern))


def test_a_long_pattern_is_parsed_in_pieces() -> None:
    assert sum(1 for _ in parser("a|" * 16_383).parsing()) > 400


LARGE = [
    "x" * 32_767,
    "a|" * 16_383,
    "|" * 32_767,
    "a+" * 16_383,
    "(" * 16_000 + "a" + ")" * 16_000,
    "(a|" * 10_000 + ")" * 10_000,
    "(" * 300 + "a" + "+)" * 300,
    "|".join(f"topic-{number}" for number in range(2_500)),
]


@pytest.mark.parametrize("pattern", LARGE, ids=range(len(LARGE)))
def test_whatever_fits_into_a_request_without_counts_is_taken(pattern: str) -> None:
    """However deeply it is nested, since there is no recursion."""
    assert not Expression(pattern).matches("no-such-name")


def test_classes_that_do_not_end_are_looked_for_once() -> None:
    """The end of each `[:` used to be searched for in the whole rest."""

    class Counting(str):
        looked = 0

        def find(self, *arguments: object) -> int:
            Counting.looked += 1
            return super().find(*arguments)  # type: ignore[arg-type]

    with pytest.raises(InvalidPattern, match=r"^missing closing ]$"):
        parse(Counting("[[:" * 10_000))
    assert Counting.looked == 0


def test_repetitions_longer_than_a_name_match_as_if_they_were_as_long() -> None:
    assert Expression("a{1,1000}").matches("a" * 249)
    assert not Expression("a{250}").matches("a" * 249)
    assert Expression("(a?){1000}").matches("a" * 249)


def test_what_is_remembered_is_bounded_and_forgotten_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "REMEMBERED_MAX", 2_000)
    chance = random.Random(1)
    expression = Expression(".*a.{12}")
    most = 0
    for _ in range(100):
        name = "".join(chance.choices("ab", k=60))
        assert expression.matches(name) == (name[-13] == "a")
        most = max(most, sum(len(states) for _, states in expression.made._sets))
    assert 0 < most < 2_000


def test_of_characters_too_no_more_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "REMEMBERED_MAX", 2_000)
    made = finish(for_text("(a|.)*x"))
    most = 0
    for code_point in range(200, 1_200):
        assert finish(made.matches(f"a{chr(code_point)}x"))
        most = max(most, sum(len(following) for following in made._following))
    assert 0 < most < 2_000 / automaton.CHARACTER_WORDS


def test_matching_ends_when_it_has_taken_as_many_steps_as_it_may() -> None:
    expression = Expression("(.?){1000}" * 30)
    expression.made.most_steps = 100_000
    with pytest.raises(TooMuchWork):
        expression.matches("a" * 249)
    assert expression.steps < 200_000


def generated(chance: random.Random, depth: int) -> str:
    """A pattern of any shape: nested counts, classes, assertions, groups."""
    kind = chance.random()
    if depth == 0 or kind < 0.15:
        return chance.choice(
            [
                "a",
                "b",
                ".",
                "",
                "()",
                "^",
                "$",
                r"\b",
                "[a-c]",
                "[^a]",
                r"\w",
                "(?i:k)",
                r"\pL",
                "[[:alpha:]]",
            ]
        )
    if kind < 0.4:
        return generated(chance, depth - 1) + generated(chance, depth - 1)
    if kind < 0.55:
        return f"({generated(chance, depth - 1)}|{generated(chance, depth - 1)})"
    if kind < 0.65:
        return "(" * 50 + generated(chance, depth - 1) + ")" * 50
    count = chance.choice(["*", "+", "?", "{3}", "{0,7}", "{2,}", "{1000}", "{0,1000}", "{500,}", "*?"])
    return f"({generated(chance, depth - 1)}){count}"


def test_generated_patterns_take_steps_in_proportion_to_their_size_and_the_name() -> None:
    """Seeded. The parsed tree is no larger than the pattern, the automaton has no more states than the tree's size
    says, and a character visits no state twice; all of it yields often enough."""
    chance = random.Random(20260301)
    refused = 0
    for _ in range(400):
        pattern = generated(chance, chance.randint(1, 8))
        try:
            size = parse(pattern)[1]
        except InvalidPattern:
            refused += 1
            continue
        assert size <= SIZE_MAX
        if size > 20_000:
            continue  # what holds for these holds for larger ones
        states = States()
        pieces = sum(1 for _ in states.build(parse(pattern)))
        edges = sum(map(len, states.ways.values()))
        assert len(states.bits) + edges <= 5 * size + 5
        assert pieces * 300 >= len(states.bits) - 600
        expression = Expression(pattern)
        name = "".join(chance.choices("abcK.-_0", k=12))
        before = expression.pieces
        expression.matches(name)
        assert expression.steps <= (len(name) + 1) * (len(states.bits) + 1)
        assert (expression.pieces - before) * 64 >= expression.steps - 64 * (len(name) + 2)
    assert 20 < refused < 200


@pytest.mark.parametrize(
    ("pattern", "text", "matched"), [("a*", "a" * 32_000, True), ("(a|b)*c", "ab" * 16_000, False)]
)
def test_a_long_text_is_matched_in_pieces(pattern: str, text: str, matched: bool) -> None:
    expression = Expression(pattern)
    expression.pieces = 0
    assert expression.matches(text) is matched
    assert expression.pieces >= len(text) // automaton.AT_ONCE - 1


def test_characters_that_were_not_met_before_are_matched_in_pieces() -> None:
    expression = Expression("(.{50}x)*")
    expression.pieces = 0
    assert expression.matches("".join(chr(ord("a") + number % 7) for number in range(51))) is False
    assert expression.pieces >= 51 // automaton.NEW_AT_ONCE


def test_java_takes_any_text() -> None:
    """Outside ASCII, the characters that the pattern names are told apart."""
    expression = finish(for_text("[\u00e9-\u00fc]+.[^\u00e9]"))
    for text, does_match in [("\u00e9\u00fcab", True), ("\u00e8xx", False), ("\u00ebx\U0001f600", True)]:
        assert finish(expression.matches(text)) is does_match
    assert not finish(finish(for_text(".")).matches("\n"))
    each = [chr(code_point) for code_point in range(128)]
    letters = finish(for_text("[a-z]"))
    assert "".join(letter for letter in each if finish(letters.matches(letter))) == string.ascii_lowercase
    punctuation = finish(for_text("\\p{Punct}"))
    assert [sign for sign in each if finish(punctuation.matches(sign))] == sorted(string.punctuation)
    assert finish(finish(for_text("(?s).")).matches("\n"))
    assert finish(finish(for_text("(?i)app\\p{Digit}")).matches("APP1"))


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        *((each, 1) for each in ("a", "^", "$", "\\b", ".", "[a-c]")),
        *(("ab", 3), ("a|b|c", 4), ("a*", 3), ("a?", 3), ("a{3}", 7), ("a{2,}", 5), ("(a|b){4}", 17)),
    ],
)
def test_the_size_of_an_expression(pattern: str, size: int) -> None:
    assert parse(pattern)[1] == size


@pytest.mark.parametrize("pattern", ["\\x80", "\\xe9", "[a-\\xe9]", "[\\x{7f}-\\x{80}]"])
def test_java_is_not_given_characters_outside_ascii_by_their_numbers(pattern: str) -> None:
    with pytest.raises(Unsupported, match="outside ASCII"):
        finish(for_text(pattern))
    assert finish(finish(for_text("\\x7f")).matches("\x7f"))


@pytest.mark.parametrize("name", ["a_b", "_a", "1a", "a-b", ""])
def test_names_of_javas_groups_are_letters_and_digits(name: str) -> None:
    with pytest.raises(InvalidPattern, match="invalid named capture"):
        finish(for_text(f"(?<{name}>x)"))
    assert finish(finish(for_text("(?<a1>x)")).matches("x"))


@pytest.mark.parametrize(
    ("pattern", "matching", "not_matching"),
    [
        ("\u00e9", "\u00e9", "\u00e8\u00ea\u00eb"),
        ("(?i)a", "aA", "\0bB\u00e9"),
        ("(?i)[^a]", "\0bB\u00e9", "aA"),
        ("[\\a\\f\\n\\r\\t]", "\a\f\n\r\t", "afnrt"),
        ("\\t", "\t", "t\0"),
        ("\\p{Lower}", "az", "A1\u00e9"),
        ("\\P{Lower}", "A1\u00e9", "az"),
        ("[^\\p{XDigit}]", "gG-", "0aF"),
        ("\\p{ASCII}", "a\x7f", "\x80\u00e9"),
        ("[a&]", "a&", "b"),
        ("\\w\\b", "a_0", "-"),
        ("\\W\\B", "-", "a_0"),
    ],
)
def test_single_characters_in_java(pattern: str, matching: str, not_matching: str) -> None:
    made = finish(for_text(pattern))
    assert [each for each in matching + not_matching if finish(made.matches(each))] == list(matching)


@pytest.mark.parametrize("escape", UNSUPPORTED_ESCAPES)
def test_escapes_of_java_that_are_not_known_here_are_refused_wherever_they_stand(escape: str) -> None:
    for pattern in (f"\\{escape}", f"a\\{escape}b", f"[x\\{escape}y]"):
        with pytest.raises(Unsupported):
            finish(for_text(pattern))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{", "a brace without counts"),
        ("a{", "a brace without counts"),
        ("a{1,b}", "a brace without counts"),
        ("(?P<n>a)", "a group of Python's"),
        ("(?i)*", "missing argument to repetition operator"),
        ("\\p{L}", "classes of Unicode are not supported"),
        ("\\pL", "classes of Unicode are not supported"),
        ("\\p{Alpha", "classes of Unicode are not supported"),
        ("[[a]]", "classes within classes are not supported"),
        ("[a[b]]", "classes within classes are not supported"),
        ("[a&&b]", "intersections of classes are not supported"),
        ("a*+", "possessive and repeated repetitions are not supported"),
        ("a{2}{3}", "possessive and repeated repetitions are not supported"),
    ],
)
def test_what_is_refused_in_java(pattern: str, words: str) -> None:
    with pytest.raises(InvalidPattern, match=f"^{words}$"):
        finish(for_text(pattern))


def test_the_last_character_of_ascii_is_in_its_classes_where_it_is_named_too() -> None:
    assert finish(finish(for_text("\\p{Cntrl}|a\x7f\x80")).matches("\x7f"))
