#!/bin/sh
# Guess:    conditional_join with "!=" gives no pair for a missing value, as its "<=" and ">=" give none and as SQL does; and
#           the same values in another dtype of pandas give the same pairs.
# Seen:     NaN of float64 and NaT of datetime64 are unequal to everything, so a row without a value pairs with every row, also
#           with those that have none; <NA> of Int64 and Float64 and nulls of double[pyarrow] pair with nothing. Five pairs or
#           one, for the same values. With "<=" and ">=" no dtype pairs a missing value.
# Matters:  a theta join changes its rows when a reader begins to give nullable dtypes (convert_dtypes, dtype_backend=), and
#           "<" united with ">" is not "!=": NOT of a condition does not complete it.
# Versions: pyjanitor 0.32.60, janitor-rs 0.6.6, pandas 3.1.1, numpy 2.4.6.
# Source:   janitor/functions/conditional_join.py: joins of "!=" alone go to a dispatcher of their own that knows nulls.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
    pyjanitor==0.32.60 janitor-rs==0.6.6 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1
cat > try.py <<'PYTHON'
import janitor  # noqa: F401  conditional_join is a method of frames then
import pandas as pd

seen = {}
for dtype in ("float64", "Int64", "Float64", "double[pyarrow]", "datetime64[us]"):
    a, b = ([1, None, 2], [1, None]) if "date" not in dtype else (["2026-01-01", None, "2026-01-02"], ["2026-01-01", None])
    convert = pd.to_datetime if "date" in dtype else list
    left = pd.DataFrame({"a": pd.Series(convert(a)).astype(dtype), "i": range(3)})
    right = pd.DataFrame({"b": pd.Series(convert(b)).astype(dtype), "j": range(2)})
    for signs in (("!=",), ("<=", ">=")):
        pairs = left.conditional_join(right, *(("a", "b", sign) for sign in signs), how="inner")
        seen[dtype, signs[0]] = sorted(zip(pairs["i"].tolist(), pairs["j"].tolist()))
    print(f"{dtype}: a = {a}, b = {b}; pairs (row of a, row of b) by != {seen[dtype, '!=']}, by <= and >= {seen[dtype, '<=']}")
everything = [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
for dtype in ("float64", "datetime64[us]"):
    assert seen[dtype, "!="] == everything, "a missing value of this dtype pairs otherwise now"
for dtype in ("Int64", "Float64", "double[pyarrow]"):
    assert seen[dtype, "!="] == [(2, 0)], "a missing value of this dtype pairs now"
assert {dtype: pairs for (dtype, sign), pairs in seen.items() if sign != "!=" and pairs != [(0, 0)]} == {}
PYTHON
venv/bin/python try.py
