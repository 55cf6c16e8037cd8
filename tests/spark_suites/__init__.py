"""The cases of Spark's own suites of joins, by Spark's joins and by splitjoin's: the same rows."""
