"""A user's file with a mistake in each line that says so: type checkers find exactly these."""

import splitjoin

r, s = {"x": [1]}, {"a": [1]}
splitjoin.join(r, s, on=3)  # wrong
splitjoin.join(1, s, on="r.x = s.a")  # wrong
splitjoin.join(r, s, on="r.x = s.a").to_panda()  # wrong
splitjoin.join(r, s, on="r.x = s.a", window=3)  # wrong
splitjoin.date_trunc(3, 4)  # wrong
print(splitjoin.JoinResult().rows)  # wrong
splitjoin.sql(3)  # wrong
print(splitjoin.no_such_name)  # wrong
