"""The device cpu without numba: NumPy joins, and what only compiled loops do is refused in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import ToolError

#: What runs where numba cannot be imported; prints whether each answer is that of the reference.
SCRIPT = """
import sys
sys.modules["numba"] = None
import pyarrow as pa
import splitjoin

@splitjoin.aggregate
class Total:
    total: splitjoin.unsigned(16)

    def add(self, x: splitjoin.unsigned(8)):
        self.total += x

    def result(self):
        return self.total

r = pa.table({"ts": [1, 2, 3, 4], "x": [1, 2, 2, 3], "y": [0.5, 0.1, float("nan"), 1e300]})
s = pa.table({"ts": [1, 2, 3, 4], "a": [1, 2, 2, 5], "b": [0.5, 0.1, 0.2, 1e300]})
totals = {"n": "count(*)", "m": "sum(s.b)", "t": Total("s.a")}
for how in ({"on": "r.x = s.a"}, {"on": "r.y < s.b AND r.x + s.a > 3"}, {"on": "r.x <> s.a", "order": "outer(2)"},
            {"on": "r.x = s.a", "how": "asof_left"}, {"on": "r.x <= s.a", "how": "left", "aggregate": totals}):
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
print(splitjoin.join(r, s, on="r.x = s.a", order="outer(1)").plan)
"""


def test_joins_aggregates_and_sessions(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "NumPy, by sorted keys\n"


@pytest.mark.parametrize(("how", "what", "instead"), [
    ({"engine": "index"}, "engine='index'", "leave engine out"),
    ({"order": "inner(1)"}, r"order='inner\(1\)' on the device 'cpu'", "use device='golden'"),
    ({"engine": "sliding", "aggregate": {"n": "count(*)"}}, "engine='sliding'", "leave engine out")])
def test_what_needs_compiled_loops(how: dict[str, object], what: str, instead: str,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    table = pa.table({"x": [1]})
    with pytest.raises(ToolError, match=rf"^{what}.* needs the Python package 'numba', .* or {instead}"):
        splitjoin.join(table, table, on="r.x = s.x", **how)
    query = splitjoin.query(table.schema, table.schema, on="r.x = s.x", window="ROWS 3", aggregate={"n": "count(*)"})
    with pytest.raises(ToolError, match=r"^open_unsorted needs the Python package 'numba'"):
        splitjoin.open_unsorted(query, lateness=3)
