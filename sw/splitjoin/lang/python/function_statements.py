"""Symbolic execution of a Python function: its statements become expressions of the IR, an ``if`` a choice of values.

Expressions are computed with the stand-ins of conditions (`splitjoin.lang.python.values`), so their types, their rules
and most of their errors are those of conditions. Loops over what is known before the run are unrolled.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from splitjoin.base.errors import SplitJoinError

from ..properties import known_truth
from .choices import where
from .function_expressions import Expressions, unknown
from .loops import ends_early, unbroken
from .source import FunctionSource
from .steps import Steps
from .values import Value
from .variables import StateRecord, Struct, is_traced, item_names, like


class FunctionRun(Expressions):
    """Executes the function of ``source`` with stand-ins as arguments. ``places`` keeps assigned values."""

    def run(self, arguments: Mapping[str, Any]) -> Any:
        self._env = dict(arguments)
        _, value = self._block(self._source.tree.body)
        return value

    def _compiled(self, function: Any) -> FunctionSource | None:
        function = getattr(function, "py_func", function)  # what numba compiles
        found = super()._compiled(function)
        # Where values are kept, all functions that have a source are followed.
        if (found is None and isinstance(self._places, Steps) and inspect.isfunction(function)
                and function.__module__.partition(".")[0] != "splitjoin"):
            found = FunctionSource.of(function, function.__name__)
        return found

    def value(self, name: str) -> Any:
        """The value of ``name`` at the end of the function."""
        return self._env[name]

    def _block(self, statements: Sequence[ast.stmt]) -> tuple[bool, Any]:
        """Execute ``statements``; True and the value if they return one."""
        for n, node in enumerate(statements):
            if ends_early(node):
                return self._block([*unbroken(node), *statements[n + 1:]])
            self._places.place = self._source.place(node)
            try:
                if isinstance(node, ast.Return):
                    return True, None if node.value is None else self._value(node.value)
                if isinstance(node, ast.If):
                    returned = self._if(node, statements[n + 1:])
                    if returned is not None:
                        return returned
                else:
                    self._statement(node)
            except SplitJoinError as error:
                raise self._located(error, node) from None
        return False, None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass():
                return
            case ast.Expr(value=ast.Constant()):  # a docstring
                return
            case ast.Assign():
                value = self._value(node.value)
                for target in node.targets:
                    self._assign(target, value)
            case ast.AnnAssign(value=ast.expr() as given):
                self._assign(node.target, self._annotated(node, self._value(given)))
            case ast.AugAssign(target=ast.Subscript() as target) if is_traced(index := self._value(target.slice)):
                self._update(node, target, index)
            case ast.AugAssign():
                old = self._value(ast.copy_location(_loaded(node.target), node.target))
                self._assign(node.target, self._binary(node, node.op, old, self._value(node.value)))
            case ast.For(orelse=[]):
                for item in self._rounds(node.iter):
                    self._assign(node.target, item)
                    self._block(node.body)
            case ast.While(orelse=[]):
                self._while(node, 0)
            case _:
                what = self._source.text(node) if isinstance(node, ast.Expr) else type(node).__name__.lower()
                self._refuse(node, f"{what!r} is not compiled; statements are assignments, if, for over a range, "
                                   f"while, break, continue and return")

    def _while(self, node: ast.While, rounds: int) -> None:
        """Execute what is left of a loop after ``rounds``: a round, and within its branch what is left after it.

        So what is known in one round, such as their number, is known in the next.
        """
        while (condition := self._decided(self._condition(node.test))) is not False:
            if rounds == self.most_rounds:
                self._refuse(node, f"a loop is unrolled, so it may have up to {rounds} rounds, and this one may have "
                                   f"more; count them, as in 'while n < 16 and …:' with 'n += 1' in each round")
            rounds += 1
            if isinstance(condition, Value):
                condition = self._places.kept(condition)
                before, self._env = self._env, _copied(self._env)
                self._block(node.body)
                self._while(node, rounds)
                self._env = self._merged(node, condition, self._env, before)
                return
            self._block(node.body)

    def _decided(self, condition: Value | bool) -> Value | bool:
        """``condition``, or what it is where ranges tell it."""
        known = None if isinstance(condition, bool) else known_truth(condition.expr)
        return condition if known is None else known

    def _annotated(self, node: ast.AnnAssign, value: Any) -> Any:
        """``value`` as the annotation of an assignment makes it; here, annotations are for readers."""
        return value

    def _if(self, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[bool, Any] | None:
        """Execute an ``if``; where a branch returns, with all statements after it, whose value is returned."""
        condition = self._condition(node.test)
        if not isinstance(condition, Value):
            outcome = self._block(node.body if condition else node.orelse)
            return outcome if outcome[0] else None
        returns = any(isinstance(x, ast.Return) for branch in (node.body, node.orelse) for s in branch
                      for x in ast.walk(s))
        condition = self._places.kept(condition)
        before, ends = _copied(self._env), []
        for branch in (node.body, node.orelse):
            self._env = _copied(before)
            outcome = self._block([*branch, *rest] if returns else branch)
            ends.append((outcome, self._env))
        (a, env_a), (b, env_b) = ends
        self._env = self._merged(node, condition, env_a, env_b)
        if not returns:
            return None
        # A branch that ends without return returns None, as in Python.
        return a[0] or b[0], self._chosen(condition, a[1], b[1])

    def _merged(self, node: ast.If | ast.While, condition: Value, a: dict[str, Any],
                b: dict[str, Any]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        lists: dict[tuple[int, int], Any] = {}
        for name in a:
            if name not in b:
                continue  # known in one branch only: later uses are refused
            x, y = a[name], b[name]
            if isinstance(x, StateRecord) and isinstance(y, StateRecord):
                record = StateRecord(x.name, {}, x.assign)
                record.values = {n: self._chosen(condition, x.values[n], y.values[n], f"{x.name}.{n}")
                                 for n in x.values}
                merged[name] = record
            elif x is y:
                merged[name] = x
            else:
                try:
                    merged[name] = lists.get((id(x), id(y))) or self._chosen(condition, x, y, name)
                    if isinstance(x, list):
                        lists[id(x), id(y)] = merged[name]
                except SplitJoinError as error:
                    raise self._located(error, node) from None
        return merged

    def _assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name():
                self._env[target.id] = self._places.kept(value, target.id) if isinstance(value, Value) else value
            case ast.Tuple() | ast.List() if not any(isinstance(t, ast.Starred) for t in target.elts):
                items = list(value) if isinstance(value, (list, tuple)) else None
                if items is None or len(items) != len(target.elts):
                    self._refuse(target, f"{len(target.elts)} values are needed here")
                for part, item in zip(target.elts, items or (), strict=True):
                    self._assign(part, item)
            case ast.Attribute():
                record = self._record(target)
                self._store(record, target, target.attr, value)
            case ast.Subscript(value=ast.Attribute() as attribute):
                record = self._record(attribute)
                self._store_at(record, target, attribute.attr, self._value(target.slice), value)
            case ast.Subscript(value=ast.Name() as name) if isinstance(self._value(name), list):
                items = self._env[name.id]
                items[:] = self._replaced(target, items, self._value(target.slice), value, name.id)
            case _:
                self._refuse(target, "names, attributes of self, and items of its tuples and of lists are assigned to")

    def _update(self, node: ast.AugAssign, target: ast.Subscript, index: Value) -> None:
        """Let the item at ``index`` of a tuple of a state, or of a list, be changed by ``node``: each by itself, so
        that none is picked from the others first.
        """
        of, change = self._value(target.value), self._value(node.value)
        self._refuse_struct(target, of)
        items = self._items(target, of)
        chosen = self._index(target, index, len(items))
        new = [self._places.kept(where(chosen == n, self._binary(node, node.op, old, change), old))
               for n, old in enumerate(items)]
        if isinstance(target.value, ast.Name) and isinstance(of, list):
            of[:] = new
        else:
            self._assign(target.value, new)

    def _refuse_struct(self, node: ast.AST, items: Any) -> None:
        if isinstance(items, Struct):
            self._refuse(node, f"a named tuple is assigned as a whole: {items.of.__name__}(…), or _replace(…) of it")

    def _record(self, node: ast.Attribute) -> StateRecord:
        record = self._value(node.value)
        self._refuse_struct(node, record)
        if not isinstance(record, StateRecord) or record.assign is None:
            self._refuse(node, f"only attributes of self are assigned to, not those of {self._source.text(node.value)}")
        if node.attr not in record.values:
            self._refuse(node, unknown(record, node.attr))
        return record  # type: ignore[no-any-return]  # a Record, as checked

    def _store(self, record: StateRecord, node: ast.AST, name: str, value: Any) -> None:
        assert record.assign is not None
        old = record.values[name]
        at = f"{record.name}.{name}"
        if isinstance(old, list):
            if not isinstance(value, (list, tuple)) or len(value) != len(old):
                self._refuse(node, f"{at} is a tuple of {len(old)} numbers, and so must be what is assigned to it")
            names = zip(item_names(name, old), item_names(at, old), value, strict=True)
            record.values[name] = like(old, [record.assign(slot, v, of) for slot, of, v in names])
        else:
            if isinstance(value, (list, tuple)) or value is None:
                self._refuse(node, f"{at} is a number, and so must be what is assigned to it")
            record.values[name] = record.assign(name, value, at)

    def _store_at(self, record: StateRecord, node: ast.Subscript, name: str, index: Any, value: Any) -> None:
        assert record.assign is not None
        old, at = self._items(node, record.values[name]), f"{record.name}.{name}"
        self._refuse_struct(node, record.values[name])
        if isinstance(index, int):
            chosen = self._index(node, index, len(old))
            old[chosen] = record.assign(f"{name}[{chosen}]", value, f"{at}[{chosen}]")
            record.values[name] = old
            return
        new = self._replaced(node, old, index, value, at)
        record.values[name] = [x if x is y else record.assign(f"{name}[{n}]", x, f"{at}[{n}]")
                               for n, (x, y) in enumerate(zip(new, old, strict=True))]

    def _replaced(self, node: ast.Subscript, items: Sequence[Any], index: Any, value: Any, at: str) -> list[Any]:
        """``items``, called ``at``, with ``value`` in place of the one at ``index``."""
        self._refuse_struct(node, items)
        chosen = self._index(node, index, len(items))
        if isinstance(value, Value):
            value = self._places.kept(value, at)
        if isinstance(chosen, int):
            return [value if n == chosen else old for n, old in enumerate(items)]
        return [self._places.kept(where(chosen == n, value, old), f"{at}[{n}]") for n, old in enumerate(items)]


def _copied(env: dict[str, Any]) -> dict[str, Any]:
    """``env`` with states of its own."""
    copy, lists = dict(env), dict[int, list[Any]]()
    for name, value in env.items():
        if isinstance(value, list):  # two names of one list stay so
            copy[name] = lists.setdefault(id(value), like(value, value))
        if isinstance(value, StateRecord):
            values = {n: like(v, v) if isinstance(v, list) else v for n, v in value.values.items()}
            copy[name] = StateRecord(value.name, values, value.assign)
    return copy


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Attribute():
            return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target
