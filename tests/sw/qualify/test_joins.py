"""Joins in Spark's event logs: found, read and counted.

`logs/` holds logs that Spark 4.3 wrote with ``spark.eventLog.enabled``, without the events and fields that are not read
here: five joins, and queries over two tables of 300 rows, which `R` and `S` are again. Spark counted the rows of their
results, and splitjoin's joins of the same tables must give as many.
"""

import decimal
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import Schema
from splitjoin.base.errors import PredicateError
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.sql.spark import SparkReader
from splitjoin.qualify import FIXED, PAIRS, RATE, Candidate, qualify
from splitjoin.qualify.conditions import read_condition
from splitjoin.qualify.events import PlanNode
from splitjoin.qualify.joins import _condition

from .support import LOG, LOGS, log_of, node

KINDS = LOGS / "eventlog_v2_local-2"
ROW = np.arange(300)
TIME = pa.array(1_700_000_000_000_000 + ROW * 1_000_000).cast(pa.timestamp("us", "UTC"))
DAY = pa.array(np.datetime64("2024-01-01") + ROW)
DECIMAL = pa.array([decimal.Decimal(int(n)) for n in ROW], pa.decimal128(18, 2))
R = pa.table({"id": ROW, "x": pa.array(ROW * 7 % 100, pa.int32()), "ts": TIME, "k": ROW % 5,
              "c": [f"c{n % 3}" for n in ROW], "d": DECIMAL, "day": DAY, "_common_expr_6": TIME,
              "pythonUDF0": ROW * 7 % 100 + 1})
S = pa.table({"sid": ROW, "a": pa.array(ROW * 13 % 100, pa.int32()), "ats": TIME, "sk": ROW % 5,
              "sc": [f"c{n % 4}" for n in ROW], "sd": DECIMAL, "sday": DAY})
BANDS = "abs(r.x - s.a) <= 10 AND r.ts >= s.ats + INTERVAL '-10' SECOND AND r.ts <= s.ats + INTERVAL '10' SECOND"


#: A join of two streams as Spark 4.3 prints it, without the folder of its state.
STREAMING = ("StreamingSymmetricHashJoin [k#{k}], [l#{l}], Inner, condition = [ leftOnly = null, rightOnly = null, "
             "both = {full}, full = {full} ], state info [ checkpoint = <unknown>, runId = 1, opId = 0, ver = 0, "
             "numPartitions = 1], 0, 0, state cleanup [ left = null, right = null ], 2")


@pytest.fixture(scope="module")
def kinds() -> dict[str, Candidate]:
    """The joins of the queries over R and S, by the descriptions of the queries."""
    found, damaged = qualify([KINDS])
    assert not damaged
    made = {c.execution.partition(": ")[2]: c for c in found}
    assert len(made) == len(found)  # "cached2" and "cached3" read what "cached1" has joined
    return made


def joined(tmp_path: Path, text: str, left: str = "Scan [x#1,k#7,t#9]", right: str = "Scan [a#2,l#8,u#10]",
           ) -> Candidate:
    """The join of a plan in which Spark prints it as ``text``."""
    name = text.split()[0]
    [found], damaged = qualify([log_of(tmp_path, node(name, text, node("Scan", left), node("Scan", right)))])
    assert not damaged
    return found


def test_range_joins_and_loops_are_found_with_their_counts() -> None:
    found, damaged = qualify([LOG], rate=3000)
    assert not damaged
    assert {(c.node, c.condition, c.rows) for c in found} == {
        ("BroadcastNestedLoopJoin", "abs(r.x - s.a) <= 1 AND abs(r.ts - s.ts) <= 10", (3000, 3000, 1769)),
        ("CartesianProduct", "r.x < s.a", (300, 300, 44550)),
        ("SortMergeJoin", "r.k = s.k AND r.ts >= s.ts - 10 AND r.ts <= s.ts + 10", (3000, 3000, 14970)),
        ("BroadcastNestedLoopJoin", 'r."<script>alert(1)</script>" < s.a', (2, 3000, 5940))}
    assert all(c.takes for c in found)
    assert [c.seconds for c in found] == sorted((c.seconds for c in found), reverse=True)
    assert found[0].seconds > 0


def test_predictions_have_fixed_costs_and_those_of_rows_and_pairs() -> None:
    of = {c.node: c for c in qualify([LOG], rate=3000)[0]}
    assert of["SortMergeJoin"].predicted == FIXED + 2 + 14970 / PAIRS
    of = {c.node: c for c in qualify([LOG])[0]}
    assert of["CartesianProduct"].predicted == FIXED + 600 / RATE + 44550 / PAIRS


