"""A process that has collected the unit tests and is forked for each mutant: a plugin of pytest.

    python -m pytest -p tests.mutants.warm --asked FD --answered FD tests/unit

A line of JSON asks for one trial: the file with its source before and after, the function that was changed, and tests
with the seconds that each may take. A child of this process puts the changed code into the functions that exist, and
runs the tests until one fails. The answer says how that went and by which test. A module that is imported only then is
read from its file, which whoever asks has changed.

Not every change can be tried like this: `COLD` answers what has to be tried in a new process. What is run by imports,
such as what makes a table, is not run again; `ran_early` of the first line names these functions.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.mutants.touching import PACKAGE, ROOT, function_of

FAILED, PASSED, SLOW, COLD = "failed", "passed", "slow", "cold"
EXIT_CODES = {0: PASSED, 1: FAILED, 2: COLD}

early: set[CodeType] = set()


def note(frame: FrameType, event: str, argument: Any) -> None:
    early.add(frame.f_code)


sys.settrace(note)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--asked", type=int, help="a descriptor to read from")
    parser.addoption("--answered", type=int, help="a descriptor to write to")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    sys.settrace(None)
    names = {f"{name_of(code)} {function_of(code.co_qualname)}" for code in early if ours(code)}
    early.clear()
    items = {item.nodeid: item for item in session.items}
    functions = functions_of_files()
    gc.collect()
    gc.freeze()  # else each child copied what it never changes
    with (
        open(session.config.getoption("--asked")) as asked,
        open(session.config.getoption("--answered"), "w") as answered,
    ):
        print(json.dumps({"tests": list(items), "ran_early": sorted(names)}), file=answered, flush=True)
        for line in asked:
            print(json.dumps(tried(session, items, functions, json.loads(line))), file=answered, flush=True)
    return True


def ours(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE)


def name_of(code: CodeType) -> str:
    return code.co_filename.removeprefix(f"{ROOT}/")


def functions_of_files() -> dict[str, list[FunctionType]]:
    found = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and ours(each.__code__):
            found[name_of(each.__code__)].append(each)
    return found


def tried(
    session: pytest.Session,
    items: dict[str, pytest.Item],
    functions: dict[str, list[FunctionType]],
    asked: dict[str, Any],
) -> dict[str, str]:
    """How it went, and the test that was the last one."""
    place = mmap.mmap(-1, mmap.PAGESIZE)  # which the child writes and this process reads
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        code = 1
        try:
            code = in_child(session, items, functions, asked, place)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)  # processes that its tests began
    except ProcessLookupError:
        pass
    code = os.waitstatus_to_exitcode(status)
    outcome = SLOW if code == -signal.SIGALRM else EXIT_CODES.get(code, FAILED)
    last = int.from_bytes(place[:8], "big")
    return {"outcome": outcome, "test": asked["tests"][last][0]}


def in_child(
    session: pytest.Session,
    items: dict[str, pytest.Item],
    functions: dict[str, list[FunctionType]],
    asked: dict[str, Any],
    place: mmap.mmap,
) -> int:
    path = asked["path"]
    if path and not changed(functions.get(path, []), path, asked):
        return 2
    chosen = [items[test] for test, _ in asked["tests"]]
    session.items, session.testscollected = chosen, len(chosen)
    for number, item in enumerate(chosen):
        place[:8] = number.to_bytes(8, "big")
        signal.setitimer(signal.ITIMER_REAL, asked["tests"][number][1])
        following = chosen[number + 1] if number + 1 < len(chosen) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def changed(there: list[FunctionType], path: str, asked: dict[str, Any]) -> bool:
    """Whether the functions do what the changed source says."""
    filename = str(ROOT / path)
    wanted = asked["function"].split(".")
    of_name: dict[str, list[CodeType]] = defaultdict(list)
    for code in codes(compile(asked["after"], filename, "exec")):
        of_name[code.co_qualname].append(code)
    places: dict[tuple[str, int], int] = {}
    seen: dict[str, int] = defaultdict(int)
    for code in codes(compile(asked["before"], filename, "exec")):
        places[code.co_qualname, code.co_firstlineno] = seen[code.co_qualname]
        seen[code.co_qualname] += 1
    found = 0
    for function in there:
        name = function.__code__.co_qualname
        parts = function_of(name).split(".")
        if wanted[: len(parts)] == parts:
            place = places.get((name, function.__code__.co_firstlineno))
            if place is None or len(of_name[name]) != seen[name]:
                return False
            try:
                function.__code__ = of_name[name][place]
            except ValueError:  # another number of free variables
                return False
            found += 1
    return bool(found) or not any(
        getattr(module, "__file__", None) == filename for module in sys.modules.values()
    )


def codes(code: CodeType) -> Iterator[CodeType]:
    """All that are in it, in the order of the text."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from codes(each)
