"""Random classes for `splitjoin.aggregate`: their source, and what Python itself makes of it."""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any, NamedTuple

from hypothesis import strategies as st

import splitjoin
from splitjoin.lang.fold import Width

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
                if not low <= Fraction(attrgetter(name)(state)) * 2**width.fraction <= high:
                    return "overflow"
        if not partners:
            return None
        value = self.plain.result(state)
        width = fold.width
        whole = math.floor(Fraction(value) * 2**width.fraction)
        low, high = width.range
        return Fraction(whole, 2**width.fraction) if low <= whole <= high else "overflow"


class Pair(NamedTuple):
    """A struct of a state."""

    x: splitjoin.signed(9)  # type: ignore[valid-type]
    y: splitjoin.unsigned(7)  # type: ignore[valid-type]


class _State:
    """A state whose attributes are rounded down to their widths as they are assigned."""

    def __init__(self, widths: dict[str, Width]):
        object.__setattr__(self, "widths", widths)
        for name in widths:
            object.__setattr__(self, *(("p", Pair(0, 0)) if name.startswith("p.") else (name, 0)))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "p":
            object.__setattr__(self, name, value)
            return
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
        places = draw(st.sampled_from(["0", "1", "3", f"({b} & 3)"]))
        return f"(({a if draw(st.booleans()) else 1}) {draw(st.sampled_from(['>>', '<<']))} {places})"
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
    """A class with one to four states, one in fixed point and a struct at times, one or two arguments, ``if``,
    ``while``, a local array, and early returns.
    """
    whole = [f"self.v{n}" for n in range(draw(st.integers(1, 2)))]
    arguments = ["x", "y"][:draw(st.integers(1, 2))]
    has_fixed, has_pair = draw(st.booleans()), draw(st.booleans())
    lines = [f"    {name[5:]}: {draw(st.sampled_from(['signed(9)', 'signed(20)', 'unsigned(7)', 'unsigned(16)']))}"
             for name in whole]
    lines += ["    f: fixed(24, 6)"] * has_fixed + ["    p: Pair"] * has_pair
    if draw(st.booleans()):
        lines += ["    def init(self):", *(f"        {name} = {draw(st.integers(0, 100))}" for name in whole)]
    widths = {a: draw(st.sampled_from(["signed(4)", "unsigned(5)", "signed(8)"])) for a in arguments}
    lines += [f"    def add(self, {', '.join(f'{a}: {w}' for a, w in widths.items())}):"]

    known = [*whole, *arguments, *["self.p.x", "self.p.y"] * has_pair]

    def statement(indent: str, depth: int) -> None:
        target = draw(st.sampled_from([*whole, *["self.f"] * has_fixed, *["self.p"] * has_pair]))
        value = _number(draw, known, 2)
        if depth and draw(st.integers(0, 3)) == 0:
            loop(indent)
        if target == "self.f":
            factor = draw(st.sampled_from([0.5, 0.125, 0.015625, 2]))
            lines.append(f"{indent}self.f += max(min(({value} - self.f) * {factor}, 500), -500)")
        elif target == "self.p":
            lines.append(f"{indent}self.p = Pair(max(min({value}, 200), -200), y=self.p.x & 63)" if draw(st.booleans())
                         else f"{indent}self.p = self.p._replace(y={value} & 127)")
        elif draw(st.integers(0, 3)):  # most stay within their width
            lines.append(f"{indent}{target} = max(min({value}, {draw(st.integers(64, 127))}), 0)")
        else:
            lines.append(f"{indent}{target} += {draw(st.sampled_from(arguments))}")
        if depth and draw(st.booleans()):
            lines.append(f"{indent}if {_condition(draw, known, 1)}:")
            statement(indent + "    ", depth - 1)
            if draw(st.booleans()):
                lines.append(f"{indent}else:")
                statement(indent + "    ", depth - 1)

    def loop(indent: str) -> None:
        lines.extend([f"{indent}n, t = 0, [0] * 3",
                      f"{indent}while n < {draw(st.integers(1, 3))} and {_condition(draw, known, 0)}:",
                      f"{indent}    t[{draw(st.sampled_from(arguments))} & 1] = {_number(draw, known, 1)}",
                      f"{indent}    {whole[0]} = ({whole[0]} + t[n] + n) & 63", f"{indent}    n += 1"])
        if draw(st.booleans()):
            lines.extend([f"{indent}    if {_condition(draw, known, 0)}:", f"{indent}        break",
                          f"{indent}    {whole[-1]} = max(min({whole[-1]} + t[1], 99), 0)"])

    for _ in range(draw(st.integers(1, 3))):
        statement("        ", 1)
        if draw(st.integers(0, 4)) == 0:
            lines += [f"        if {_condition(draw, known, 0)}:", "            return"]
    lines += ["    def result(self) -> fixed(48, 8):",
              f"        return {_number(draw, whole, 2)}{' + self.f' * has_fixed}"]
    text = "class Random:\n" + "\n".join(lines) + "\n"
    file = f"<random aggregate {next(_NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"signed": splitjoin.signed, "unsigned": splitjoin.unsigned, "fixed": splitjoin.fixed,
                             "Pair": Pair}
    exec(compile(text, file, "exec"), names)
    plain = names["Random"]
    plain.__module__ = __name__
    return RandomAggregate(splitjoin.aggregate(plain), plain, text)