def test_the_rates_are_the_measured_ones() -> None:
    rows = json.loads((Path(__file__).parents[3] / "bench" / "results" / "spark.json").read_text())["rows"]
    [batch] = [r for r in rows if r["metric"] == "batch" and r["config"]["way"] == "splitjoin"
               and r["config"]["window_s"] == 10]
    cores = batch["config"]["cores"]
    few, many = sorted((r for r in rows if r["metric"] == "batch_theta" and r["config"]["way"] == "splitjoin"),
                       key=lambda r: r["config"]["pairs"])
    assert pytest.approx(batch["value"] * 1000 / cores, rel=0.1) == RATE
    wall = [2 * r["config"]["rows"] / (r["value"] * 1000) for r in (few, many)]
    assert pytest.approx((wall[0] - 2 * few["config"]["rows"] / (batch["value"] * 1000)) * cores, rel=0.1) == FIXED
    pairs = many["config"]["pairs"] - few["config"]["pairs"]
    assert pytest.approx(pairs / ((wall[1] - wall[0]) * cores), rel=0.1) == PAIRS


@pytest.mark.parametrize(("query", "condition"), [
    ("bands", BANDS), ("bandsp", BANDS),
    ("lateralagg", "s.ats >= r.ts AND s.ats <= r.ts + INTERVAL '05' SECOND AND s.a < r.x"),
    ("scalar", "CAST(r.x AS BIGINT) < (CAST(s.a AS BIGINT) + r.subquery_101) - 350"),
    ("full", "abs(r.x - s.a) <= 10"),
    ("leftbl", "abs(r.x - s.a) <= 10"),
    ("notin2", "(CAST((r.id * 7) % 100 AS INT) = s.a OR isnull(CAST((r.id * 7) % 100 AS INT) = s.a)) AND "
               "abs(s.sid - r.id) < 3"),
    ("inlist", "(r.x + s.a) IN (1, 10, 11, 12, 13, 14, 2, 3, 4, 5, 6, 7, 8, 9)"),
    ("tsdiff", "abs(timestampdiff(second, r.ts, s.ats)) <= 10"),
    ("tsdiff2", "timestampdiff(minute, r.ts, s.ats) >= 0 AND timestampdiff(minute, r.ts, s.ats) <= 1"),
    ("unix", "abs(unix_timestamp(r.ts) - unix_timestamp(s.ats)) <= 10"),
    ("unix2", "CAST(r._common_expr_6 AS BIGINT) >= CAST(s.ats AS BIGINT) - 5 AND "
              "CAST(r._common_expr_6 AS BIGINT) <= CAST(s.ats AS BIGINT) + 5"),
    ("unix3", "unix_millis(r.ts) - unix_millis(s.ats) >= 0 AND unix_millis(r.ts) - unix_millis(s.ats) <= 5000"),
    ("datediff", "datediff(r.day, s.sday) >= 0 AND datediff(r.day, s.sday) <= 3"),
    ("dateadd", "r.day >= s.sday AND r.day <= date_add(s.sday, 3)"),
    ("strings", "(r.x < s.a AND (r.c = 'c1' OR s.sc = 'c2 and more') AND s.sday > CAST('2024-03-01' AS DATE) AND "
                "r.c < s.sc) OR s.ats > CAST('2024-03-01 10:00:00.5+00:00' AS TIMESTAMP)"),
    ("mixed", "r.id < CAST(s.a AS BIGINT) AND CAST(r.x AS DECIMAL(22, 1)) < CAST(s.sid AS DECIMAL(20, 0)) + 1.5"),
    ("cached1", "abs(r.x - s.a) <= 2"), ("cart", "r.x < s.a"), ("udfval", "r.pythonUDF0 < s.a"),
    ("self", "r.x < s.x AND r.ts >= s.ts + INTERVAL '-03' SECOND AND r.ts <= s.ts")])
def test_conditions_of_spark_give_as_many_rows_in_splitjoin(kinds: dict[str, Candidate], query: str, condition: str,
                                                            ) -> None:
    found = kinds[query]
    assert (found.takes, found.condition) == (True, condition)
    on = condition.replace("r.subquery_101", "299")  # the greatest id
    given: dict[str, object] = {"window": "ROWS 300"}
    if found.window and "event times" not in found.window:
        given = eval(f"dict({found.window})")
    right = R if query == "self" else S
    read = parse_sql(on, Schema.from_table("r", R), Schema.from_table("s", right), reader=SparkReader)
    result = splitjoin.join(R, right, on=read, how=found.reason.split()[0], device="golden",
                            **given)  # type: ignore[arg-type]  # by name
    assert result.to_arrow().num_rows == found.rows[2]
    assert found.rows[:2] == ((300, 239) if query == "strings" else (300, 300))


