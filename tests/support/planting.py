"""Faults planted in a function: it gets another expression or statement, which is found in its syntax tree."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["faulty"]


def faulty(part: type | ModuleType, name: str, old: str, new: str) -> Callable[..., Any]:
    """The function ``name`` of a class or module with ``new`` in place of ``old``, an expression or a statement that
    its syntax tree must have once, however it is laid out.
    """
    (before,), after = ast.parse(old).body, ast.parse(new).body
    replacement: ast.AST | list[ast.stmt]
    if isinstance(before, ast.Expr) and len(after) == 1 and isinstance(after[0], ast.Expr):
        searched, replacement = ast.dump(before.value), after[0].value
    else:
        searched, replacement = ast.dump(before), after
    tree, nodes = ast.parse(textwrap.dedent(inspect.getsource(getattr(part, name)))), 0

    class Planting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
            nonlocal nodes
            if ast.dump(node) != searched:
                return self.generic_visit(node)
            nodes += 1
            return replacement

    Planting().visit(tree)
    assert nodes == 1, f"{part.__name__}.{name} has {nodes} times: {old}"
    names: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), f"<{part.__name__} with a fault>", "exec"),
         vars(part if isinstance(part, ModuleType) else sys.modules[part.__module__]), names)
    made: Callable[..., Any] = names[name]
    return made
