"""`splitjoin.aggregate` and `splitjoin.function`: what is refused, with the line, and what functions mean."""

from __future__ import annotations

import linecache
import math
import re
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError


class Pair(NamedTuple):
    """Two numbers of a state."""

    x: splitjoin.signed(8)  # type: ignore[valid-type]
    y: splitjoin.fixed(8, 2)  # type: ignore[valid-type]


#: The class around a method; its state, and its parameter x.
CLASS = """class Made:
    n: unsigned(8)
    f: fixed(16, 4)
    t: (unsigned(4),) * 3
    p: Pair

"""
RESULT = """
    def result(self):
        return self.n
"""
NAMES: dict[str, Any] = {"Pair": Pair, **{name: getattr(splitjoin, name) for name in (
    "signed", "unsigned", "fixed", "function")}}


def made(text: str, **options: Any) -> Any:
    """The class of ``text``, compiled."""
    file = f"<{abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = dict(NAMES)
    exec(compile(text, file, "exec", dont_inherit=True), names)
    found = names["Made"]
    return splitjoin.aggregate(**options)(found)


def add(*lines: str) -> str:
    """A class whose ``add`` has these lines."""
    return CLASS + "    def add(self, x: signed(8)):\n" + "".join(f"        {line}\n" for line in lines) + RESULT


@pytest.mark.parametrize(("lines", "message", "place"), [
    (["self.m = x"], "self has no 'm'; it has n, f, t, p", "self.m"),
    (["self.n = x * 0.5"], "'self.n' is unsigned(8), but what is assigned may have a fraction", "self.n = x * 0.5"),
    (["self.n = x / 2"], "'self.n' is unsigned(8), but float64 is assigned to it", "self.n = x / 2"),
    (["self.n = x // self.n"], "'self.n' must have a value, but what is assigned is NULL where a divisor is 0",
     "self.n = x // self.n"),
    (["self.n += 1", "self.t[x] = 1"], "an index must lie within 0 and 2, but this one can be -128 to 127", "x"),
    (["self.t[3] = 1"], "an index must lie within 0 and 2, not 3", "3"),
    (["self.t = (1, 2)"], "self.t is a tuple of 3 numbers", "self.t"),
    (["while x != 0:", "    x = x * 3 & 255"], "up to 256 rounds, and this one may have more", "while x != 0:"),
    (["while x > 0:", "    x = x >> 1", "else:", "    x = 0"], "'while' is not compiled", "while x > 0:"),
    (["self.p.x = x"], "a named tuple is assigned as a whole: Pair(…), or _replace(…) of it", "self.p.x"),
    (["self.p[0] = x"], "a named tuple is assigned as a whole", "self.p[0]"),
    (["self.n = self.p.z"], "Pair has no 'z'; it has x, y", "self.p.z"),
    (["self.p = Pair(x)"], "'Pair(x)' cannot be computed", "Pair(x)"),
    (["for i in range(x):", "    self.n = i"], "range needs numbers that are known before the run", "range(x)"),
    (["for i in range(1000):", "    self.n = i"], "a loop is unrolled, so it may have up to 256 rounds", "range(1000)"),
    (["if x:", "    self.n = 1"], "a condition must be a comparison, not a number; write x != 0", "x"),
    (["if x > 1:", "    y = x", "self.n = y"], "'y' has no value here, or has one in one branch of an if only", "y"),
    (["self.n = print(x)"], "'print' is not compiled", "print(x)"),
    (["self.n = x ** 2"], "a power is not compiled; write products", "x ** 2"),
    (["self.n = x << x"], "the number of places to shift by must be 0 to 63, but 'x' can be -128 to 127", "x << x"),
    (["self.n = self.f >> 1"], "shifts and bit operations need whole numbers", "self.f >> 1"),
    (["self.n = None"], "self.n is a number, and so must be what is assigned to it", "self.n"),
    (["return x"], "Made.add must return nothing", None),
    (["x.y = 1"], "only attributes of self are assigned to", "x.y"),
    (["self.n = x.real"], "a number has no attributes", "x.real"),
    (["a, b = x, 1, 2"], "2 values are needed here", "a, b"),
    (["self.n = [1, 2][x]"], "an index must lie within", "x"),
])
def test_what_is_not_compiled_is_refused_with_its_line(lines: list[str], message: str, place: str | None) -> None:
    text = add(*lines)
    with pytest.raises(PredicateError, match=re.escape(message)) as caught:
        made(text)
    if place is None:
        return
    said = str(caught.value).splitlines()
    assert re.fullmatch(r"  <\d+>, line \d+, in Made.add", said[-3])
    number = int(re.findall(r"line (\d+)", said[-3])[0])
    assert said[-2].strip() == text.splitlines()[number - 1].strip()
    marked = said[-2][said[-1].index("^"):len(said[-1])]
    assert place in (marked, said[-2].strip())
    assert str(caught.value).count(", line ") == 1