@pytest.mark.parametrize(("query", "columns", "window"), [
    ("bandsp", "r.x int, r.ts timestamp, s.a int, s.ats timestamp", 'time=("ts", "ats"), window="RANGE 10 SECONDS"'),
    ("lateralagg", "r.ts timestamp, r.x int, s.ats timestamp, s.a int",
     'time=("ts", "ats"), window=("RANGE 5 SECONDS", "RANGE 0 SECONDS")'),
    ("tsdiff2", "r.ts timestamp, s.ats timestamp", 'time=("ts", "ats"), window=("RANGE 2 MINUTES", "RANGE 1 MINUTES")'),
    ("unix", "r.ts timestamp, s.ats timestamp", 'time=("ts", "ats"), window="RANGE 11 SECONDS"'),
    ("dateadd", "r.day date, s.sday date", 'time=("day", "sday"), window=("RANGE 0 DAYS", "RANGE 3 DAYS")'),
    ("cart", "r.x int, s.a int", ""),
    ("full", "r.x int, s.a int", 'time=("x", "a"), window="RANGE 10", if these are the event times')])
def test_windows_follow_from_the_bounds_of_times(kinds: dict[str, Candidate], query: str, columns: str, window: str,
                                                 ) -> None:
    assert (kinds[query].columns, kinds[query].window) == (columns, window)
    assert ("with this window no pair is lost" in kinds[query].reason) == bool(window)


def test_scalar_subqueries_are_to_be_computed_first(kinds: dict[str, Candidate]) -> None:
    assert "compute the scalar subquery first, and write its value in place of r.subquery_101" in kinds["scalar"].reason


@pytest.mark.parametrize(("query", "condition", "rows"), [
    ("udf", "near(x#1, a#9)", 2682), ("udf2", "(x#1 < a#9) AND near(x#1, a#9)", 891),
    ("pandas", "(k#3L = sk#11L) AND near(x#1, a#9)", 540)])
def test_python_functions_over_both_inputs_are_the_condition(kinds: dict[str, Candidate], query: str, condition: str,
                                                             rows: int) -> None:
    found = kinds[query]
    assert (found.takes, found.condition, found.rows) == (False, condition, (300, 300, rows))
    assert "it calls the Python UDF near() for every pair" in found.reason


def test_a_column_that_no_input_names_belongs_to_the_one_that_may_have_others(tmp_path: Path) -> None:
    """As after decorrelation: an aggregation gives columns that the plan does not print."""
    hidden = "HashAggregate(keys=[x#1], functions=[])"
    loop = node("BroadcastNestedLoopJoin", "BroadcastNestedLoopJoin BuildRight, Inner, (t#5 < a#2)")

    def condition(left: dict[str, object], right: dict[str, object]) -> Candidate:
        [found], _ = qualify([log_of(tmp_path, {**loop, "children": [left, right]})])
        return found

    scans = node("Scan", "Scan [x#1,t#1]"), node("Scan", "Scan [a#2]")
    assert condition(node("HashAggregate", hidden, scans[0]), scans[1]).condition == "r.t < s.a"
    assert condition(scans[1], node("HashAggregate", hidden, scans[0])).condition == "s.t < r.a"
    both = condition(node("HashAggregate", hidden, scans[0]), node("HashAggregate", hidden, scans[1]))
    assert not both.takes
    assert "the log does not say which input the column t belongs to" in both.reason


