#!/bin/sh
# Guess:    epoch_ms of a TIMESTAMP_MS is the number of milliseconds that it holds.
# Seen:     so in DuckDB 2.0.0. In 2.0.1 epoch, epoch_ms and epoch_us take TIMESTAMP_S and TIMESTAMP_MS by way of
#           nanoseconds, which end in 2262: a sentinel such as 9999-12-31 is refused, in the default TIMESTAMP it is not.
#           epoch_ms refuses TIMESTAMP_S, _MS and _NS of any year ("Unimplemented type for cast (INT64 -> INT64)").
# Matters:  Arrow's timestamp[ms], which pandas, Polars and Parquet files of Java bring, is TIMESTAMP_MS: queries that
#           compare epochs of validity intervals with an open end stop after `pip install --upgrade`. Cast to TIMESTAMP.
# Versions: duckdb 2.0.0 and 2.0.1, Python 3.11.
# Source:   DuckDB, timestamp functions, epoch_ms(timestamp); timestamp types (TIMESTAMP_MS: year 9999 and beyond).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > try.py <<'PYTHON'
import duckdb


def value(text):
    try:
        return duckdb.execute(f"SELECT {text}").fetchall()[0][0]
    except duckdb.Error as error:
        return str(error).splitlines()[0]


print("duckdb", duckdb.__version__)
seen = {}
for kind in ("TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S"):
    for moment in ("2020-01-31 10:59:00", "9999-12-31"):
        for function in ("epoch", "epoch_ms"):
            text = f"{function}({kind} '{moment}')"
            seen[kind, moment[:4], function] = value(text)
            print(" ", text, "=", seen[kind, moment[:4], function])
assert not [v for (kind, _, _), v in seen.items() if kind == "TIMESTAMP" and isinstance(v, str)]
refused = {key for key, v in seen.items() if isinstance(v, str)}
if duckdb.__version__ == "2.0.1":
    assert len(refused) == 6, "it is no longer so"
    assert ("TIMESTAMP_MS", "2020", "epoch_ms") in refused
PYTHON
for version in 2.0.0 2.0.1; do
  python3 -m venv "venv-$version"
  "venv-$version/bin/python" -m pip install --quiet --disable-pip-version-check "duckdb==$version"
  "venv-$version/bin/python" try.py
done
