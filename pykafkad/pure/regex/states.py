"""The states of an automaton, built from a tree. Each has either the set of characters that it accepts and its next
state, or the states that it leads to without a character.

Building is a generator that yields every YIELD_STEPS states. Invariants: there are at most twice as many states as the
tree's size; no recursion, however deep the tree is.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafkad.pure.regex.parsing import ALT, ASSERT, CAT, NO_LIMIT, REPEAT, SET, Tree

YIELD_STEPS = 64
THE_END = 0  # the state in which a match ends


class States:
    __slots__ = ("_pending", "after", "asserts", "bits", "start", "ways")

    def __init__(self) -> None:
        self.bits: list[int] = []  # the characters that a state accepts,
        self.after: list[int] = []  # and its next state
        self.ways: dict[int, list[int]] = {}
        self.asserts: dict[int, int] = {}  # the assertion under which a state's transitions hold
        self._pending: list[tuple[Tree, int, int]] = []  # trees that are to be built between two states
        self.new()
        self.start = self.new()

    def new(self) -> int:
        self.bits.append(0)
        self.after.append(THE_END)
        return len(self.bits) - 1

    def _lead(self, state: int, to: int) -> None:
        self.ways.setdefault(state, []).append(to)

    def build(self, tree: Tree) -> Iterator[None]:
        pending = self._pending
        pending.append((tree, self.start, THE_END))
        steps = 0
        while pending:
            tree, start, end = pending.pop()
            kind = tree[0]
            if kind == SET:
                self.bits[start], self.after[start] = tree[2], end
            elif kind == ASSERT:
                self.asserts[start] = tree[2]
                self._lead(start, end)
            elif kind == CAT:
                yield from self._sequence(tree[2], start, end)
            elif kind == ALT:
                yield from self._alternatives(tree[2], start, end)
            else:
                assert kind == REPEAT
                yield from self._repetition(tree, start, end)
            steps += 1
            if not steps % YIELD_STEPS:
                yield

    def _then(self, tree: Tree, start: int) -> int:
        """Build the tree before this state; returns its first state."""
        end = self.new()
        self._pending.append((tree, start, end))
        return end

    def _sequence(self, trees: list[Tree], start: int, end: int) -> Iterator[None]:
        for index, tree in enumerate(trees):
            start = self._then(tree, start)
            if not index % YIELD_STEPS:
                yield
        self._lead(start, end)

    def _alternatives(self, trees: list[Tree], start: int, end: int) -> Iterator[None]:
        for index, tree in enumerate(trees):
            first = self.new()
            self._lead(start, first)
            self._pending.append((tree, first, end))
            if not index % YIELD_STEPS:
                yield

    def _repetition(self, repeat: Tree, start: int, end: int) -> Iterator[None]:
        _, _, tree, least, most = repeat
        last = None
        for _ in range(least):
            last, start = start, self._then(tree, start)
        yield
        for _ in range(most - least):
            self._lead(start, end)
            first = self.new()
            self._lead(start, first)
            start = self._then(tree, first)
        self._lead(start, end)
        if most == NO_LIMIT and last is not None:
            self._lead(start, last)
        elif most == NO_LIMIT:
            first = self.new()
            self._lead(start, first)
            self._pending.append((tree, first, start))
