"""Text of what processes assign: one expression where it holds at once, statements where a clock edge decides."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from .expressions import Expression, complement, concatenation, ternary
from .rtlil import Assign, Signal, Statement, Switch, SwitchCase, assignments, sliced, width_of

_Reader = Callable[[Signal], Expression]
#: Characters of an expression that may stand at several places.
_SHORT = 24


def chosen(body: list[Statement], width: int, read: _Reader, named: Callable[[Expression, int], Expression],
           ) -> Expression:
    """Expression for the value that ``body`` assigns to its target of ``width`` bits.

    ``read`` gives the text of a value. ``named`` gives a value a wire, for values that stand at several places.
    """
    targets = [assign.target[0] for assign in assignments(body)]
    cuts = sorted({0, width}.union(*((chunk.low, chunk.low + chunk.width) for chunk in targets)))
    folder = _Folder(read, named, several=len(cuts) > 2)
    parts = []
    for low, end in itertools.pairwise(cuts):
        value = folder.fold(body, low, end - low, None)
        assert value is not None, "a process assigns every bit, before all choices"
        parts.append(value)
    return concatenation(parts)


class _Folder:
    """Turns statements into nested conditional expressions."""

    def __init__(self, read: _Reader, named: Callable[[Expression, int], Expression], *, several: bool):
        self._read, self._named, self._several = read, named, several
        self._selects: dict[Signal, Expression] = {}

    def fold(self, body: list[Statement], low: int, width: int, value: Expression | None) -> Expression | None:
        """Expression for the target's bits from ``low`` on after ``body``, if they were ``value`` before."""
        for statement in body:
            if isinstance(statement, Assign):
                chunk, = statement.target
                if chunk.low <= low and low + width <= chunk.low + chunk.width:
                    value = self._read(sliced(statement.value, low - chunk.low, width))
            elif any(assign.target[0].low <= low < assign.target[0].low + assign.target[0].width
                     for assign in assignments([statement])):
                value = self._switch(statement, low, width, value)
        return value

    def _switch(self, switch: Switch, low: int, width: int, value: Expression | None) -> Expression:
        if value is not None and len(value.text) > _SHORT:
            value = self._named(value, width)
        result = value
        arms: list[tuple[Expression, Expression]] = []
        for case in switch.cases:
            inner = self.fold(case.body, low, width, value)
            assert inner is not None
            if not case.patterns or not switch.select:
                result = inner
                break
            arms.append((self.matches(switch, case.patterns), inner))
        if result is None:  # the cases are all that there are
            result = arms.pop()[1]
        for condition, inner in reversed(arms):
            result = inner if inner == result else ternary(condition, inner, result)
        return result

    def matches(self, switch: Switch, patterns: tuple[str, ...]) -> Expression:
        """Condition that one of ``patterns`` matches the value ``switch`` selects by."""
        tests = [self._match(switch, pattern) for pattern in patterns]
        if len(tests) == 1:
            return tests[0]
        return Expression(" | ".join(test.within("|") for test in tests), "|")

    def _match(self, switch: Switch, pattern: str) -> Expression:
        bits = [n for n, bit in enumerate(reversed(pattern)) if bit != "-"]
        if not bits:
            return Expression("1'b1")
        if len(bits) == len(pattern):
            select = self._select(switch)
            if pattern in ("0", "1"):
                return select if pattern == "1" else complement(select)
        else:
            select = concatenation([self._read(sliced(switch.select, n, 1)) for n in bits])
        text = "".join(pattern[-1 - n] for n in reversed(bits))
        if len(text) == 1:
            return select if text == "1" else complement(select)
        return Expression(f"{select.within('==')} == {len(text)}'b{text}", "==")

    def _select(self, switch: Switch) -> Expression:
        """The text of what a switch selects by; a name if it stands at several places."""
        if switch.select not in self._selects:
            select = self._read(switch.select)
            if select.operator and (self._several or len(switch.cases) > 1 or len(switch.cases[0].patterns) > 1):
                select = self._named(select, width_of(switch.select))
            self._selects[switch.select] = select
        return self._selects[switch.select]


def reset_of(body: list[Statement], width: int) -> tuple[Signal, Signal, list[Statement]] | None:
    """The reset of a register, its value then, and the statements otherwise; None if it has none."""
    last = body[-1]
    if not isinstance(last, Switch) or width_of(last.select) != 1 or len(last.cases) != 1:
        return None
    case, = last.cases
    if case.patterns != ("1",) or len(case.body) != 1:
        return None
    assign = case.body[0]
    if not isinstance(assign, Assign) or any(chunk.wire is not None for chunk in assign.value):
        return None
    chunk, = assign.target
    return (last.select, assign.value, body[:-1]) if (chunk.low, chunk.width) == (0, width) else None


