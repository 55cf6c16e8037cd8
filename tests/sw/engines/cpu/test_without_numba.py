"""The device cpu without numba, which sessions and tables need for nothing: NumPy evaluates what would be compiled, and
what only numba does is refused in words.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import ToolError

#: What runs where numba cannot be imported, or where it must not be; prints what each of them answers beside the
#: reference.
SCRIPT = """
import sys
if sys.argv[1] == "without":
    sys.modules["numba"] = sys.modules["psutil"] = None
import pyarrow as pa
import splitjoin
from splitjoin.engines.cpu import CpuDevice

r = pa.table({"ts": [1, 2, 3, 4], "x": [1, 2, 2, 3], "y": [0.5, 0.1, float("nan"), 1e300]})
s = pa.table({"ts": [1, 2, 3, 4], "a": [1, 2, 2, 5], "b": [0.5, 0.1, 0.2, 1e300]})
cases = [{"on": "r.x = s.a"}, {"on": "abs(r.y - s.b) <= 0.25", "order": "inner(1)"},
         {"on": "r.x <> s.a", "how": "left"}, {"on": "r.x = s.a", "how": "asof_left"},
         {"on": "r.y < s.b AND r.x + s.a > 3"},
         {"on": "r.x BETWEEN s.a - 1 AND s.a + 1 OR r.y = s.b", "order": "outer(2)"},
         {"on": "r.x * s.a % 5 = 4", "order": "outer(2)"}]
if sys.argv[1] == "without":

    @splitjoin.aggregate
    class Total:
        total: splitjoin.unsigned(16)

        def add(self, x: splitjoin.unsigned(8)):
            self.total += x

        def result(self):
            return self.total

    cases.append({"on": "r.x <= s.a", "how": "left",
                  "aggregate": {"n": "count(*)", "m": "sum(s.b)", "t": Total("s.a")}})
for how in cases:
    found = [splitjoin.join(r, s, window="RANGE 3", time="ts", device=d, **how) for d in ("cpu", "golden")]
    assert repr(found[0].to_pylist()) == repr(found[1].to_pylist()), how
    assert found[0].num_rows, how
    query = splitjoin.query(r.schema, s.schema, window="RANGE 3", time="ts", **how)
    rows = []
    for device in ("cpu", "golden"):
        with splitjoin.open(query, device) as session:
            session.push_r(r)
            session.push_s(s)
            rows.append(repr(session.flush().to_pylist()))
    assert rows[0] == rows[1], how
for engine in ("index", "sorted", "nested"):
    found = splitjoin.join(r, s, on="r.x >= s.a AND r.y <= s.b", window="ROWS 2", device=CpuDevice(engine=engine))
    print(found.num_rows)
print(splitjoin.sql("SELECT count(*) AS n FROM r JOIN s ON r.x = s.a", r=r, s=s).to_pylist())
print(splitjoin.join(r, s, on="r.x * s.a % 5 = 4", order="outer(1)").plan.partition(";")[0])
print([name for name in sys.modules if name.startswith(("numba", "llvmlite", "psutil")) and sys.modules[name]])
"""


@pytest.mark.parametrize("how", ["without", "with"])
def test_tables_sessions_and_statements_import_no_compiler(how: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, how], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    why = "by NumPy as long as there are few pairs" if how == "with" else "by NumPy, as numba is not installed"
    assert done.stdout == f"""4
4
4
[{{'n': 5}}]
nested loops over the expression, {why}
[]
"""


@pytest.mark.parametrize(("how", "what", "instead"), [
    ({"engine": "sliding", "aggregate": {"n": "count(*)"}}, "engine='sliding'", "leave engine out")])
def test_what_needs_numba(how: dict[str, object], what: str, instead: str,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    table = pa.table({"x": [1]})
    with pytest.raises(ToolError, match=rf"^{what}.* needs the Python package 'numba', .* or {instead}"):
        splitjoin.join(table, table, on="r.x = s.x", **how)
    query = splitjoin.query(table.schema, table.schema, on="r.x = s.x", window="ROWS 3", aggregate={"n": "count(*)"})
    with pytest.raises(ToolError, match=r"^open_unsorted needs the Python package 'numba'"):
        splitjoin.open_unsorted(query, lateness=3)
