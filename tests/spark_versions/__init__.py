"""Joins on each version of Spark that splitjoin runs on: ``make spark-versions``."""
