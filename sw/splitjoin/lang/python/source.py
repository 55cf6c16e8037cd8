"""Source of a user's Python function as a syntax tree, and errors that point at its lines."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from splitjoin.base.errors import PredicateError, SplitJoinError

from ..locations import marked

E = TypeVar("E", bound=SplitJoinError)


@dataclass(frozen=True)
class FunctionSource:
    """A function's syntax tree, and where it stands. ``name``: what messages call it."""

    fn: Callable[..., Any]
    name: str
    tree: ast.FunctionDef
    first: int
    indent: int

    @classmethod
    def of(cls, fn: Callable[..., Any], name: str) -> FunctionSource:
        """The source of ``fn``. Raises `PredicateError` where Python has none, or it is no plain function."""
        try:
            lines, first = inspect.getsourcelines(fn)
        except (OSError, TypeError):
            raise PredicateError(f"the source of {name} must be in a file, as it is compiled; functions typed at a "
                                 f"prompt, or built at run time, have none") from None
        text = "".join(lines)
        try:
            tree = ast.parse(textwrap.dedent(text)).body[0]
        except SyntaxError:  # part of a longer expression
            tree = None
        if not isinstance(tree, ast.FunctionDef):
            raise PredicateError(f"{name} must be a function that 'def' defines, not "
                                 f"{'a lambda' if getattr(fn, '__name__', '') == '<lambda>' else type(tree).__name__}")
        indent = len(lines[0]) - len(lines[0].lstrip())
        return cls(fn, name, tree, first, indent)

    def text(self, node: ast.AST) -> str:
        """The user's text of ``node``, in one line."""
        return ast.unparse(node)

    def place(self, node: ast.AST) -> tuple[str, int]:
        """File and line of ``node``."""
        return inspect.getsourcefile(self.fn) or "?", self.first + getattr(node, "lineno", 1) - 1

    def located(self, error: E, node: ast.AST) -> E:
        """``error`` with the place of ``node``."""
        file, line = self.place(node)
        made = f"{error}\n  {file}, line {line}, in {self.name}"
        source = linecache.getline(file, line).rstrip("\n")
        if source.strip():
            start = getattr(node, "col_offset", 0)
            one_line = getattr(node, "end_lineno", None) == getattr(node, "lineno", 0)
            end = getattr(node, "end_col_offset", start + 1) if one_line else len(source.encode()) - self.indent
            # Columns are counted in bytes, of the text without its indentation.
            start, end = (len(source.encode()[:at + self.indent].decode(errors="ignore")) for at in (start, end))
            made += "\n" + marked(source, start, end)
        return type(error)(made)
