"""Rows that the inputs of joins gave, as Spark's tasks counted them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .events import ROWS, Application, PlanNode

__all__ = ["input_rows", "own_rows"]

#: Nodes that give as many rows as their input.
_KEEPING = re.compile(
    r"(Project|Sort|Exchange|BroadcastExchange|ShuffleQueryStage|BroadcastQueryStage|ResultQueryStage|"
    r"TableCacheQueryStage|AQEShuffleRead|CustomShuffleReader|InputAdapter|WholeStageCodegen|ColumnarToRow|"
    r"AdaptiveSparkPlan|ReusedExchange|Coalesce|EventTimeWatermark|\w+EvalPython)\b.*", re.DOTALL)


def own_rows(app: Application, node: PlanNode) -> int | None:
    """The rows that ``node`` itself counted, or None."""
    return app.rows(node.metrics.get(ROWS))


def input_rows(app: Application, join: PlanNode, side: int, inputs: Sequence[PlanNode]) -> int | None:
    """The rows of the left (``side`` 0) or the right (1) of a join's two ``inputs``; None where the log does not say.

    A partition that Spark computed several times counts once.
    """
    node: PlanNode | None = inputs[side]
    while node is not None and app.rows(node.metrics.get(ROWS)) is None:
        node = node.children[0] if len(node.children) == 1 and _KEEPING.fullmatch(node.name) else None
    if node is None:
        return None
    number, own = node.metrics[ROWS], join.metrics.get(ROWS, -1)
    shared = app.stages.get(number, set()) & app.stages.get(own, set())
    if join.name != "CartesianProduct" or not shared or len(app.counts[number]) == 1:
        return app.rows(number)
    # Each task of a Cartesian product reads a partition of the left input and one of the right input.
    products = [product for stage in shared for product in app.products.get(stage, [])]
    if len(products) != 1:
        return None
    _, right = products[0]
    counts = app.counts[number].items()
    return sum(rows for partition, rows in counts if (partition % right == 0 if side == 0 else partition < right))
