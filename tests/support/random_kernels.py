"""Random typed functions, and classes with a state, for `splitjoin.hls`: their source, and what Python makes of it."""

from __future__ import annotations

import linecache
import random
from collections.abc import Sequence
from typing import Any

from splitjoin import hls


class _Writer:
    """Writes the text of a function, or of a class with ``step``."""

    def __init__(self, rng: random.Random):
        self.rng, self.names, self.small = rng, list[str](), list[str]()
        #: Tuples of a state, and a constant one: their numbers and bits.
        self.tuples: dict[str, tuple[int, int]] = {}

    def number(self, depth: int) -> str:
        """A whole number."""
        rng = self.rng
        kind = rng.randrange(13 if depth else 2)
        if kind == 0:
            return str(rng.randint(-20, 20))
        if kind == 1 or not depth:
            return rng.choice(self.names)
        a, b = self.number(depth - 1), self.number(depth - 1)
        if kind <= 4:
            return f"({a} {rng.choice('+-*')} {b})"
        if kind == 5:
            return f"{rng.choice(['min', 'max'])}({a}, {b})"
        if kind == 6:
            return f"({a} if {self.condition(depth - 1)} else {b})"
        if kind == 7:
            return f"(({a}) {rng.choice(['>>', '<<'])} {rng.choice([*self.small, '0', '1', '3'])})"
        if kind == 8:
            return f"(({a} & 0xffff) {rng.choice('&|^')} ({b} & 0xff))"
        if kind == 9:
            return f"abs({a})"
        if kind == 10:
            return f"(({a} & 0xffff) {rng.choice(['//', '%'])} {rng.choice([1, 2, 3, 7, 10, 16, 100])})"
        if kind == 11:
            return f"(max(min({a}, 500), -500) {rng.choice(['//', '%'])} max({b} & 63, 1))"
        return f"(({a}) & {rng.randint(1, 63)})"

    def place(self, name: str, depth: int) -> str:
        """A place of a tuple."""
        size = self.tuples[name][0]
        place = self.number(depth)
        return f"({place}) & {size - 1}" if size & size - 1 == 0 else f"min(({place}) & {2 * size - 1}, {size - 1})"

    def store(self, indent: str, name: str) -> list[str]:
        """A number of a tuple is assigned, or changed, at times under a condition."""
        place, mask = self.place(name, 1), (1 << self.tuples[name][1]) - 1
        value = self.number(1)
        if self.rng.random() < 0.4:
            value = f"{name}[{place}] + {value}"
        line = f"{name}[{place}] = {value} & {mask}"
        return [f"{indent}if {self.condition(1)}:", f"{indent}    {line}"] if self.rng.random() < 0.4 else [
            f"{indent}{line}"]

    def condition(self, depth: int) -> str:
        """A condition."""
        rng = self.rng
        one = f"{self.number(depth)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.number(depth)}"
        more = rng.choice(["", "", "and", "or", "not"])
        if more == "not":
            return f"(not {one})"
        return f"({one} {more} {self.condition(max(depth - 1, 0))})" if more and depth else f"({one})"

    def statements(self, indent: str, depth: int, targets: Sequence[str]) -> list[str]:
        """Assignments, choices, and a loop at times."""
        rng, lines = self.rng, []
        for _ in range(rng.randint(1, 2)):
            lines.append(f"{indent}{rng.choice(targets)} = {self.number(2)} & {rng.choice([15, 255, 4095])}")
        if depth and rng.random() < 0.6:
            lines.append(f"{indent}if {self.condition(1)}:")
            lines += self.statements(indent + "    ", depth - 1, targets)
            if rng.random() < 0.5:
                lines.append(f"{indent}else:")
                lines += self.statements(indent + "    ", depth - 1, targets)
        if depth and rng.random() < 0.3:
            rounds, target = rng.randint(2, 3), rng.choice(targets)
            if rng.random() < 0.5:
                lines.append(f"{indent}for n in range({rounds}):")
            else:
                lines += [f"{indent}n = -1", f"{indent}while n < {rounds - 1} and {self.condition(1)}:",
                          f"{indent}    n += 1"]
            lines.append(f"{indent}    {target} = ({target} + {self.number(1)} + n) & 1023")
            if rng.random() < 0.3:
                lines += [f"{indent}    for m in range(2):", f"{indent}        if {self.condition(0)}:",
                          f"{indent}            break", f"{indent}        {target} = {target} * 3 + m & 511"]
            if rng.random() < 0.5:
                lines += [f"{indent}    if {self.condition(1)}:",
                          f"{indent}        {rng.choice(['break', 'continue'])}",
                          f"{indent}    {target} = ({target} ^ {rng.randint(1, 255)}) & 1023"]
        return lines


