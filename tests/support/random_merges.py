"""Random classes for `splitjoin.aggregate` that have ``merge`` or ``remove``, or neither."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

from hypothesis import strategies as st

import splitjoin

_NUMBER = itertools.count()
#: What a state adds up, over the arguments x and y.
_TERMS = ("x", "y", "1", "x * y", "x * x", "x - y",
          "(x if x < y else 3)", "abs(x - 4)", "min(x, y)", "(x >> 1)", "(y & 3)")
_WIDTHS = ("signed(9)", "signed(14)", "signed(20)", "unsigned(16)", "fixed(20, 4)")


@st.composite
def random_merges(draw: Any) -> Any:
    """A compiled class with one to three states, sums or extremes; some leave their widths at times."""
    lines, add, merge, remove, result = [], [], [], [], []
    sums_only = draw(st.booleans())
    for n in range(draw(st.integers(1, 3))):
        name, term = f"self.v{n}", draw(st.sampled_from(_TERMS))
        width = draw(st.sampled_from(_WIDTHS))
        lines.append(f"    v{n}: {width}")
        if sums_only or draw(st.booleans()):
            op = draw(st.sampled_from("++-"))
            if draw(st.integers(0, 3)) == 0:
                add += ["        if x > y:", f"            {name} {op}= {term}"]
                remove += ["        if x > y:", f"            {name} {'-' if op == '+' else '+'}= {term}"]
            else:
                add.append(f"        {name} {op}= {term}")
                remove.append(f"        {name} {'-' if op == '+' else '+'}= {term}")
            merge.append(f"        {name} += other.v{n}")
        else:
            chosen = draw(st.sampled_from(["min", "max"]))
            add.append(f"        {name} = {chosen}({name}, min(max({term}, 0), 31))")
            merge.append(f"        {name} = {chosen}({name}, other.v{n})")
        result.append(name)
    has_extremes = any("= min(self" in line or "= max(self" in line for line in add)
    ways = draw(st.sampled_from(["merge", "both", "none"] if not has_extremes else ["merge", "merge", "none"]))
    arguments = f"x: {draw(st.sampled_from(['signed(4)', 'unsigned(5)']))}, y: signed(6)"
    lines += [f"    def add(self, {arguments}):", *add]
    if ways != "none" and draw(st.booleans()) | has_extremes:
        lines += ["    def merge(self, other):", *merge]
    if ways == "both":
        lines += [f"    def remove(self, {arguments}):", *remove]
    lines += ["    def result(self) -> fixed(30, 4):", f"        return {' + '.join(result)}"]
    text = "class Random:\n" + "\n".join(lines) + "\n"
    file = f"<random merge {next(_NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"signed": splitjoin.signed, "unsigned": splitjoin.unsigned, "fixed": splitjoin.fixed}
    exec(compile(text, file, "exec"), names)
    names["Random"].__module__ = __name__
    return splitjoin.aggregate(names["Random"])
