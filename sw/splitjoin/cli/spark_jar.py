"""The command ``spark-jar``: where the jar with Spark's extension is."""

from __future__ import annotations

import argparse

from splitjoin.catalyst.jar import spark_jar

__all__ = ["run_spark_jar"]


def run_spark_jar(args: argparse.Namespace) -> None:
    """Print the path of the jar, which is compiled first if need be."""
    print(spark_jar())
