#!/bin/sh
# Guess:    narwhals' join_asof(strategy="nearest") gives the same rows for a pandas and for a Polars frame: one API.
# Seen:     of two rows that are equally near, a pandas frame gets the earlier, a Polars frame the later one. Both take the
#           last of equal times; a DuckDB relation, also backward, the first here.
# Matters:  with times on a grid (seconds, bars) half distances are common, so the rows depend on what the caller passed.
# Versions: narwhals 2.29.0, pandas 3.1.1, polars 2.1.0, duckdb 2.0.1, pyarrow 26.0.1, Python 3.11.
# Source:   narwhals, DataFrame.join_asof, which speaks of the nearest key alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check narwhals==2.29.0 pandas==3.1.1 polars==2.1.0 \
    duckdb==2.0.1 pyarrow==26.0.1
cat > try.py <<'PYTHON'
import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa

left, right = {"t": [10, 30]}, {"t": [8, 12, 25, 35], "v": ["8", "12", "25", "35"]}


def values(make, strategy, left=left, right=right):
    found = nw.from_native(make(left)).join_asof(nw.from_native(make(right)), on="t", strategy=strategy)
    return [row["v"] for row in found.lazy().collect().sort("t").rows(named=True)]


def relation(columns):
    return duckdb.from_arrow(pa.table(columns))


nearest = {"pandas": values(pd.DataFrame, "nearest"), "polars": values(pl.DataFrame, "nearest")}
print("nearest to 10 and 30:", nearest)
equal = {"t": [20]}, {"t": [20, 20], "v": ["first", "last"]}
ties = {name: values(make, "backward", *equal)
        for name, make in [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("duckdb", relation)]}
print("of two rows of one time:", ties)
assert nearest == {"pandas": ["8", "25"], "polars": ["12", "35"]}, "it is no longer so"
assert ties == {"pandas": ["last"], "polars": ["last"], "duckdb": ["first"]}, "it is no longer so"
PYTHON
venv/bin/python try.py
