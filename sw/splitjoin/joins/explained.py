"""`explain`: how a query maps onto engines and circuits, or how `join` joins two tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from splitjoin.base.errors import OptionError, plural
from splitjoin.base.explanation import Explanation, Fact
from splitjoin.base.memory import size_text
from splitjoin.engines.device import TableWay, listening
from splitjoin.engines.registry import argument_names
from splitjoin.lang.query import Query
from splitjoin.lang.schema import suggest
from splitjoin.rows.result import JoinResult
from splitjoin.tables.inputs import Rows

from .explain import explain as explain_query
from .join import join


class _Known(Exception):
    """The way is known: the join need not go on."""


def explain(r: Rows | Query, s: Rows | None = None, *, analyze: bool = False, **arguments: Any) -> Explanation:
    """Tell how `join` joins two tables: the way, how many threads share it and why, and how many pairs it is expected
    to look at. Or tell how a `Query` maps onto the engines, and onto a circuit and its resources.

    Args:
        r: The first table, as of `join`; or a query, and no second table.
        s: The second table.
        analyze: Of tables, True to run the join as well, and tell the pairs it looked at beside the expected ones, the
            rows, their size and the CPU time. A way that the join began and gave up, as it had more candidates than
            expected or more pairs than fit into memory, is told as well.
        arguments: Of tables, those of `join` but ``to``. Of a query, ``passes=True`` to print the condition after each
            pass of the compiler that changed it, ``family="ecp5"``, the FPGA family that costs are of, and the
            parameters of a circuit, such as ``cores=8``.

    Returns:
        An `Explanation`, which prints as a line for each of the things told, which begins with its name, and shows bars
        of the pairs, or the block diagram of the circuit, in notebooks. It has ``to_dict()``, ``to_json()``, ``html()``
        and ``svg()``.

    Raises:
        SplitJoinError: As of `join`; for a query, with parameters that no circuit can have.
    """
    if isinstance(r, Query):
        if s is not None or analyze:
            raise OptionError("a query is explained alone, without tables to join; give explain two tables and the "
                              "arguments of join, or leave the second table and analyze out")
        return explain_query(r, **arguments)
    if s is None:
        raise OptionError(f"explain needs two tables and the arguments of join, or a query, but got "
                          f"{type(r).__name__} alone; give it the second table, and on=")
    for name in arguments:
        if name not in argument_names(join) and suggest(name, ["analyze"]):
            raise OptionError(f"explain has no argument {name!r}{suggest(name, ['analyze'])}")
    if "to" in arguments:
        raise OptionError("explain writes no rows; leave to out")
    begun: list[TableWay] = []

    def note(way: TableWay) -> None:
        begun.append(way)
        if not analyze:
            raise _Known

    started = time.process_time()
    try:
        with listening(note):
            result = join(r, s, **arguments)
        seconds = time.process_time() - started
    except _Known:
        return Explanation(_facts(begun[-1]))
    given_up = [fact for way in begun[:-1] for fact in _facts(way, "given up: more than expected, or than fit")]
    return Explanation([*given_up, *_facts(begun[-1], counters=result.counters), *_outcome(result, begun[-1], seconds)])


def _facts(way: TableWay, end: str = "", counters: Mapping[str, int] = MappingProxyType({})) -> Iterator[Fact]:
    """The facts of a way. ``end``: how it ended, told behind the number of expected candidates; ``counters``: those of
    the result that it found.
    """
    yield Fact("way", way.plan)
    if way.threads:
        yield Fact("threads", way.threads)
    figures: dict[str, float] = {}
    if way.candidates is not None:
        figures["expected"] = float(way.candidates)
    if "candidates" in counters:
        figures["counted"] = counters["candidates"]
    said = [f"about {figures['expected']:,.0f} pairs expected"] if "expected" in figures else []
    said += [f"{figures['counted']:,} looked at"] if "counted" in figures else []
    if "comparisons" in counters and figures:
        figures["of"] = counters["comparisons"]
    if said or end:
        yield Fact("candidates", "; ".join(filter(None, [*said, end])), figures=figures)


def _outcome(result: JoinResult, way: TableWay, seconds: float) -> Iterator[Fact]:
    """The facts of a ``result`` that was found in a ``way``: the engine where that is another, rows, size and time."""
    if result.plan and result.plan != way.plan:
        yield Fact("engine", result.plan)
    rows, size = result.num_rows, result.table.nbytes
    yield Fact("rows", f"{rows:,} {plural(rows, 'row')}, {size_text(size)}", figures={"counted": rows, "bytes": size})
    yield Fact("took", f"{seconds:.3f} s of CPU time, with reading both tables", figures={"cpu_seconds": seconds})
