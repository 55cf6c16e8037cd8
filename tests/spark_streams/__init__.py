"""Random streams that Spark's own stream-stream join and splitjoin's join."""
