"""Compiled functions as generators, so that a seed chooses the order in which threads access what they share.

The functions are those of the source: each atomic access, and each look of a thread that waits, becomes a step of a
generator. So any interleaving can be run in one thread, which a sanitizer of threads cannot do for machine code.
"""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cache
from types import CodeType, ModuleType
from typing import Any

__all__ = ["Steps", "generators", "in_random_order"]

#: What a function that is interleaved gives: steps, and then its result.
Steps = Generator[None, None, Any]


def _load(array: Any, at: int) -> Steps:
    yield
    return int(array[at])


def _store(array: Any, at: int, value: int) -> Steps:
    yield
    array[at] = value


def _add(array: Any, at: int, value: int) -> Steps:
    yield
    before = int(array[at])
    array[at] = before + value
    return before


def _exchange(array: Any, at: int, expected: int, value: int) -> Steps:
    yield
    if array[at] != expected:
        return False
    array[at] = value
    return True


def _wait(*_: Any) -> Steps:
    yield


_ATOMIC: dict[str, Callable[..., Steps]] = {
    "atomic_load": _load, "atomic_store": _store, "atomic_add": _add, "atomic_exchange": _exchange, "relax": _wait,
    "yield_processor": _wait, "rest": _wait}


class _Yielding(ast.NodeTransformer):
    """Calls of ``names`` become `yield from` them."""

    def __init__(self, names: set[str]):
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._names:
            return ast.YieldFrom(node)
        return node


def generators(module: ModuleType, names: tuple[str, ...], *, fault: tuple[str, str] | None = None,
               **replaced: Any) -> Mapping[str, Callable[..., Steps]]:
    """The functions ``names`` of ``module`` as generators. ``fault``: a piece of its source, and what is there instead.
    ``replaced``: what other names of the module mean; those that are generator functions are steps, too.
    """
    steps = tuple(name for name, value in replaced.items() if inspect.isgeneratorfunction(value))
    space = {**vars(module), **_ATOMIC, **replaced}
    exec(_yielding(module, names, steps, fault), space)
    return {name: space[name] for name in names}


@cache
def _yielding(module: ModuleType, names: tuple[str, ...], steps: tuple[str, ...],
              fault: tuple[str, str] | None) -> CodeType:
    source = inspect.getsource(module)
    if fault is not None:
        assert source.count(fault[0]) == 1, f"{fault[0]!r} is not there once"
        source = source.replace(*fault)
    yielding = _Yielding({*_ATOMIC, *names, *steps})
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name in names]
    assert len(found) == len(names)
    for function in found:
        function.decorator_list = []
        yielding.visit(function)
    whole = ast.Module(body=list[ast.stmt](found), type_ignores=[])
    return compile(ast.fix_missing_locations(whole), module.__name__, "exec")


def in_random_order(threads: list[Iterator[None]], chance: random.Random) -> Iterator[None]:
    """Run ``threads`` to their ends in a random order of steps, and yield after some; at times some of them do not run,
    as others take their processors. Fails if they seem to wait for each other.
    """
    for _ in range(20_000):
        if not threads:
            return
        one = chance.choice(threads[:chance.randrange(1, len(threads) + 1)])
        for _ in range(chance.choice((1, 1, 3, 20))):
            if next(one, False) is False:
                threads.remove(one)
                break
        yield
    raise AssertionError("the threads wait for each other")
