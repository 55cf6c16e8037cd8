"""Interval join of trades and quotes: each trade with the quotes of the last five seconds whose spread holds its price.

python trades_and_quotes.py --rows 100000 --output found.parquet
"""

import argparse

import numpy as np
import pyarrow as pa

import splitjoin


def tables(rows: int) -> tuple[pa.Table, pa.Table]:
    """Trades and quotes, ``rows`` each, over so many milliseconds; prices in cents wander."""
    random = np.random.default_rng(1)
    start = np.datetime64("2024-05-01T09:30:00", "ms")
    mid = 10_000 + random.integers(-2, 3, rows).cumsum()
    times = [start + np.sort(random.integers(0, 50 * rows, rows)) for _ in range(2)]
    trades = pa.table({"ts": times[0], "price": mid + random.integers(-3, 4, rows)})
    quotes = pa.table({"ts": times[1], "bid": mid - 1, "ask": mid + 1})
    return trades, quotes


def main() -> None:
    """Join, and show the first rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="trades, and as many quotes (%(default)s)")
    parser.add_argument("--device", default="cpu", help="where to join (%(default)s)")
    parser.add_argument("--output", help="write all rows to this Parquet or CSV file")
    args = parser.parse_args()
    trades, quotes = tables(args.rows)
    found = splitjoin.join(trades, quotes, on="r.price BETWEEN s.bid AND s.ask", time="ts",
                           window={"r": "RANGE 0 SECONDS", "s": "RANGE 5 SECONDS"}, device=args.device, to=args.output)
    print(f"{len(found):,} pairs of {len(trades):,} trades")
    if args.output is None:
        print(found.to_pandas().head())


if __name__ == "__main__":
    main()