@pytest.mark.parametrize(("text", "condition", "reason"), [
    ("BroadcastNestedLoopJoin BuildRight, ExistenceJoin(exists#9), (x#1 < a#2)", "(x#1 < a#2)",
     "it is of the kind ExistenceJoin(exists#9)"),
    ("BroadcastNestedLoopJoin BuildRight, Cross", "(none)", "it has no condition"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (x#1 < ... 3 more fields)", "(x#1 < ... 3 more fields)", "has cut"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (UDF(x#1) < a#2)", "(UDF(x#1) < a#2)",
     "function UDF is not supported in a condition"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (timestampdiff(second, t#9, u#10, Some(Europe/Rome)) > 3)",
     "(timestampdiff(second, t#9, u#10, Some(Europe/Rome)) > 3)", "the clock of the session's time zone, Europe/Rome"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (timestampdiff(month, t#9, u#10, Some(UTC)) > 3)",
     "(timestampdiff(month, t#9, u#10, Some(UTC)) > 3)", "a month has no fixed length"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, ((k#7 = it's) AND (x#1 < a#2))", "((k#7 = it's) AND (x#1 < a#2))",
     "a text in it holds quotes"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (least(x#1, p.q) < a#2)", "(least(x#1, p.q) < a#2)",
     "p.q is neither a column nor a value"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, (x#1a#2 < `#d`)", "(x#1a#2 < `#d`)", "cannot be read"),
    ("BroadcastNestedLoopJoin BuildRight, Inner, ((x#1 < ) > a#2)", "((x#1 < ) > a#2)", "cannot be read"),
])
def test_joins_that_splitjoin_does_not_take(tmp_path: Path, text: str, condition: str, reason: str) -> None:
    found = joined(tmp_path, text)
    assert (found.condition, found.takes, found.predicted) == (condition, False, None)
    assert reason in found.reason


@pytest.mark.parametrize(("kind", "how"), [("Inner", "inner"), ("LeftOuter", "left"), ("LeftAnti", "anti")])
def test_kinds_of_join_are_named(tmp_path: Path, kind: str, how: str) -> None:
    found = joined(tmp_path, f"BroadcastNestedLoopJoin BuildRight, {kind}, (x#1 < a#2)")
    assert (found.condition, found.takes) == ("r.x < s.a", True)
    assert found.reason.startswith(f"{how} join; ")


@pytest.mark.parametrize(("printed", "read"), [
    ("((x#1 > 5) AND ((x#1 < a#2) OR ((k#7 > l#8) AND (k#7 < 3))))",
     "r.x > 5 AND (r.x < s.a OR (r.k > s.l AND r.k < 3))"),
    ("(x#1 <= (a#2 - (k#7 - (l#8 - 3))))", "r.x <= s.a - (r.k - (s.l - 3))"),
    ("NOT ((x#1 > 5) OR (x#1 < a#2))", "NOT (r.x > 5 OR r.x < s.a)"),
    ("((x#1 < a#2) AND isnotnull(k#7))", "r.x < s.a AND isnotnull(r.k)"),
    ("(((x#1 < a#2) AND k#7) OR NOT l#8)", "(r.x < s.a AND r.k) OR NOT s.l"),  # boolean columns
    ("(t#9 <= u#10 + INTERVAL '0 00:01:30' DAY TO SECOND)", "r.t <= s.u + INTERVAL '0 00:01:30' DAY TO SECOND"),
    ("(t#9 <= u#10 + INTERVAL '-0 01:30:00.5' DAY TO SECOND)",
     "r.t <= s.u + INTERVAL '-0 01:30:00.5' DAY TO SECOND"),
    ("((x#1 < a#2) AND (k#7 IN (red,or ange) OR (l#8 = blue, or not)))",
     "r.x < s.a AND (r.k IN ('red', 'or ange') OR s.l = 'blue, or not')"),
    ("(timestampdiff(SECOND, t#9, u#10, Some(UTC)) = 0)",
     "timestampdiff(SECOND, r.t, s.u) = 0"),
    ("(3 > timestampdiff(HOUR, t#9, u#10, Some(UTC)))", "3 > timestampdiff(HOUR, r.t, s.u)"),
    ("(unix_seconds(t#9) < (l#8L * 2))", "unix_seconds(r.t) < s.l * 2"),
    ("(hour(t#9, Some(UTC)) = hour(u#10, Some(UTC)))", "hour(r.t) = hour(s.u)"),
    ("(date_trunc(MINUTE, t#9, Some(UTC)) = u#10)", "date_trunc('MINUTE', r.t) = s.u"),
    ("((t#9 - u#10) <= INTERVAL '01:30' MINUTE TO SECOND)", "r.t - s.u <= INTERVAL '01:30' MINUTE TO SECOND"),
])
def test_conditions_in_splitjoins_words(tmp_path: Path, printed: str, read: str) -> None:
    found = joined(tmp_path, f"BroadcastNestedLoopJoin BuildRight, Inner, {printed}")
    assert (found.takes, found.condition) == (True, read), found.reason


def test_equal_keys_that_may_be_null(tmp_path: Path) -> None:
    found = joined(tmp_path, "SortMergeJoin [coalesce(k#7, 0), isnull(k#7)], [coalesce(l#8, 0), isnull(l#8)], Inner, "
                             "(x#1 < a#2)")
    assert found.condition == "(r.k IS NOT DISTINCT FROM s.l) AND r.x < s.a"


def test_micro_batches_of_a_stream_are_one_join(tmp_path: Path) -> None:
    """Each has attributes of its own; another query, and another run, is another join."""
    plans, descriptions = [], list[str]()
    for n, (name, batch) in enumerate([("pairs", 0), ("pairs", 1), ("others", 0), ("others", 1)]):
        first = 10 * n
        plans.append(node("StreamingSymmetricHashJoin", STREAMING.format(
            k=first, l=first + 2, full=f"(x#{first + 1} < a#{first + 3})"),
            node("Scan", f"Scan [k#{first},x#{first + 1}]", rows=100 + first),
            node("Scan", f"Scan [l#{first + 2},a#{first + 3}]", rows=101 + first), rows=102 + first))
        plans[-1]["metrics"].append(plans[-1]["metrics"][0] | {"accumulatorId": 900 + n})
        descriptions.append(f"{name}\nid = 1\nrunId = 2\nbatch = {batch}")
    path = log_of(tmp_path, *plans, descriptions=descriptions)
    with path.open("a") as log:
        for n in range(3):  # the last micro-batch has no rows
            updates = [{"ID": 100 + 10 * n + m, "Name": "number of output rows", "Update": rows}
                       for m, rows in enumerate((5, 7, 3))]
            log.write(json.dumps({"Event": "SparkListenerTaskEnd", "Stage ID": n, "Task Metrics": {
                "Executor Run Time": 2000}, "Task Info": {"Partition ID": 0, "Accumulables": updates}}) + "\n")
    found, damaged = qualify([path])
    assert not damaged
    assert [(c.rows, c.seconds) for c in found] == [((10, 14, 6), 4.0), ((5, 7, 3), 2.0)]
    assert {c.condition for c in found} == {"r.k = s.l AND r.x < s.a"}
    assert found[0].reason.startswith("inner join of two streams, which plain SQL takes by the hint SPLITJOIN; ")
    assert found[0].execution == "1: pairs, id = 1, runId = 2, batch = 1"


def test_names_with_spaces_and_names_that_occur_twice(tmp_path: Path) -> None:
    found = joined(tmp_path, "CartesianProduct ((my col#1 < a-b#2) AND (a#3 < a#4))", "Scan [my col#1,a#3]",
                   "Scan [a-b#2,a#4]")
    assert found.condition == 'r."my col" < s."a-b" AND r.a < s.a'
    found = joined(tmp_path, "CartesianProduct ((x#1 < a#2) AND (x#3 < a#4))", "Scan [x#1,x#3]", "Scan [a#2,a#4]")
    assert found.condition == "r.x < s.a AND r.x_3 < s.a_4"


@pytest.mark.parametrize(("text", "keys", "rest"), [
    ("SortMergeJoin [k#1, f(a#2, b#3)], [k#4, c#5L], Inner, (x#6 < y#7)",
     [("k#1", "k#4"), ("f(a#2, b#3)", "c#5L")], "(x#6 < y#7)"),
    ("BroadcastHashJoin [k#1], [k#2], Inner, BuildRight, (x#6 < y#7), false", [("k#1", "k#2")], "(x#6 < y#7)"),
    ("BroadcastHashJoin [k#1], [k#2], Inner, BuildLeft, false", [("k#1", "k#2")], ""),
    ("ShuffledHashJoin [k#1], [k#2], Inner, BuildRight", [("k#1", "k#2")], ""),
    (STREAMING.format(k=1, l=2, full="null"), [("k#1", "l#2")], ""),
])
def test_what_spark_prints_of_a_join(text: str, keys: list[tuple[str, str]], rest: str) -> None:
    assert _condition(PlanNode(text.split()[0], text, (), {})) == (keys, rest)


def test_local_clocks_are_not_elapsed_time() -> None:
    """As `stream_join` does: Spark counts differences, and days, by the clock of the session's time zone."""
    def read(text: str, zone: str) -> str:
        types = dict.fromkeys((1, 2), pa.timestamp("us", "UTC"))
        return read_condition(text, lambda n: "r" if n == 1 else "s", {1: "t", 2: "u"}, types, {}, zone).text

    for text in ("((t#1 - u#2) <= INTERVAL '05:00' MINUTE TO SECOND)", "(t#1 <= u#2 + INTERVAL '1' DAY)"):
        for zone in ("UTC", "+05:30", ""):
            assert "INTERVAL" in read(text, zone)
        with pytest.raises(PredicateError, match="by the clock of the session's time zone, Europe/Rome"):
            read(text, "Europe/Rome")
    assert read("(t#1 <= u#2 + INTERVAL '23' HOUR)", "Europe/Rome") == read("(t#1 <= u#2 + INTERVAL '23' HOUR)", "UTC")