def random_kernel(seed: int) -> Any:
    """A function, or a class with a state, which may return None and may return two numbers."""
    rng = random.Random(seed)
    w = _Writer(rng)
    widths = {name: rng.choice(["signed(4)", "unsigned(5)", "signed(9)", "unsigned(12)"]) for name in "xy"[
        :rng.randint(1, 2)]}
    widths["k"] = "unsigned(2)"
    w.names, w.small = list(widths), ["k"]
    is_class = rng.random() < 0.4
    own = "self.TABLE_table"  # which a memory for TABLE would be named, too
    lines, indent, targets = [], "    ", ["a", "b"]
    # Of a generator of its own, so that the programs of other seeds stay the same.
    of_tuples = random.Random(f"tuples {seed}")
    table = of_tuples.choice([1025, 1500, 2048]) if of_tuples.random() < 0.15 else 0
    size = of_tuples.choice([16, 20, 32, 1040, 1500, 2048]) if is_class and of_tuples.random() < 0.5 else 0
    if is_class:
        lines += ["class Random:", "    u: unsigned(12)", "    v: unsigned(12)"]
        if rng.random() < 0.5:
            lines += ["    def init(self):", f"        self.u = {rng.randint(0, 4095)}"]
        targets += ["self.u", "self.v"]
        indent = "        "
        if size:
            w.tuples[own] = size, of_tuples.choice([3, 8, 12])
            lines.insert(1, f"    {own[5:]}: (unsigned({w.tuples[own][1]}),) * {size}")
    if table:
        w.tuples["TABLE"] = table, 9
    of = ", ".join(f"{name}: {width}" for name, width in widths.items())
    lines.append(f"    def step(self, {of}):" if is_class else f"def Random({of}):")
    lines += [f"{indent}a = {rng.randint(0, 9)}", f"{indent}b = {w.number(1)}"]
    w.names += targets
    # What is read at some places is as good as other names, before what is written and behind it.
    w.names += [f"{name}[{w.place(name, 1)}]" for name in w.tuples]
    lines += w.statements(indent, 2, targets)
    if size:
        lines += w.store(indent, own) + w.statements(indent, 0, targets)
    if rng.random() < 0.3:
        lines += [f"{indent}if x > 1 and {w.condition(1)}:",
                  f"{indent}    return {'None' if is_class else w.number(1)}"]
        lines.append(f"{indent}return {w.number(2)}")
    else:
        lines.append(f"{indent}return {w.number(2)}{f', {w.number(1)}' if rng.random() < 0.3 else ''}")
    text = "\n".join(lines) + "\n"
    file = f"<random kernel {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"signed": hls.signed, "unsigned": hls.unsigned, "__name__": __name__,
                             "TABLE": tuple(of_tuples.randint(-200, 311) for _ in range(table))}
    exec(compile(text, file, "exec"), space)
    return hls.kernel(space["Random"]) if is_class else space["Random"]


def operands(fn: Any, n: int, seed: int) -> list[dict[str, Any]]:
    """Random operands of ``fn`` by the names of its parameters, the ends of their ranges among them."""
    from splitjoin.hls.kernels import compiled

    rng = random.Random(seed)

    def one(low: int, high: int) -> int:
        return rng.choice([low, high, rng.randint(low, high), rng.randint(max(low, -3), min(high, 3))])

    def value(port: Any) -> Any:
        numbers = [one(*width.range) for width in port.field.widths]
        return port.field.struct(*numbers) if port.field.struct else numbers if port.field.names else numbers[0]

    return [{p.name: value(p) for p in compiled(fn).inputs} for _ in range(n)]


def results(fn: Any, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """What Python gives for ``rows``, one after the other, without None."""
    call = fn().step if isinstance(fn, type) else fn
    return [value for row in rows if (value := call(**row)) is not None]
