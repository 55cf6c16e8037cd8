"""Loops that end early, as loops that do not: ``break``, ``continue`` and ``return`` become conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T", bound=ast.AST)
#: The value of a loop that has returned none.
ABSENT: Any = object()


def ends_early(node: ast.stmt) -> TypeGuard[ast.For | ast.While]:
    """True for a loop of which a statement ends it, or one of its rounds."""
    return isinstance(node, (ast.For, ast.While)) and not node.orelse and any(_leaves(s) for s in node.body)


def unbroken(node: ast.For | ast.While) -> list[ast.stmt]:
    """Statements that do what the loop ``node`` does, and leave none of its rounds."""
    return _Loop(node).statements()


def _leaves(node: ast.stmt, *, inner: bool = False) -> bool:
    """True if ``node`` may leave a round; ``inner``: it is of a loop within, whose break and continue are its own."""
    if isinstance(node, ast.Return) or (isinstance(node, (ast.Break, ast.Continue)) and not inner):
        return True
    within = inner or isinstance(node, (ast.For, ast.While))
    return any(_leaves(s, inner=within) for s in (*getattr(node, "body", ()), *getattr(node, "orelse", ())))


class _Loop:
    """A loop, with names for whether a round goes on, whether the loop does, and what it has returned."""

    def __init__(self, node: ast.For | ast.While):
        self._node = node
        at = f"{node.lineno}:{node.col_offset}"  # no other loop of the function has names of this place
        self._round, self._going, self._returned, self._value = (
            f"${name}{at}" for name in ("round", "going", "returned", "value"))

    def statements(self) -> list[ast.stmt]:
        node = self._node
        returns = any(isinstance(x, ast.Return) for s in node.body for x in ast.walk(s))
        before = [self._set(self._going, True)]
        if returns:
            before += [self._set(self._returned, False), self._set(self._value, ABSENT)]
        body = [self._set(self._round, True), *self._block(node.body)]
        going = self._name(self._going, ast.Load())
        loop: ast.stmt = (ast.For(node.target, node.iter, [self._if(self._going, body)], [])
                          if isinstance(node, ast.For) else
                          ast.While(self._placed(ast.BoolOp(ast.And(), [going, node.test])), body, []))
        loop = self._placed(loop)
        value = self._placed(ast.Return(self._name(self._value, ast.Load())))
        return [*before, loop, *([self._if(self._returned, [value])] if returns else [])]

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for n, node in enumerate(statements):
            made += self._statement(node)
            if _leaves(node) and n + 1 < len(statements):
                return [*made, self._if(self._round, self._block(statements[n + 1:]))]
        return made

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        ends = [self._set(self._round, False), self._set(self._going, False)]
        match node:
            case ast.Break():
                return ends
            case ast.Continue():
                return ends[:1]
            case ast.Return():
                kept = ast.Assign([self._name(self._value, ast.Store())], node.value or ast.Constant(None))
                ends[:0] = [ast.fix_missing_locations(ast.copy_location(kept, node)), self._set(self._returned, True)]
                return ends
            case ast.If() if _leaves(node):
                return [ast.copy_location(ast.If(node.test, self._block(node.body), self._block(node.orelse)), node)]
            case ast.For() | ast.While() if _leaves(node):
                return self._block(unbroken(node))
        return [node]

    def _name(self, name: str, context: ast.expr_context) -> ast.Name:
        return self._placed(ast.Name(name, context))

    def _set(self, name: str, value: Any) -> ast.stmt:
        return self._placed(ast.Assign([self._name(name, ast.Store())], self._placed(ast.Constant(value))))

    def _if(self, name: str, body: list[ast.stmt]) -> ast.stmt:
        return self._placed(ast.If(self._name(name, ast.Load()), body or [self._placed(ast.Pass())], []))

    def _placed(self, node: T) -> T:
        return ast.copy_location(node, self._node)
