"""The Spark SQL extension ``splitjoin.SplitJoinExtensions``: its Java sources, its jar, and its tasks.

``java/`` is an optimizer rule, which replaces joins in Spark's plans; `jar` compiles it. `task` joins the rows in
Spark's Python workers, by the condition that the rule wrote as JSON, which `condition` reads; `nested_loop` decides as
Spark does where that condition is not exact for the rows at hand.
"""
