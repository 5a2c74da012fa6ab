"""What can be changed in a module, one thing at a time: operators, numbers, conditions, statements, results, defaults.

A mutant's id is `PATH FUNCTION KIND NUMBER`, counted within the function: it stays the same if other functions change.
Texts, annotations, assertions, lines of the log, code for type checkers alone and when work pauses
(`if not steps % MANY: yield`) are left as they are.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
TYPES_ONLY = "TYPE_CHECKING"
DEFAULT = "default"  # the kind
LEVELS = ("debug", "info", "warn", "error", "exception")
ROUND = 1000  # a multiple of it says about how much: one more is as good


class Mutant(NamedTuple):
    path: str
    function: str  # "" for code that runs at the import of the module
    kind: str
    number: int
    line: int
    before: str
    after: str
    source: str  # of the whole module, changed

    @property
    def id(self) -> str:
        return f"{self.path} {self.function or '-'} {self.kind} {self.number}"

    @property
    def place(self) -> str:
        """The function, as in touching.py."""
        return f"{self.path} {self.function}"

    def __str__(self) -> str:
        return f"{self.id} (line {self.line}): {self.before}  ->  {self.after}"


class Change(NamedTuple):
    function: str
    kind: str
    node: ast.expr | ast.stmt
    instead: ast.AST
    is_of_pause: bool  # only of when it comes: counted, and left out


def mutants(path: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its text."""
    found = []
    lines = source.encode().splitlines(keepends=True)
    numbers: Counter[tuple[str, str]] = Counter()
    for change in Finder(ast.parse(source)).changes:
        number = numbers[change.function, change.kind]
        numbers[change.function, change.kind] += 1
        if change.is_of_pause:
            continue
        head, before, tail = parts(lines, change.node)
        after = ast.unparse(change.instead)
        if isinstance(change.instead, ast.expr):
            after = f"({after})"
        given = (path, change.function, change.kind, number, change.node.lineno)
        found.append(Mutant(*given, " ".join(before.split()), " ".join(after.split()), head + after + tail))
    return found


def parts(lines: list[bytes], node: ast.expr | ast.stmt) -> tuple[str, str, str]:
    """The source before the node, its own and what follows, all as it is written. Columns are counted in UTF-8."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = b"".join(lines[:first]) + lines[first][: node.col_offset]
    tail = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    whole = b"".join(lines)
    return head.decode(), whole[len(head) : len(whole) - len(tail)].decode(), tail.decode()


class Finder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.changes: list[Change] = []
        self._function: list[str] = []
        self._in_pause = False
        self.visit(tree)

    def _add(self, kind: str, node: ast.expr | ast.stmt, instead: ast.AST) -> None:
        is_of_pause = self._in_pause and kind != "arithmetic"
        self.changes.append(Change(".".join(self._function), kind, node, instead, is_of_pause))

    # -- where

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function.append(node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if isinstance(default, ast.Constant):
                for other in other_values(default):
                    self._add(DEFAULT, default, other)
        self._function.pop()
        self._inside(node.name, node.body)

    def _inside(self, name: str, body: list[ast.stmt]) -> None:
        self._function.append(name)
        for each in body:
            self.visit(each)
        self._function.pop()

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == TYPES_ONLY:
            return
        if spares_a_line(node):
            return
        self._in_pause = is_pause(node)
        self._condition(node.test)
        self.visit(node.test)
        self._in_pause = False
        for each in [*node.body, *node.orelse]:
            self.visit(each)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._statement(node, node.target)
            self.visit(node.value)

    # -- expressions

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) not in ORDERED:
            return  # the comparison's own mutants include it
        negated = test.operand if is_not(test) else ast.UnaryOp(ast.Not(), test)  # type: ignore[attr-defined]
        self._add("condition", test, negated)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = COMPARISONS[type(operator)]()
            self._add("compare", node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add("boolean", node, changed)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC and not is_type(node):
            changed = copy.deepcopy(node)
            changed.op = ARITHMETIC[type(node.op)]()
            self._add("arithmetic", node, changed)
            self.visit(node.left)
            if not is_unit(node):
                self.visit(node.right)

    def visit_keyword(self, node: ast.keyword) -> None:
        """`zip(..., strict=True)` asserts what holds."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        for other in other_values(node):
            self._add("constant", node, other)

    # -- statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if says(node.value):
            return
        if isinstance(node.value, ast.Call | ast.Await):
            self._add("statement", node, ast.Pass())
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """What cannot be otherwise: nobody could tell a weaker one."""

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(
            isinstance(target, ast.Name) and target.id in ("__slots__", TYPES_ONLY) for target in node.targets
        ):
            return
        self._statement(node, node.targets[0])
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in ARITHMETIC:
            changed = copy.deepcopy(node)
            changed.op = ARITHMETIC[type(node.op)]()
            self._add("arithmetic", node, changed)
        self._statement(node, node.target, local=True)
        self.visit(node.value)

    def _statement(self, node: ast.stmt, target: ast.expr, local: bool = False) -> None:
        """A name that is never assigned fails at once, which shows nothing."""
        if local or isinstance(target, ast.Attribute | ast.Subscript):
            self._add("statement", node, ast.Pass())

    def visit_Delete(self, node: ast.Delete) -> None:
        self._add("statement", node, ast.Pass())

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("statement", node, ast.Pass())

    def visit_Break(self, node: ast.Break) -> None:
        self._add("statement", node, ast.Continue())

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not is_none(node.value):
            if not isinstance(node.value, ast.Constant):
                self._add("result", node, ast.Return(ast.Constant(None)))
            self.visit(node.value)


ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_pause(node: ast.If) -> bool:
    """`if is_turn: yield`, `if not number % MANY: yield GO_ON`"""
    return not node.orelse and [ast.unparse(each) for each in node.body] in (["yield"], ["yield GO_ON"])


def is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_type(node: ast.BinOp) -> bool:
    """`A | None`"""
    return isinstance(node.op, ast.BitOr) and (is_none(node.left) or is_none(node.right))


def says(node: ast.expr) -> bool:
    """`log.info(...)`, `self._log.error(...)`, `self.log(...)`: a line of the log."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    function, owner = node.func, node.func.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return function.attr == "log" or (name.lstrip("_") == "log" and function.attr in LEVELS)


def spares_a_line(node: ast.If) -> bool:
    """`if log.debugs: log.debug(...)`"""
    asks = isinstance(node.test, ast.Attribute) and node.test.attr == "debugs"
    return asks and all(
        isinstance(each, ast.Expr) and says(each.value) for each in (*node.body, *node.orelse)
    )


def is_unit(node: ast.BinOp) -> bool:
    """`64 * 1024`, `16 << 20`: the number is what counts."""
    return isinstance(node.op, ast.Mult | ast.LShift) and all(
        isinstance(each, ast.Constant) or (isinstance(each, ast.BinOp) and is_unit(each))
        for each in (node.left, node.right)
    )


def other_values(node: ast.Constant) -> Iterator[ast.Constant]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        is_round = node.value and node.value % ROUND == 0
        yield ast.Constant(node.value * 2 if is_round else node.value + 1)
