"""The mutants' own machinery: what is changed, that a known mutant is killed, and that a harmless change lives."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import EQUIVALENT, equivalents, row_of
from tests.mutants.mutating import Mutant, mutants
from tests.mutants.trying import KILLED, NOT_RUN, ROOT, SURVIVED, Touched, Trial

SOURCE = '''"""Text."""
if TYPE_CHECKING:
    import os

LIMIT = 5 * 1024 * 1024

def first(numbers, most=3, *, loud=False):
    """Text that stays."""
    log.info("text", 7)
    if log.debugs:
        log.debug("text", 7)
    assert most > 0
    self.last: int
    if numbers and len(numbers) < most:  # this too
        numbers.sort()
        self.count += 1
        return f"é {numbers[0]}", numbers[0]
    wait(60_000)
    raise ValueError("none")
'''


def changes() -> list[str]:
    return [f"{each.kind}: {each.before} -> {each.after}" for each in mutants("a.py", SOURCE)]


def test_only_whether_work_pauses_counts_and_not_when() -> None:
    source = """def work(steps):
    if not steps % 8 == 1:
        yield
    if steps > 3:
        yield steps
"""
    found = [f"{each.id}: {each.after}" for each in mutants("a.py", source)]
    assert found == [
        "a.py work arithmetic 0: (steps // 8)",
        "a.py work condition 1: (not steps > 3)",
        "a.py work compare 1: (steps >= 3)",
        "a.py work constant 2: (4)",
    ]


def test_each_kind_of_change_is_found() -> None:
    assert changes() == [
        "arithmetic: 5 * 1024 * 1024 -> (5 * 1024 // 1024)",
        "arithmetic: 5 * 1024 -> (5 // 1024)",
        "constant: 5 -> (6)",
        "default: 3 -> (4)",
        "default: False -> (True)",
        "condition: numbers and len(numbers) < most -> (not (numbers and len(numbers) < most))",
        "boolean: numbers and len(numbers) < most -> (numbers or len(numbers) < most)",
        "compare: len(numbers) < most -> (len(numbers) <= most)",
        "statement: numbers.sort() -> pass",
        "arithmetic: self.count += 1 -> self.count -= 1",
        "statement: self.count += 1 -> pass",
        "constant: 1 -> (2)",
        'result: return f"é {numbers[0]}", numbers[0] -> return None',
        "constant: 0 -> (1)",
        "statement: wait(60_000) -> pass",
        "constant: 60_000 -> (120000)",
        'statement: raise ValueError("none") -> pass',
    ]


def test_a_mutant_is_the_module_with_one_change() -> None:
    for mutant in mutants("a.py", SOURCE):
        ast.parse(mutant.source)
        assert mutant.source != SOURCE and mutant.source.count("# this too") == 1
    assert len({mutant.id for mutant in mutants("a.py", SOURCE)}) == len(changes())


UUIDS, CLOCK = "pykafkad/uuids.py", "pykafkad/clock.py"
IN_UUIDS = "tests/unit/test_uuids.py"
ANSWERS, IN_ANSWERS = "pykafkad/net/answers.py", "tests/unit/test_answers.py"


def of(path: str, function: str, kind: str) -> Mutant:
    made = mutants(path, (ROOT / path).read_text())
    return next(each for each in made if (each.function, each.kind) == (function, kind))


def test_a_known_mutant_is_killed_a_harmless_one_lives_and_the_tree_stays_as_it_is() -> None:
    source = (ROOT / UUIDS).read_text()
    some = of(UUIDS, "random_uuid", "result")
    with Trial(Touched({}, {}), collected=[IN_UUIDS, IN_ANSWERS]) as trial:
        trial.touched.tests[some.place] = sorted(trial.warm.tests)
        assert trial.run(some) == KILLED
        assert trial.run(some._replace(source=source + "\n# a comment\n")) == SURVIVED
        assert trial.run(some._replace(function="")) == KILLED  # in a process of its own
        assert trial.run(some._replace(function="", source="syntax error")) == KILLED
        assert trial.run(some._replace(function="", source=source + "\n# a comment\n")) == SURVIVED
        assert trial.run(some._replace(path=CLOCK)) == NOT_RUN
        where = of(ANSWERS, "read_answer", "default")
        trial.touched.tests[where.place] = [each for each in trial.warm.tests if IN_ANSWERS in each]
        assert trial.run(where) == KILLED, "what a module makes of it when it is imported"
        assert (trial.home / UUIDS).read_text() == source
    assert (ROOT / UUIDS).read_text() == source
    assert not trial.home.exists()


def test_the_tests_of_a_function_are_tried_or_else_those_of_its_module() -> None:
    made = {each.function: each for each in mutants("a.py", SOURCE)}
    tests = {"a.py first": ["one"], "a.py second": ["one", "two"], "ab.py first": ["three"]}
    known = Touched(tests, {})
    assert known.covering(made["first"]) == ["one"]
    assert known.covering(made[""]) == ["one", "two"]


def test_the_tests_that_tell_soonest_are_tried_first() -> None:
    first = next(each for each in mutants("some.py", SOURCE) if each.function)
    seconds = {"test_other.py": 1.0, "test_some.py": 2.0, "test_slow.py": 3.0}
    assert Touched({first.place: sorted(seconds)}, seconds).covering(first) == [
        "test_some.py",
        "test_other.py",
        "test_slow.py",
    ]


@pytest.mark.parametrize("row", sorted(equivalents()))
def test_what_is_judged_equivalent_is_there_still(row: str) -> None:
    path = row.partition(" ")[0]
    assert row in {row_of(each) for each in mutants(path, (ROOT / path).read_text())}, (
        f"take it off {EQUIVALENT}"
    )
