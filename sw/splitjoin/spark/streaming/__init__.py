"""Joins of streaming DataFrames: what runs in every micro-batch, and the state between them.

A micro-batch goes through two stages, with one shuffle between them:

1. `Spread` (spread.py) packs the rows of each stream as Arrow, for the groups that get them (`Slots`, slots.py).
2. `GroupTask` (task.py) loads the group's state (state.py, from the files of store.py), joins the new tuples with the
   stored ones (group.py) up to the watermark (watermark.py), decides rows of other kinds (matched.py and decisions.py),
   gives the result rows, and writes the next version of the state.

`StreamingJoin` (plan.py) is the join on the driver: `make` checks the arguments, and `plan` puts both stages together.
"""
