"""The aggregates of bench/oij.py in Pathway, in its own environment: python bench/oij_pathway.py WINDOW"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def pathway_seconds(tables: tuple[Any, Any], window: int) -> tuple[float, int, int]:
    """CPU seconds for a row of aggregates for each tuple of R, the number of rows, and that of all partners.

    ``tables``: R with columns ts and k, S with ts, k and v. Raises `RuntimeError` if Pathway does not run here.
    """
    import pyarrow.parquet as pq

    from bench.rivals_environment import rival

    with tempfile.TemporaryDirectory() as folder:
        for name, table in zip(("r", "s"), tables, strict=True):
            pq.write_table(table, Path(folder) / f"{name}.parquet")
        done = subprocess.run([str(rival("pathway")), str(Path(__file__).resolve()), str(window)], cwd=folder,
                              capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Pathway's join ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return float(found["seconds"]), int(found["rows"]), int(found["partners"])


def main(window: int) -> None:
    """Join r.parquet and s.parquet of the working folder, and print the CPU seconds of the run without imports."""
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pathway as pw

    r, s = (pw.debug.table_from_pandas(pd.read_parquet(f"{name}.parquet")) for name in ("r", "s"))
    start = time.process_time()
    joined = r.with_columns(base=r.id).interval_join_left(
        s, pw.left.ts, pw.right.ts, pw.temporal.interval(-window, 0), pw.left.k == pw.right.k
    ).select(pw.left.base, v=pw.right.v)
    joined = joined.with_columns(some=pw.if_else(joined.v.is_none(), 0, 1), value=pw.coalesce(joined.v, 0.0))
    found = joined.groupby(joined.base).reduce(joined.base, n=pw.reducers.sum(joined.some),
                                               total=pw.reducers.sum(joined.value))
    rows = pw.debug.table_to_pandas(found)
    print(json.dumps({"seconds": time.process_time() - start, "rows": len(rows), "partners": int(rows["n"].sum())}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
