#!/bin/sh
# Guess:    the join that DataFusion has for one inequality, once it is switched on, changes the time and not the rows.
# Seen:     LEFT and FULL joins lose their rows without a partner, those with a key that is not NULL too: of three rows on
#           the left one comes out. EXPLAIN says join_type Left. Without the setting (a nested loop) all of them come.
# Matters:  a benchmark that switches on a rival's range join compares other answers; checksums tell, row counts of inner
#           joins do not.
# Versions: datafusion 55.0.0 (the setting is called experimental), pyarrow 26.0.1, Python 3.11.
# Source:   datafusion.optimizer.enable_piecewise_merge_join; apache/datafusion issues 24335 and 24348.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
cat > try.py <<'PYTHON'
import pyarrow as pa
from datafusion import SessionConfig, SessionContext


def rows(kind, setting):
    context = SessionContext(SessionConfig().set("datafusion.optimizer.enable_piecewise_merge_join", setting))
    context.from_arrow(pa.table({"a": pa.array([None, 1, 5], pa.int64())}), name="l")
    context.from_arrow(pa.table({"b": pa.array([2, 3], pa.int64())}), name="r")
    found = context.sql(f"SELECT a, b FROM l {kind} JOIN r ON a > b").to_arrow_table().to_pylist()
    return sorted(((row["a"], row["b"]) for row in found), key=str)


seen = {}
for kind in "INNER", "LEFT", "FULL":
    seen[kind] = rows(kind, "false"), rows(kind, "true")
    print(kind, "nested loop", seen[kind][0], "piecewise merge", seen[kind][1])
inner, outer = [(5, 2), (5, 3)], [(1, None), (5, 2), (5, 3), (None, None)]
assert seen == {"INNER": (inner, inner), "LEFT": (outer, inner), "FULL": (outer, inner)}, "it is no longer so"
PYTHON
venv/bin/python try.py