@pytest.mark.parametrize(("text", "message"), [
    ("class Made:\n    def add(self): pass\n", "Made must declare its state"),
    ("from typing import NamedTuple\nclass Wide(NamedTuple):\n    x: int\nclass Made:\n    n: Wide\n",
     "Wide.x must be annotated with splitjoin.signed"),
    ("class Made:\n    n: int\n", "Made.n must be annotated with splitjoin.signed"),
    ("class Made:\n    n: signed(8) = 7\n", r"Made.n must have no value but 0 where it is declared, not 7; the state"),
    ("class Made:\n    n: signed(8)\n", "Made must have the methods add and result"),
    (CLASS + "    def add(self, x):\n        pass\n" + RESULT, "parameter x of Made.add must be annotated"),
    (add("pass") + "    def merged(self):\n        pass\n", "Made.merged is not compiled; the methods are init"),
    (add("pass") + "    def init(self):\n        self.n = 256\n", "n must fit unsigned(8), but is 256"),
    (add("pass") + "    def merge(self):\n        pass\n", "Made.merge must have the parameters self and other"),
    (add("pass") + "    def remove(self, y: signed(8)):\n        pass\n", "must have the parameters of add"),
    (add("pass").replace("return self.n", "return self.t"), "Made.result must return one number"),
    (add("pass").replace("result(self)", "result(self) -> unsigned(8)").replace("self.n", "self.f"),
     "what it returns may have a fraction"),
    (add("pass").replace("result(self)", "result(self) -> str"), "must be annotated with splitjoin.signed"),
])
def test_a_class_that_cannot_be_an_aggregate_is_refused(text: str, message: str) -> None:
    with pytest.raises(PredicateError, match=re.escape(message)):
        made(text)


def test_a_method_may_return_early_and_widths_may_be_annotated_for_type_checkers() -> None:
    text = add("if x < 0:", "    return", "self.n += x") + "        # n\n"
    found = made(text.replace("x: signed(8)", "x: Annotated[int, signed(8)]").replace("class", (
        "from typing import Annotated\nclass"), 1)).fold
    run = found.add.evaluator()
    state = {"n": 3, "f": 0, "t[0]": 0, "t[1]": 0, "t[2]": 0, "p.x": 0, "p.y": 0}
    assert [run(state, {"x": x})[0] for x in (-1, 0, 5)] == [3, 3, 8]


@pytest.mark.parametrize("width", ["signed(1)", "unsigned(0)", "signed(65)", "fixed(8, 64)", "unsigned(2.5)"])
def test_widths_that_do_not_exist_are_refused(width: str) -> None:
    with pytest.raises(PredicateError, match="must have"):
        eval(width, dict(NAMES))


@pytest.mark.parametrize(("method", "message"), [
    ("def merge(self, other):\n        self.n = other.n", "Made: merge must give what add gives alone, but for the"),
    ("def merge(self, other):\n        self.n += other.n + 1", "the result is"),
    ("def remove(self, x: signed(8)):\n        self.n -= 2", "Made: remove, of the first partner, must give"),
])
def test_methods_that_differ_from_add_are_refused(method: str, message: str) -> None:
    with pytest.raises(PredicateError, match=re.escape(message)):
        made(add("self.n += 1") + "\n    " + method + "\n")


def test_a_merge_that_depends_on_the_order_must_say_so() -> None:
    text = add("self.n = x & 15") + "\n    def merge(self, other):\n        self.n = other.n\n"
    with pytest.raises(PredicateError, match="ordered=True"):
        made(text)


def test_functions_are_terms_of_python_conditions() -> None:
    r, s = pa.table({"x": [1, 5, None, 9]}), pa.table({"a": [4, 4, 4, 4]})
    found = splitjoin.join(r, s, on=lambda r, s: clipped(r.x - s.a, 2) > 0, window="ROWS 9", select=["x"]).table
    assert set(found["x"].to_pylist()) == {5, 9}
    assert str(splitjoin.query(r.schema, s.schema, on=lambda r, s: clipped(r.x, most=3) == s.a,
                               window="ROWS 1").predicate) == (
        "((CASE WHEN (r.x > 3) THEN 3 ELSE (CASE WHEN (r.x < -3) THEN -3 ELSE r.x END) END) = s.a)")
    assert [clipped(v, 2) for v in (-5, 0, 5)] == [-2, 0, 2]


@splitjoin.function
def clipped(value: Any, most: int) -> Any:
    """``value``, but within −most and most."""
    if value > most:
        return most
    return -most if value < -most else value


def test_functions_that_are_not_compiled_are_refused() -> None:
    with pytest.raises(PredicateError, match="must be a function that 'def' defines, not a lambda"):
        splitjoin.function(lambda x: x)
    with pytest.raises(PredicateError, match="nor themselves"):
        splitjoin.join(pa.table({"x": [1]}), pa.table({"a": [1]}), on=lambda r, s: endless(r.x) > 0, window="ROWS 1")


@splitjoin.function
def endless(x: Any) -> Any:
    """A function that calls itself."""
    return endless(x) + 1


