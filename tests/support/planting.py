"""Faults planted in a function: it gets another expression or statement, which is found in its syntax tree."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any


@cache
def _source(function: Callable[..., Any]) -> str:
    lines, first = inspect.getsourcelines(function)
    # Its lines keep their numbers, so that a scheduler lets others run between any two of them.
    return "\n" * (first - 1) + textwrap.dedent("".join(lines))


@cache
def _nodes(function: Callable[..., Any]) -> Counter[str]:
    return Counter(ast.dump(node) for node in ast.walk(ast.parse(_source(function)))
                   if isinstance(node, (ast.expr, ast.stmt)))


def times(part: type | ModuleType, name: str, old: str) -> int:
    """The number of times that the function ``name`` has ``old``, as `faulty` looks for it."""
    before, = ast.parse(old).body
    return _nodes(getattr(part, name))[ast.dump(before.value if isinstance(before, ast.Expr) else before)]


def faulty(part: type | ModuleType, name: str, old: str, new: str) -> Callable[..., Any]:
    """The function ``name`` of a class or module with ``new`` in place of ``old``, an expression or a statement that
    its syntax tree must have once, however it is laid out.
    """
    (before,), after = ast.parse(old).body, ast.parse(new).body
    wanted: ast.AST
    replacement: ast.AST | list[ast.stmt]
    if isinstance(before, ast.Expr) and len(after) == 1 and isinstance(after[0], ast.Expr):
        wanted, replacement = before.value, after[0].value
    else:
        wanted, replacement = before, after
    searched = ast.dump(wanted)
    tree, nodes = ast.parse(_source(getattr(part, name))), 0

    class Planting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
            nonlocal nodes
            if type(node) is not type(wanted) or ast.dump(node) != searched:
                return self.generic_visit(node)
            nodes += 1
            for new_node in replacement if isinstance(replacement, list) else [replacement]:
                ast.fix_missing_locations(ast.copy_location(new_node, node))
            return replacement

    Planting().visit(tree)
    assert nodes == 1, f"{part.__name__}.{name} has {nodes} times: {old}"
    names: dict[str, Any] = {}
    exec(compile(tree, inspect.getfile(part), "exec"),
         vars(part if isinstance(part, ModuleType) else sys.modules[part.__module__]), names)
    made: Callable[..., Any] = names[name]
    return made
