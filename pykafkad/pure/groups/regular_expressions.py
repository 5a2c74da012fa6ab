"""Regular expressions over topic names, in RE2's syntax and in time linear in the name: KIP-848's subscribed_topic_regex.

A pattern becomes an automaton without backtracking whose states are bits of an int; sets of states that were met
are remembered, so that the next name walks them by a dictionary. A name matches as a whole. Invariants: at most
STATES_MAX states and SETS_MAX remembered steps, whatever the pattern. Names are those of topics: ALPHABET, at most
NAME_MAX characters, which is why longer repetitions are cut to it.
"""

from __future__ import annotations

from pykafkad.pure.groups.regex_classes import BITS, WORD
from pykafkad.pure.groups.regex_parsing import (
    ALT,
    ASSERT,
    BEGIN,
    BEGIN_LINE,
    CAT,
    END,
    END_LINE,
    NO_LIMIT,
    REPEAT,
    SET,
    WORD_BOUNDARY,
    InvalidPattern,
    Tree,
    parse,
)

__all__ = ["InvalidPattern", "RegularExpression"]

STATES_MAX = 20_000
SETS_MAX = 4_000
NAME_MAX = 249

# What an assertion asks about a place in a name; BEGIN and END also hold for every line of it, which has one.
AT_BEGIN, AT_END, AT_BOUNDARY = 1, 2, 4


class RegularExpression:
    """Raises InvalidPattern. States are numbered; state 0 is the end of a match."""

    def __init__(self, pattern: str) -> None:
        self._bits: list[int] = [0]  # of a state: the characters that lead on from it
        self._next: list[int] = [0]  # and where to
        self._empty: list[list[tuple[int, int]]] = [[]]  # ways without a character: (assertion or -1, state)
        self._start = self._build(parse(pattern), 0)
        self._steps: dict[tuple[int, int, str], int] = {}
        self._closures: dict[tuple[int, int], int] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        states = 1 << self._start
        was_word = False
        steps = self._steps
        for index, character in enumerate(name):
            bit = BITS.get(character, 0)
            is_word = bool(bit & WORD)
            place = (0 if index else AT_BEGIN) | (AT_BOUNDARY if is_word != was_word else 0)
            key = states, place, character
            found = steps.get(key)
            states = self._step(key, bit) if found is None else found
            if not states:
                return False
            was_word = is_word
        place = AT_END | (AT_BOUNDARY if was_word else 0) | (0 if name else AT_BEGIN)
        return bool(self._closure(states, place) & 1)

    # -- walking

    def _step(self, key: tuple[int, int, str], bit: int) -> int:
        result = 0
        for state in _members(self._closure(key[0], key[1])):
            if self._bits[state] & bit:
                result |= 1 << self._next[state]
        if len(self._steps) >= SETS_MAX:
            self._steps.clear()
            self._closures.clear()
        self._steps[key] = result
        return result

    def _closure(self, states: int, place: int) -> int:
        """The states and all that can be reached from them here without a character."""
        found = self._closures.get((states, place))
        if found is not None:
            return found
        result = states
        pending = _members(states)
        while pending:
            for assertion, state in self._empty[pending.pop()]:
                if not result >> state & 1 and _holds(assertion, place):
                    result |= 1 << state
                    pending.append(state)
        self._closures[states, place] = result
        return result

    # -- building, from the end of the tree to its beginning

    def _state(self, bits: int = 0, following: int = 0) -> int:
        if len(self._bits) >= STATES_MAX:
            raise InvalidPattern("expression too large")
        self._bits.append(bits)
        self._next.append(following)
        self._empty.append([])
        return len(self._bits) - 1

    def _fork(self, *states: int) -> int:
        made = self._state()
        self._empty[made] = [(-1, state) for state in states]
        return made

    def _build(self, tree: Tree, following: int) -> int:
        """The state at which the tree begins, when `following` is what comes after it."""
        kind = tree[0]
        if kind == SET:
            return self._state(tree[1], following)
        if kind == CAT:
            for item in reversed(tree[1]):
                following = self._build(item, following)
            return following
        if kind == ALT:
            return self._fork(*[self._build(item, following) for item in tree[1]])
        if kind == ASSERT:
            made = self._state()
            self._empty[made] = [(tree[1], following)]
            return made
        assert kind == REPEAT
        return self._repeat(tree[1], tree[2], tree[3], following)

    def _repeat(self, tree: Tree, least: int, most: int, following: int) -> int:
        # More than a name is long either never matches, or repeats nothing.
        least = min(least, NAME_MAX + 1)
        if most == NO_LIMIT:
            loop = self._fork(following)
            self._empty[loop].append((-1, self._build(tree, loop)))
            following = loop
        else:
            end = following
            for _ in range(min(most, NAME_MAX + 1) - least):
                following = self._fork(end, self._build(tree, following))
        for _ in range(least):
            following = self._build(tree, following)
        return following


def _members(states: int) -> list[int]:
    """The numbers of the bits that are set."""
    members = []
    while states:
        lowest = states & -states
        members.append(lowest.bit_length() - 1)
        states ^= lowest
    return members


def _holds(assertion: int, place: int) -> bool:
    if assertion < 0:
        return True
    if assertion in (BEGIN, BEGIN_LINE):
        return bool(place & AT_BEGIN)
    if assertion in (END, END_LINE):
        return bool(place & AT_END)
    return bool(place & AT_BOUNDARY) == (assertion == WORD_BOUNDARY)
