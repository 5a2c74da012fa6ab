"""Matches regular expressions by an automaton without backtracking: in time linear in the text, in bounded memory.

What may take long is a generator: parsing a pattern, building an automaton, and matching a text, as a whole, against it.
They yield about every YIELD_STEPS steps or AT_ONCE characters, so that others can be served in between; `steps` counts
those of matching.

Sets of states that have occurred are numbered and cached, with the set that each character leads to, so that most
characters of most texts cost one lookup in a dictionary.

Invariants: the cache has at most REMEMBERED_MAX words, and is cleared as a whole; a character visits no state twice.
Matching that takes more than `most_steps` raises TooMuchWork. There are no reference cycles. An automaton matches one
text at a time.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from pykafkad.pure.regex import java_syntax, parsing
from pykafkad.pure.regex.alphabets import Alphabet
from pykafkad.pure.regex.parsing import BEGIN, BEGIN_LINE, END, END_LINE, WORD_BOUNDARY, Parser
from pykafkad.pure.regex.states import THE_END, YIELD_STEPS, States

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
StateSet = tuple[int, tuple[int, ...]]  # what is before this place, and the states

AT_ONCE, NEW_AT_ONCE = 1024, 16  # characters of a text between two yields, and those that no cache knew
REMEMBERED_MAX = 200_000  # words of memory, approximately
SET_WORDS, CHARACTER_WORDS = 60, 15
NO_LIMIT = 1 << 62
NOWHERE = 0  # the number of the empty set

# What is known of a place in a text. What is before it:
AFTER_WORD, AT_BEGIN = 1, 2
# and what is after it:
AT_BOUNDARY, AT_END = 4, 8


class TooMuchWork(Exception):
    """Matching has taken as many steps as it may."""


def for_topics(pattern: str) -> Steps[Automaton]:
    """For topic names, in RE2's syntax. InvalidPattern says what is wrong."""
    return made(parsing.parser(pattern))


def for_text(pattern: str) -> Steps[Automaton]:
    """For any text, in Java's syntax."""
    return made(java_syntax.parser(pattern))


def for_any_text(pattern: str) -> Steps[Automaton]:
    """For any text, in RE2's syntax."""
    from pykafkad.pure.regex import any_text

    return made(any_text.parser(pattern))


def made(parser: Parser) -> Steps[Automaton]:
    yield from parser.parsing()
    states = States()
    yield from states.build(parser.tree)
    return Automaton(states, parser.alphabet)


def finish(steps: Steps[Result]) -> Result:
    """Run the generator to its end, where nobody has to be served in between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


class Automaton:
    def __init__(self, states: States, alphabet: Alphabet) -> None:
        self.steps = 0
        self.most_steps = NO_LIMIT
        self._states = states
        self._alphabet = alphabet
        self._looks_around = bool(states.asserts)  # whether it matters what is before a place
        self._forget()

    def matches(self, text: str) -> Steps[bool]:
        """Whether the whole text matches."""
        at = self._number((AT_BEGIN if self._looks_around else 0, (self._states.start,)))
        following, new = self._following, 0
        self.steps += len(text)
        for begin in range(0, len(text), AT_ONCE):
            for character in text[begin : begin + AT_ONCE]:
                found = following[at].get(character)
                if found is None:
                    found = yield from self._follow(at, character)
                    following = self._following  # the cache may have been cleared since
                    new += 1
                    if not new % NEW_AT_ONCE:
                        yield
                if found == NOWHERE:
                    return False
                at = found
            if begin:
                yield
        ends = self._ends[at]
        if ends is None:
            ends = yield from self._look_for_end(at)
        return ends

    def _follow(self, at: int, character: str) -> Steps[int]:
        """The set that a character leads to, which is not cached yet."""
        before, states = self._sets[at]
        bit = self._alphabet.bit(character)
        is_word = bool(bit & self._alphabet.word)
        place = before | (AT_BOUNDARY if is_word != bool(before & AFTER_WORD) else 0)
        behind, _ = yield from self._walk(states, place, bit)
        number = self._number((AFTER_WORD if is_word and behind and self._looks_around else 0, behind))
        self._remembered += CHARACTER_WORDS
        if self._remembered <= REMEMBERED_MAX:
            self._following[at][character] = number
            return number
        found = self._sets[number]
        self._forget()
        return self._number(found)

    def _look_for_end(self, at: int) -> Steps[bool]:
        before, states = self._sets[at]
        place = before | AT_END | (AT_BOUNDARY if before & AFTER_WORD else 0)
        _, ends = yield from self._walk(states, place, 0)
        self._ends[at] = ends
        return ends

    def _walk(self, states: tuple[int, ...], place: int, bit: int) -> Steps[tuple[tuple[int, ...], bool]]:
        """The states after a character here, and whether the end can be reached from them without another one."""
        bits, after, ways, asserts = (
            getattr(self._states, each) for each in ("bits", "after", "ways", "asserts")
        )
        pending = list(states)
        met = set(pending)
        behind: set[int] = set()
        steps = 0
        while pending:
            state = pending.pop()
            if bits[state] & bit:
                behind.add(after[state])
            elif state in ways and (state not in asserts or holds(asserts[state], place)):
                for each in ways[state]:
                    if each not in met:
                        met.add(each)
                        pending.append(each)
            steps += 1
            if not steps % YIELD_STEPS:
                yield
        self.steps += steps
        if self.steps > self.most_steps:
            raise TooMuchWork
        return tuple(sorted(behind)), THE_END in met

    # -- the cache

    def _forget(self) -> None:
        self._sets: list[StateSet] = [(0, ())]
        self._numbers: dict[StateSet, int] = {self._sets[NOWHERE]: NOWHERE}
        self._following: list[dict[str, int]] = [{}]
        self._ends: list[bool | None] = [False]
        self._remembered = 0

    def _number(self, states: StateSet) -> int:
        number = self._numbers.get(states)
        if number is None:
            number = self._numbers[states] = len(self._sets)
            self._sets.append(states)
            self._following.append({})
            self._ends.append(None)
            self._remembered += SET_WORDS + len(states[1])
        return number


def holds(assertion: int, place: int) -> bool:
    """Whether an assertion holds; a text has one line."""
    if assertion in (BEGIN, BEGIN_LINE):
        return bool(place & AT_BEGIN)
    if assertion in (END, END_LINE):
        return bool(place & AT_END)
    return bool(place & AT_BOUNDARY) == (assertion == WORD_BOUNDARY)