def clocked(bodies: list[list[Statement]], names: dict[str, str], widths: dict[str, int], read: _Reader) -> list[str]:
    """Lines of what registers get at a clock edge. ``names``, ``widths``: identifier and width of each target.

    Registers do not depend on the order in which others are assigned, so those with the same condition stand together.
    """
    lines: list[str] = []
    switches: dict[tuple[Signal, tuple[tuple[str, ...], ...]], list[list[list[Statement]]]] = {}
    apart: list[list[Statement]] = []
    for body in bodies:
        while body and isinstance(body[0], Assign):
            lines += _assign(body[0], names, widths, read)
            body = body[1:]
        if len(body) == 1 and isinstance(body[0], Switch):
            switch = body[0]
            key = switch.select, tuple(case.patterns for case in switch.cases)
            switches.setdefault(key, []).append([case.body for case in switch.cases])
        elif body:
            apart.append(body)
    for (select, patterns), cases in switches.items():
        lines += _switch(select, patterns, [list(column) for column in zip(*cases, strict=True)], names, widths, read)
    for body in apart:
        for statement in body:
            lines += clocked([[statement]], names, widths, read)
    return lines


def _assign(statement: Assign, names: dict[str, str], widths: dict[str, int], read: _Reader) -> list[str]:
    chunk, = statement.target
    assert chunk.wire is not None
    name, whole = names[chunk.wire], widths[chunk.wire]
    where = "" if chunk.width == whole else (
        f"[{chunk.low}]" if chunk.width == 1 else f"[{chunk.low + chunk.width - 1}:{chunk.low}]")
    return [f"{name}{where} <= {read(statement.value).text};"]


def _switch(select: Signal, patterns: tuple[tuple[str, ...], ...], bodies: list[list[list[Statement]]],
            names: dict[str, str], widths: dict[str, int], read: _Reader) -> list[str]:
    """Lines of a choice. ``bodies``: of each case, the statements of every register."""
    inner = [["  " + line for line in clocked([list(body) for body in case], names, widths, read)] for case in bodies]
    if not select:  # without a choice
        return [line for case in inner[:1] for line in (text.removeprefix("  ") for text in case)]
    if width_of(select) == 1 and all(len(some) <= 1 for some in patterns) and patterns[0] in (("1",), ("0",)):
        condition = read(select)
        test = condition.text if patterns[0] == ("1",) else complement(condition).text
        if len(inner) == 1 or not inner[1]:
            return [f"if ({test}) begin", *inner[0], "end"] if inner[0] else []
        if not inner[0]:
            test = complement(condition).text if patterns[0] == ("1",) else condition.text
            return [f"if ({test}) begin", *inner[1], "end"]
        return [f"if ({test}) begin", *inner[0], "end else begin", *inner[1], "end"]
    if any("-" in pattern for some in patterns for pattern in some):
        return _priorities(select, patterns, inner, read)
    lines = [f"case ({read(select).text})"]
    for some, body in zip(patterns, inner, strict=True):
        label = ", ".join(f"{width_of(select)}'b{pattern}" for pattern in some) or "default"
        lines += [f"  {label}: begin", *("  " + line for line in body), "  end"] if body else [f"  {label}: ;"]
    return [*lines, *([] if () in patterns else ["  default: ;"]), "endcase"]


def _priorities(select: Signal, patterns: tuple[tuple[str, ...], ...], inner: list[list[str]],
                read: _Reader) -> list[str]:
    """Lines of a choice whose cases may overlap: the first that matches happens."""
    while inner and not inner[-1]:  # nothing happens in the last case, nor if there is none
        inner = inner[:-1]
    folder = _Folder(read, lambda value, width: value, several=False)
    lines: list[str] = []
    for some, body in zip(patterns, inner, strict=False):
        word = "end else" if lines else ""
        if some:
            condition = folder.matches(Switch(select, [SwitchCase(some)]), some)
            word += f"{' ' if word else ''}if ({condition.text})"
        elif not lines:
            return [line.removeprefix("  ") for line in body]
        lines += [f"{word} begin", *body]
        if not some:
            break
    return [*lines, "end"] if lines else []
