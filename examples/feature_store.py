"""Features of payments, offline for training and online for serving, by one query: both give the same rows.

python feature_store.py --rows 100000 --output features.parquet
"""

import argparse

import numpy as np
import pyarrow as pa

import splitjoin

#: For each request to pay: what the card did in the hour before. The engine folds, and makes no pairs.
QUERY = {"on": "r.card = s.card AND s.approved", "window": ("RANGE 0 SECONDS", "RANGE 1 HOUR"), "time": "ts",
         "how": "left", "by": "r",
         "aggregate": {"payments_1h": "count(*)", "spent_1h": "sum(s.amount)", "mean_1h": "avg(s.amount)",
                       "highest_1h": "max(s.amount)", "shops_1h": "count(DISTINCT s.shop)",
                       "last_shop": "last(s.shop)"}}


def tables(rows: int) -> tuple[pa.Table, pa.Table]:
    """Requests to pay, and past payments, ``rows`` each, of 50 cards; a payment may be delivered 30 seconds late."""
    random = np.random.default_rng(3)
    start = np.datetime64("2024-05-01T00:00:00", "ms")
    times = [start + np.sort(random.integers(0, 5000 * rows, rows)) for _ in range(2)]
    requests = pa.table({"ts": times[0], "card": random.integers(0, 50, rows),
                         "amount": random.integers(100, 50_000, rows) / 100})
    payments = pa.table({"ts": times[1], "card": random.integers(0, 50, rows), "shop": random.integers(0, 400, rows),
                         "amount": random.integers(100, 50_000, rows) / 100, "approved": random.random(rows) < 0.95})
    return requests, payments


def online(requests: pa.Table, payments: pa.Table, device: str) -> pa.Table:
    """The features as a stream: batches come as they are delivered, payments out of order."""
    random = np.random.default_rng(4)
    due = payments["ts"].to_numpy() + random.integers(0, 30_000, len(payments))
    delivered = payments.take(pa.array(np.argsort(due, kind="stable")))
    query = splitjoin.query(requests.schema, payments.schema, **QUERY)
    batches = []
    with splitjoin.open(query, device, lateness="30 SECONDS") as session:
        for at in range(0, len(requests), 1000):
            session.push_s(delivered.slice(at, 1000))
            session.push_r(requests.slice(at, 1000))
            batches.append(session.poll())
        batches.append(session.flush())
        assert session.counters()["late_s"] == 0
    return pa.Table.from_batches(batches)


def main() -> None:
    """Compute the features both ways, and show the last rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="requests, and as many payments (%(default)s)")
    parser.add_argument("--device", default="cpu", help="where to join (%(default)s)")
    parser.add_argument("--output", help="write the features to this Parquet or CSV file")
    args = parser.parse_args()
    requests, payments = tables(args.rows)
    offline = splitjoin.join(requests, payments, **QUERY, device=args.device, to=args.output)
    served = online(requests, payments, args.device)
    print(f"{len(offline):,} rows of features; offline and online ones are "
          f"{'equal' if offline.to_arrow().equals(served) else 'DIFFERENT'}")
    print(offline.to_arrow().slice(max(len(offline) - 3, 0)).to_pylist())


if __name__ == "__main__":
    main()
