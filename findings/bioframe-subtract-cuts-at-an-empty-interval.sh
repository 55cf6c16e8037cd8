#!/bin/sh
# Guess:    what is taken away with an interval of length zero is nothing: subtract leaves the rows as they are.
# Seen:     each row that such an interval lies strictly within becomes two, which touch; so does the complement. coverage
#           says 0 for the same tables, and merge makes the two pieces one again. At the end of a row nothing is cut.
# Matters:  insertions and cut sites are intervals of length zero: counts of rows, and mean lengths, of what is left differ
#           though no base does. Leave them out before, or merge behind.
# Versions: bioframe 0.8.0, pandas 2.3.3.
# Source:   bioframe/ops.py, subtract: it takes the pairs of overlap, in which an empty interval meets what it lies within.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check bioframe==0.8.0 pandas==2.3.3
cat > try.py <<'PYTHON'
import bioframe
import pandas as pd


def table(*rows):
    return pd.DataFrame([("chr1", start, end) for start, end in rows], columns=["chrom", "start", "end"])


def pairs(frame):
    return list(zip(frame["start"].tolist(), frame["end"].tolist()))


genes, sites = table((0, 10), (20, 30)), table((5, 5), (30, 30))
left = bioframe.subtract(genes, sites)
view = pd.DataFrame({"chrom": ["chr1"], "start": [0], "end": [10], "name": ["part"]})
free = bioframe.complement(table((5, 5)), view_df=view)
covered = bioframe.coverage(genes, sites)["coverage"].tolist()
merged = bioframe.merge(left)
print("subtract", pairs(left), "complement", pairs(free), "coverage", covered, "merged again", pairs(merged))
assert pairs(left) == [(0, 5), (5, 10), (20, 30)], "it is no longer so"
assert pairs(free) == [(0, 5), (5, 10)], "it is no longer so"
assert covered == [0, 0], "it is no longer so"
assert pairs(merged) == [(0, 10), (20, 30)], "it is no longer so"
PYTHON
venv/bin/python try.py