@pytest.mark.parametrize(("call", "message"), [
    (("s.a", "s.a"), "Made takes 1 values (x), not 2"), (("s.f",), "x of 'Made(s.f)' must be signed(8), but"),
    (("s.t",), "is string"), ((1,), "the values of an aggregate must be texts"), (("s.zz",), "no column"),
])
def test_values_that_an_aggregate_cannot_take_are_refused(call: tuple[Any, ...], message: str) -> None:
    count = made(add("self.n += 1"))
    schema = pa.schema({"a": pa.int64(), "f": pa.float64(), "t": pa.string()})
    with pytest.raises(splitjoin.SplitJoinError, match=re.escape(message)):
        splitjoin.query(pa.schema({"x": pa.int64()}), schema, on="TRUE", window="ROWS 1", aggregate={"v": count(*call)})


def rooted(rounds: int, statement: str = "if") -> str:
    """A class whose result is the square root of the sum, digit by digit in so many ``rounds``."""
    step = {"if": """            if rest >= root + bit:
                rest = rest - (root + bit)
                root = (root >> 1) + bit
            else:
                root = root >> 1
""", "choice": """            fits = rest >= root + bit
            rest, root = (rest - root - bit if fits else rest), ((root >> 1) + bit if fits else root >> 1)
"""}[statement]
    return f"""class Made:
    n: unsigned(62)
    def add(self, x: unsigned(62)):
        self.n += x
    def result(self) -> unsigned(62):
        rest, root, bit = self.n, 0, 1 << 60
        for _ in range({rounds}):
{step}            bit = bit >> 2
        return min(max(root, 0), 2**62 - 1)
"""


@pytest.mark.parametrize("statement", ["if", "choice"])
def test_a_loop_of_choices_is_as_long_as_its_rounds(statement: str) -> None:
    """Each round uses the values of the one before several times."""
    fold = made(rooted(31, statement)).fold
    sizes = [len(made(rooted(rounds, statement)).fold.digest_text) for rounds in (8, 16, 31)]
    assert sizes[2] < 5 * sizes[0]
    for value in (0, 1, 3, 4, 10**9, 10**18, 2**62 - 1):
        assert fold.result.evaluator()({"n": value}, {}) == [math.isqrt(value)]
    whole = made(rooted(256, statement))
    r, s = pa.table({"k": [1, 2]}), pa.table({"a": [1, 1, 2], "v": [100, 2000, 5]})
    for device in ("golden", "cpu"):
        found = splitjoin.join(r, s, on="r.k = s.a", by="r", aggregate={"m": whole("s.v")}, device=device)
        assert found.to_pydict()["m"] == [0, 0]  # halved in every round


def test_errors_call_long_values_by_name() -> None:
    lines = ["y = x", "for _ in range(9):", "    if y > self.n:", "        y = y * 3 - self.n", "self.t[y] = 1"]
    with pytest.raises(PredicateError, match=r"an index must lie within 0 and 2") as caught:
        made(add("self.n += 1", *lines))
    assert len(str(caught.value)) < 1000
    with pytest.raises(PredicateError, match=r"'y' is not supported|y \*\* 2"):
        made(add("self.n += 1", *lines[:4], "self.n = y ** 2"))


@pytest.mark.parametrize("step", [
    "x = x * 2 if x > 3 else x - 1", "x = min(x + x // 3, 1000)", "x = (1, 2, 3)[min(max(x, 0), 2)] + x - x",
    "x = max(x & 7, x)"])
def test_a_function_whose_steps_double_is_refused(step: str) -> None:
    text = f"def doubled(x):\n    for _ in range(30):\n        {step}\n    return x\n"
    file = f"<{abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    doubled = splitjoin.function(names["doubled"])
    schema = pa.schema([("x", pa.int32())])
    with pytest.raises(PredicateError, match=r"(?s)must not have more than 100,000 operations .*x = "):
        splitjoin.query(schema, schema, on=lambda r, s: doubled(r.x) == s.x, window="ROWS 9")


def test_a_result_divided_by_a_sum_does_not_warn() -> None:
    """Warnings are errors in tests; laws are checked with states whose sums are 0."""
    made("""class Made:
    n: signed(32)
    def add(self, x: signed(8)):
        self.n += x
    def merge(self, other):
        self.n += other.n
    def result(self):
        return 1 / self.n
""")


def test_shapes_of_amaranth() -> None:
    amaranth = pytest.importorskip("amaranth")
    text = """class Made:
    n: {0}unsigned(12)
    t: ({0}signed(4),) * 3
    def add(self, x: Annotated[int, {0}signed(8)]):
        self.n += x
    def result(self) -> {0}unsigned(12):
        return self.n
"""
    NAMES.update(amaranth=amaranth, Annotated=Annotated)
    assert made(text.format("amaranth.")).fold == made(text.format("")).fold
    with pytest.raises(PredicateError, match=r"unsigned\(bits\) must have 1 to 64 bits, not 65"):
        made(text.format("amaranth.").replace("12", "65"))
