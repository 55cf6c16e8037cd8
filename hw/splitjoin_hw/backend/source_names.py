"""Names of signals by the source text: the variable or attribute that a call's value is assigned to.

Amaranth guesses it from the instructions behind the call, which differ between releases of Python.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

from amaranth import tracer

from splitjoin.base.errors import ToolError
from splitjoin.base.threads import GlobalLock

#: The line and the byte in which a call ends, which is in no other call.
_End = tuple[int, int]
_lock = GlobalLock()
_REQUIRED = object()


@contextmanager
def source_names() -> Iterator[None]:
    """Within the block, Amaranth gives signals, memories and interfaces the names that the source gives them, and none
    where it gives none. One thread at a time.

    Raises `ToolError` in the block if Python keeps no positions in the source.
    """
    with _lock:
        guess = tracer.get_var_name
        tracer.get_var_name = _assigned_name
        try:
            yield
        finally:
            tracer.get_var_name = guess


def _assigned_name(depth: int = 2, default: Any = _REQUIRED) -> Any:
    """The name for the value of the call that the frame ``depth`` above is in. Takes the place of Amaranth's."""
    frame = sys._getframe(depth)
    code = frame.f_code
    end = _ends(code)[frame.f_lasti // 2]
    if end is None:
        raise ToolError(f"names in Verilog come from positions in the source, which Python must keep, but it has none "
                        f"of {code.co_filename}; run without -X no_debug_ranges and PYTHONNODEBUGRANGES, and remove "
                        f"the compiled file from its __pycache__")
    name = _names("".join(linecache.getlines(code.co_filename, frame.f_globals))).get(end, default)
    if name is _REQUIRED:
        raise tracer.NameNotFound
    return name


@lru_cache(maxsize=1024)
def _ends(code: CodeType) -> tuple[_End | None, ...]:
    """The end of the expression that each instruction belongs to; None where that is not known."""
    return tuple(None if line is None or column is None else (line, column)
                 for _, line, _, column in code.co_positions())


@lru_cache(maxsize=256)
def _names(source: str) -> dict[_End, str]:
    """The end of a call → the name that its value is assigned to."""
    found: dict[_End, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            _pair(node.targets, node.value, found)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            _pair([node.target], node.value, found)
    return found


def _pair(targets: list[ast.expr], value: ast.expr, found: dict[_End, str]) -> None:
    """Add to ``found`` the calls in ``value`` whose values ``targets`` get: each the first of them that has a name."""
    if isinstance(value, ast.IfExp):
        for one in (value.body, value.orelse):
            _pair(targets, one, found)
    elif isinstance(value, ast.Tuple):
        for several in targets:
            if isinstance(several, ast.Tuple) and len(several.elts) == len(value.elts):
                for target, one in zip(several.elts, value.elts, strict=True):
                    _pair([target], one, found)
    elif isinstance(value, ast.Attribute):
        _pair(targets, value.value, found)
    elif isinstance(value, ast.Call):
        named = [target.id if isinstance(target, ast.Name) else target.attr for target in targets
                 if isinstance(target, ast.Name | ast.Attribute)]
        if named:
            found[value.end_lineno or 0, value.end_col_offset or 0] = named[0]
