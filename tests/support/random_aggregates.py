"""Random classes for `splitjoin.aggregate`: their source, and what Python itself makes of it."""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import splitjoin
from splitjoin.lang.fold import Width

__all__ = ["RandomAggregate", "random_aggregates"]

_NUMBER = itertools.count()


@dataclass(frozen=True)
class RandomAggregate:
    """A class, compiled and as Python runs it. ``source``: its text."""

    compiled: Any
    plain: type
    source: str

    def values(self, partners: Sequence[Sequence[Fraction]]) -> Any:
        """The result after ``partners``, by Python itself: None for none, and "overflow" where a state has too many
        bits.
        """
        fold = self.compiled.fold
        state = _State({s.name: s.width for s in fold.slots})
        if hasattr(self.plain, "init"):
            self.plain.init(state)
        for partner in partners:
            self.plain.add(state, *partner)
            for name, width in state.widths.items():
                low, high = width.range
                if not low <= Fraction(getattr(state, name)) * 2**width.fraction <= high:
                    return "overflow"
        if not partners:
            return None
        value = self.plain.result(state)
        width = fold.width
        whole = math.floor(Fraction(value) * 2**width.fraction)
        low, high = width.range
        return Fraction(whole, 2**width.fraction) if low <= whole <= high else "overflow"


class _State:
    """A state whose attributes are rounded down to their widths as they are assigned."""

    def __init__(self, widths: dict[str, Width]):
        object.__setattr__(self, "widths", widths)
        for name in widths:
            object.__setattr__(self, name, 0)

    def __setattr__(self, name: str, value: Any) -> None:
        per = 2**self.widths[name].fraction
        exact = Fraction(math.floor(Fraction(value) * per), per)
        object.__setattr__(self, name, int(exact) if exact.denominator == 1 else exact)


def _number(draw: Any, names: Sequence[str], depth: int) -> str:
    """The text of a whole number of ``names``."""
    kind = draw(st.integers(0, 9 if depth else 1))
    if kind == 0:
        return str(draw(st.integers(-20, 20)))
    if kind <= 2 or not depth:
        return draw(st.sampled_from(names))
    a, b = (_number(draw, names, depth - 1) for _ in range(2))
    if kind <= 5:
        return f"({a} {draw(st.sampled_from('+-*'))} {b})"
    if kind == 6:
        return f"{draw(st.sampled_from(['min', 'max']))}({a}, {b})"
    if kind == 7:
        return f"({a} if {_condition(draw, names, depth - 1)} else {b})"
    if kind == 8:
        return f"(({a}) {draw(st.sampled_from(['>>', '<<']))} {draw(st.integers(0, 3))})"
    by = draw(st.sampled_from(["1", "3", "10", "16", f"(abs({b}) + 1)"]))
    divided = f"({a} {draw(st.sampled_from(['//', '%']))} {by})"
    return draw(st.sampled_from([f"abs({a})", f"(-{a})", f"(({a}) & {draw(st.integers(1, 63))})", divided]))


def _condition(draw: Any, names: Sequence[str], depth: int) -> str:
    a, b = (_number(draw, names, depth) for _ in range(2))
    one = f"{a} {draw(st.sampled_from(['<', '<=', '>', '>=', '==', '!=']))} {b}"
    more = draw(st.sampled_from(["", "", "and", "or", "not"]))
    if more == "not":
        return f"(not {one})"
    return f"({one} {more} {_condition(draw, names, max(depth - 1, 0))})" if more and depth else f"({one})"


@st.composite
def random_aggregates(draw: Any) -> RandomAggregate:
    """A class with one to three states, one in fixed point at times, one or two arguments, and ``if``."""
    whole = [f"self.v{n}" for n in range(draw(st.integers(1, 2)))]
    arguments = ["x", "y"][:draw(st.integers(1, 2))]
    has_fixed = draw(st.booleans())
    lines = [f"    {name[5:]}: {draw(st.sampled_from(['signed(9)', 'signed(20)', 'unsigned(7)', 'unsigned(16)']))}"
             for name in whole]
    lines += ["    f: fixed(24, 6)"] * has_fixed
    if draw(st.booleans()):
        lines += ["    def init(self):", *(f"        {name} = {draw(st.integers(0, 100))}" for name in whole)]
    widths = {a: draw(st.sampled_from(["signed(4)", "unsigned(5)", "signed(8)"])) for a in arguments}
    lines += [f"    def add(self, {', '.join(f'{a}: {w}' for a, w in widths.items())}):"]

    def statement(indent: str, depth: int) -> None:
        target = draw(st.sampled_from([*whole, *(["self.f"] * has_fixed)]))
        value = _number(draw, [*whole, *arguments], 2)
        if target == "self.f":
            factor = draw(st.sampled_from([0.5, 0.125, 0.015625, 2]))
            lines.append(f"{indent}self.f += max(min(({value} - self.f) * {factor}, 500), -500)")
        elif draw(st.integers(0, 3)):  # most stay within their width
            lines.append(f"{indent}{target} = max(min({value}, {draw(st.integers(64, 127))}), 0)")
        else:
            lines.append(f"{indent}{target} += {draw(st.sampled_from(arguments))}")
        if depth and draw(st.booleans()):
            lines.append(f"{indent}if {_condition(draw, [*whole, *arguments], 1)}:")
            statement(indent + "    ", depth - 1)
            if draw(st.booleans()):
                lines.append(f"{indent}else:")
                statement(indent + "    ", depth - 1)

    for _ in range(draw(st.integers(1, 3))):
        statement("        ", 1)
    lines += ["    def result(self) -> fixed(48, 8):",
              f"        return {_number(draw, whole, 2)}{' + self.f' * has_fixed}"]
    text = "class Random:\n" + "\n".join(lines) + "\n"
    file = f"<random aggregate {next(_NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"signed": splitjoin.signed, "unsigned": splitjoin.unsigned, "fixed": splitjoin.fixed}
    exec(compile(text, file, "exec"), names)
    plain = names["Random"]
    plain.__module__ = __name__
    return RandomAggregate(splitjoin.aggregate(plain), plain, text)
