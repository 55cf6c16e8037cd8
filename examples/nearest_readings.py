"""As-of join of sensor readings: for each alarm the nearest reading of its room within two seconds, before or after it.

python nearest_readings.py --rows 100000
"""

import argparse

import numpy as np
import pyarrow as pa

import splitjoin


def tables(rows: int) -> tuple[pa.Table, pa.Table]:
    """``rows`` readings, a tenth as many alarms, in eight rooms."""
    random = np.random.default_rng(1)

    def times(count: int) -> pa.Array:
        return pa.array(np.sort(random.integers(0, 500 * rows, count)), pa.timestamp("ms"))

    alarms = pa.table({"ts": times(rows // 10), "room": random.integers(0, 8, rows // 10)})
    readings = pa.table({"ts": times(rows), "room": random.integers(0, 8, rows),
                         "celsius": random.normal(20, 3, rows).round(1)})
    return alarms, readings


def main() -> None:
    """Join, and show the first rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="readings (%(default)s)")
    parser.add_argument("--device", default="cpu", help="where to join (%(default)s)")
    args = parser.parse_args()
    alarms, readings = tables(args.rows)
    found = splitjoin.join(alarms, readings, on="r.room = s.room", time="ts", window="RANGE 2 SECONDS",
                           how="asof_left", direction="nearest", device=args.device)
    without = found.to_arrow().column("celsius").null_count
    print(f"{len(found):,} alarms, {without:,} of them without a reading within 2 s")
    print(found.to_pandas().head())


if __name__ == "__main__":
    main()
