"""A whole Spark job, for spark-submit: orders and offers with prices within 5 and times within a minute of each
other, from Parquet to Parquet.

spark-submit --master 'local[2]' spark_job.py orders.parquet offers.parquet pairs.parquet

Both tables need a column ``ts`` (timestamp) and a column ``price``. --demo writes tables to join first. docs/cluster.md
says how splitjoin gets to the executors of a cluster.
"""

import argparse

from pyspark.sql import SparkSession, functions as sql

from splitjoin.spark import explain, stream_join


def main() -> None:
    """Join, write and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orders", help="Parquet file or folder")
    parser.add_argument("offers", help="Parquet file or folder")
    parser.add_argument("pairs", help="folder for the result")
    parser.add_argument("--demo", type=int, metavar="ROWS", help="write both tables first, with so many rows")
    args = parser.parse_args()

    spark = SparkSession.builder.appName("orders and offers").getOrCreate()
    if args.demo:
        start = sql.lit("2024-05-01 12:00:00").cast("timestamp")
        for path, seed in ((args.orders, 1), (args.offers, 2)):
            seconds = sql.make_dt_interval(secs=sql.col("id").cast("decimal(18,6)"))
            spark.range(args.demo).select((start + seconds).alias("ts"), (sql.rand(seed) * 1000).alias("price")
                                          ).write.mode("overwrite").parquet(path)
    orders, offers = spark.read.parquet(args.orders), spark.read.parquet(args.offers)
    join = {"on": "abs(r.price - s.price) <= 5", "window": "RANGE 1 MINUTE", "time": "ts"}
    print(explain(orders, offers, **join))
    stream_join(orders, offers, **join).write.mode("overwrite").parquet(args.pairs)
    print(f"{spark.read.parquet(args.pairs).count():,} pairs")
    spark.stop()


if __name__ == "__main__":
    main()
