"""From pairs to result rows: columns by row id, kinds of join, aggregates, interval joins, and `JoinResult`."""
