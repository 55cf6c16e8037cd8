"""Mutants of a Python file: small changes of its text, each of which a test should notice."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass
from itertools import accumulate

#: The kinds of mutants.
KINDS = ("comparison", "boundary", "logic", "null", "off-by-one", "extreme", "call", "lock", "saved", "permission")

_SWAPPED: dict[type[ast.cmpop], tuple[str, str, str]] = {  # text, in its place, kind
    ast.Lt: ("<", "<=", "boundary"), ast.LtE: ("<=", "<", "boundary"), ast.Gt: (">", ">=", "boundary"),
    ast.GtE: (">=", ">", "boundary"), ast.Eq: ("==", "!=", "comparison"), ast.NotEq: ("!=", "==", "comparison"),
    ast.Is: ("is", "is not", "null"), ast.IsNot: ("is not", "is", "null"), ast.In: ("in", "not in", "comparison"),
    ast.NotIn: ("not in", "in", "comparison")}
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any",
             "is_null": "is_valid", "is_valid": "is_null"}
#: Functions that take a state over: an assignment that they leave out is a field that is not restored.
_RESTORE = re.compile(r"_?(restored?|resumed?)")
#: Context managers that guard: blocks run without them.
_LOCKS = re.compile(r"lock|guard|held|writing|changed|opened|usable|standing|making", re.IGNORECASE)


@dataclass(frozen=True)
class Mutant:
    """``new`` in place of the characters from ``start`` to ``end`` of ``file``, whose text is ``source``."""

    file: str
    source: str
    start: int
    end: int
    new: str
    kind: str

    @property
    def text(self) -> str:
        """The text of the whole file."""
        return self.source[:self.start] + self.new + self.source[self.end:]

    def diff(self) -> str:
        """The change, as lines of a unified diff."""
        lines = difflib.unified_diff(self.source.splitlines(), self.text.splitlines(), self.file, self.file,
                                     lineterm="", n=0)
        return "\n".join(lines)


def mutants(file: str, source: str) -> list[Mutant]:
    """All mutants of the text ``source`` of ``file``, in its order. Messages and annotations have none."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda one: (one.start, one.end, one.new))


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: str):
        self._file, self._source = file, source
        lines = source.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, lines))]
        self._bytes = [line.encode() for line in lines]
        self._functions: list[str] = []
        self.found: list[Mutant] = []

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._bytes[line - 1][:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt))
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def _put(self, start: int, end: int, new: str, kind: str) -> None:
        self.found.append(Mutant(self._file, self._source, start, end, new, kind))

    def _between(self, left: ast.AST, right: ast.AST, old: str, new: str, kind: str) -> None:
        """Put ``new`` for the operator ``old`` between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = r"\b" + old.replace(" ", r"\s+") + r"\b" if old[0].isalpha() else re.escape(old)
        if (found := re.search(pattern, self._source[start:end])) is not None:
            self._put(start + found.start(), start + found.end(), new, kind)

    # What has no mutants.

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        self._functions.append(node.name)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        for one in node.body:
            self.visit(one)
        self._functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # ast.NodeVisitor looks for this name

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for one in node.body:
            self.visit(one)

    def visit_If(self, node: ast.If) -> None:
        if self._text(node.test) != "TYPE_CHECKING":
            self._negated(node.test)
            self.generic_visit(node)

    # What has.

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def _negated(self, test: ast.expr) -> None:
        if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
            start, end = self._span(test)
            self._put(start, end, f"not {self._source[start:end]}", "logic")

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            old, new, kind = _SWAPPED[type(op)]
            self._between(left, right, old, new, kind)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        if not any(isinstance(one, ast.Constant) for one in node.values):
            self._between(node.values[-2], node.values[-1], old, new, "logic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.Invert)) and not isinstance(node.operand, ast.Constant):
            start, end = self._span(node)
            self._put(start, end, self._text(node.operand) if isinstance(node.op, ast.Invert) else
                      f"bool({self._text(node.operand)})", "logic")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(
            one.value, (str, bytes))) for one in (node.left, node.right))
        if isinstance(node.op, (ast.Add, ast.Sub)) and not texts:
            old, new = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
            self._between(node.left, node.right, old, new, "off-by-one")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        if type(node.value) is int:
            text = self._source[start:end]
            if text.startswith("0o"):
                self._put(start, end, {"0o600": "0o640", "0o700": "0o770"}.get(text, "0o777"), "permission")
            elif not text.startswith("0x"):
                self._put(start, end, str(node.value + 1), "off-by-one")
        elif type(node.value) is bool:
            self._put(start, end, str(not node.value), "logic")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _EXTREMES:
            end = self._span(node.func)[1]
            self._put(end - len(name), end, _EXTREMES[name], "extreme")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._put(*self._span(node), "pass", "call")
            self.generic_visit(node)
        elif not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._functions and _RESTORE.fullmatch(self._functions[-1]) and "self." in self._text(node.targets[0]):
            self._put(*self._span(node), "pass", "saved")
        if self._text(node.targets[0]) != "__all__":
            self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        items = [item.context_expr for item in node.items if item.optional_vars is None]
        if len(items) == len(node.items) and all(_LOCKS.search(self._text(item)) for item in items):
            start, end = self._span(node)[0], self._span(node.items[-1].context_expr)[1]
            self._put(start, end, "if True", "lock")
        self.generic_visit(node)
