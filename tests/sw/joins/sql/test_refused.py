"""Refusals of statements: each by its whole text, with the place marked under the user's line."""

from __future__ import annotations

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, SchemaError, SplitJoinError, StatementError

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("d", pa.decimal128(38, 20))])
NOT = "is not supported in a SELECT over streams:"

#: The text with what is marked between bars, the kind of error, its message, and what else there is to know: what is
#: marked instead, "*" where message and mark are parts only,
#: "none" where nothing is marked.
CASES: list[tuple[str, type[SplitJoinError], str, str]] = [
    ("SELECT x FROM r JOIN s ON x = a |GROUP BY| x", StatementError,
     f"GROUP BY x {NOT} it must name the first table, r, for a row for each of its tuples", ""),
    ("SELECT |count(*)| FROM r, s", PredicateError,
     "'count(*)': the aggregate COUNT is not supported in the SELECT list: a join gives pairs; aggregate the result",
     ""),
    ("SELECT x FROM r, s WHERE |max(a)| > 3", PredicateError,
     "'max(a)': the aggregate MAX is not supported in WHERE: a join gives pairs; aggregate the result", ""),
    ("SELECT x FROM r, s |HAVING| x > 3", StatementError,
     f"HAVING {NOT} a join gives pairs; put the condition on pairs into WHERE", ""),
    ("SELECT x, |max(a)| - 1 AS d FROM r, s GROUP BY r", PredicateError,
     "'max(a)': the aggregate MAX is not supported within a larger value; select it by itself, with AS and a name, and "
     "compute with it on the result", ""),
    ("SELECT x, |corr(a, b)| AS m FROM r, s GROUP BY r", PredicateError,
     "'corr(a, b)': there is no aggregate CORR yet; it may be one of count(*), ", "*"),
    ("SELECT x, |corr(a, b)| + 1 AS m FROM r, s GROUP BY r", PredicateError,
     "'corr(a, b)': there is no aggregate CORR yet; it may be one of count(*), ", "*"),
    ("SELECT x, count(*) AS n FROM r, s WHERE |max(a)| > 3 GROUP BY r", PredicateError,
     "'max(a)': the aggregate MAX is not supported in WHERE, which chooses the pairs that are aggregated; filter the "
     "rows of the result", ""),
    ("SELECT x, count(*) AS n FROM r, s GROUP BY r |HAVING| count(*) > 3", StatementError,
     f"HAVING {NOT} filter the rows of the result; a condition on pairs belongs into WHERE", ""),
    ("SELECT x FROM r, s ORDER BY |b|", SchemaError,
     "neither table has a column 'b'; the columns are r.ts, r.x, r.name, r.tags, s.ts, s.a, s.d", ""),
    ("SELECT x FROM r, s ORDER BY |2|", StatementError,
     "ORDER BY takes columns of the result by their numbers or names, which are x, or values of the tables' columns",
     ""),
    ("SELECT x AS n FROM r, s ORDER BY |n| + 1", StatementError, "ORDER BY takes columns of the result by their", "*"),
    ("SELECT x FROM r SEMI JOIN s ON x = a ORDER BY |a|", StatementError, "a SEMI JOIN gives columns of r only", "*"),
    ("SELECT tags FROM r, s ORDER BY |tags|", StatementError,
     "'tags': ORDER BY needs values with an order, but this is list<item: string>", ""),
    ("SELECT x FROM r, s |LIMIT| ALL", StatementError,
     "LIMIT, FETCH and OFFSET take a whole number of rows, from 0 and of up to 18 digits", ""),
    ("SELECT x FROM r, s |OFFSET| 1.5", StatementError,
     "LIMIT, FETCH and OFFSET take a whole number of rows, from 0 and of up to 18 digits", ""),
    ("SELECT x FROM r, s |LIMIT| 3 PERCENT", StatementError,
     "LIMIT and FETCH take a number of rows only, without PERCENT", ""),
    ("SELECT |DISTINCT| x FROM r, s", StatementError,
     f"DISTINCT {NOT} every pair is a row of its own; do that to the result", ""),
    ("SELECT x FROM r |ASOF RIGHT JOIN| s ON x = a", StatementError,
     f"ASOF RIGHT JOIN {NOT} write INNER, LEFT, RIGHT, FULL, SEMI, ANTI, ASOF or ASOF LEFT JOIN", ""),
    ("SELECT x FROM r |RIGHT SEMI JOIN| s ON x = a", StatementError, "RIGHT SEMI JOIN is not supported: write INNER, "
     "LEFT, RIGHT, FULL, SEMI or ANTI, each with or without ASOF", ""),
    ("SELECT x FROM r |CROSS JOIN| s ON x = a", StatementError,
     "a CROSS JOIN has no condition; leave it out, or the word CROSS", ""),
    ("SELECT x FROM r |JOIN| s NEAREST BY DISTANCE x", StatementError, "NEAREST BY behind a JOIN is not supported in a",
     "*"),
    ("SELECT x FROM r |POSITIONAL JOIN| s", StatementError, f"POSITIONAL JOIN {NOT} write INNER, LEFT", "*"),
    ("SELECT x FROM r LEFT JOIN s ON x = a |WHERE| x > 1", StatementError,
     f"WHERE behind a join that is not inner {NOT} put a condition on pairs into ON, and filter the rows of the result "
     f"yourself", ""),
    ("SELECT x FROM r |NATURAL| JOIN s", StatementError,
     f"NATURAL JOIN {NOT} say ON which condition, such as ON a.x = b.x", ""),
    ("SELECT x FROM r JOIN s |USING| (ts)", StatementError, f"USING {NOT} write ON, such as ON a.ts = b.ts", ""),
    ("SELECT x FROM r |JOIN| s", StatementError,
     "a JOIN needs ON and a condition, such as ON r.x = s.a; without a condition write CROSS JOIN", ""),
    ("SELECT x FROM |r|", StatementError,
     "two tables must be joined, but there is only one; to join a table with itself, name it twice, such as FROM t a "
     "JOIN t b ON …; what reads one table, window functions among it, is a statement for duckdb.sql, whose "
     "result is a table to give", ""),
    ("SELECT x FROM |r| QUALIFY x = 1", StatementError, "two tables must be joined, but there is only one; ", "*"),
    ("SELECT |x|", StatementError,
     "a statement must say FROM which two tables its rows come, such as FROM r JOIN s ON r.x = s.a", "SELECT"),
    ("SELECT x FROM |(SELECT 1)| r, s", StatementError, f"a subquery {NOT} give its rows as a table of their own", ""),
    ("SELECT x FROM r, s WHERE |x IN (SELECT a FROM s)|", PredicateError,
     "'x IN (SELECT a FROM s)': a SELECT within WHERE is not supported; instead of EXISTS or IN with a SELECT write "
     "FROM r SEMI JOIN s ON r.x = s.a, and ANTI JOIN instead of NOT EXISTS", ""),
    ("SELECT x FROM r |WHERE| EXISTS (SELECT 1 FROM s WHERE a = x)", StatementError,
     "two tables must be joined, but FROM names only one; instead of EXISTS or IN with a SELECT write FROM r", "*"),
    ("SELECT x FROM r, s WHERE x = a |GROUP BY| x, name", StatementError, f"GROUP BY {NOT} write GROUP BY and the "
     "first table, for a row for each of its tuples, or do that to the result", ""),
    ("SELECT x FROM |(r JOIN s ON x = a)|", StatementError, f"a subquery {NOT} give its rows as a table of their own",
     ""),
    ("SELECT (SELECT |1|) AS one FROM r, s", PredicateError,
     "'(SELECT 1)': a subquery is not supported in the SELECT list; give its rows as a table of their own", ""),
    ("SELECT |row_number| () OVER (ORDER BY x) FROM r, s", PredicateError,
     "a window function is not supported in the SELECT list; compute it on the result", "*"),
    ("SELECT x FROM r, s |WINDOW| w AS (ORDER BY x)", StatementError,
     f"WINDOW {NOT} the windows of the streams are given by window=…, outside the text", ""),
    ("SELECT x FROM r, s |QUALIFY| x = 1", StatementError, f"QUALIFY {NOT} put the condition on pairs into WHERE", ""),
    ("|WITH| c AS (SELECT 1) SELECT x FROM r, s", StatementError,
     f"WITH {NOT} write one SELECT over the two tables themselves", ""),
    ("SELECT x FROM r, s |UNION| ALL SELECT x FROM r, s", StatementError,
     f"UNION {NOT} run the statements one by one and put their results together", ""),
    ("SELECT x FROM |r| TABLESAMPLE (10), s", StatementError,
     f"TABLESAMPLE behind a table {NOT} give a table that is prepared so", "*"),
    ("SELECT x FROM |db.r|, s", StatementError,
     "a table must have a name of one part, by which its rows are given, not of several; write for example FROM trades",
     ""),
    ("SELECT x FROM |range|(3), s", StatementError, f"a table function {NOT} give the table itself by a name", "*"),
    ("SELECT p FROM r AS |t (p|, q), s", StatementError,
     f"a list of column names behind a table {NOT} name columns with AS in the SELECT list", "*"),
    ("SELECT x FROM r, |r|", StatementError,
     "two tables are called 'r'; give them names of their own, such as r a JOIN r b", ""),
    ("SELECT |* EXCEPT (x)| FROM r, s", StatementError, f"* EXCEPT {NOT} write out the columns", ""),
    ("SELECT |r.* EXCEPT (x)| FROM r, s", StatementError, f"* EXCEPT {NOT} write out the columns", ""),
    ("|DELETE| FROM r", StatementError,
     "a statement must begin with SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'", ""),
    ("|FROM| r, s SELECT x", StatementError,
     "a statement must begin with SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'", ""),
    ("|r|.x = s.a", StatementError,
     "a statement must begin with SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'", ""),
    ("SELECT x FROM r, s|;| SELECT 2", StatementError,
     "one statement is needed, not several; leave out all behind the ';'", ""),
    ("SELECT x, a AS one, |d AS one| FROM r, s", StatementError,
     "result columns must have distinct names, but 'one' would occur more than once; give one of them another name "
     "with AS", ""),
    ("SELECT r.x, |r.x| FROM r, s", StatementError,
     "result columns must have distinct names, but 'x' would occur more than once; give one of them another name with "
     "AS", ""),
    ("SELECT |ts| FROM r, s", SchemaError, "column 'ts' is ambiguous: it could be r.ts or s.ts; write which", ""),
    ("SELECT t.x FROM r t, s u WHERE |ts| > 1", SchemaError,
     "column 'ts' is ambiguous: it could be t.ts or u.ts; write which", ""),
    ("SELECT |r.nam| FROM r, s", SchemaError,
     "table r has no column 'nam' (did you mean 'name'?); its columns are ts, x, name, tags", ""),
    ("SELECT x FROM r, s WHERE |nam| = 'a'", SchemaError,
     "neither table has a column 'nam' (did you mean 'name'?); the columns are r.ts, r.x, r.name, r.tags, s.ts, s.a, "
     "s.d", ""),
    ("SELECT |t.x| FROM r, s", SchemaError, "there is no table 't'; the tables are r and s", ""),
    ("SELECT |t.*| FROM r, s", SchemaError, "there is no table 't'; the tables are r and s", ""),
    ("SELECT |r.x| FROM r t, s", SchemaError, "the table 'r' is called 't' in this statement; write t for it", ""),
    ("SELECT x - a AS gap FROM r, s WHERE |gap| > 3", SchemaError,
     "neither table has a column 'gap'; a name that the SELECT list gives with AS is not known in WHERE: repeat the "
     "expression", ""),
    ("SELECT x FROM r, s\nWHERE |x + name| = 3", PredicateError,
     "'x + name': '+' needs numbers, or times that can be combined, not int32 and string", ""),
    ("SELECT x FROM r, s WHERE |x|", PredicateError,
     "'x': a condition (true or false) is needed here, but this is int32", "*"),
    ("SELECT |tags| = 1 FROM r, s", SchemaError, "column r.tags has type list<item: string>, which a join condition",
     "*"),
    ("SELECT |sin(x)| FROM r, s", PredicateError,
     "'sin(x)': function SIN is not supported in the SELECT list; it may hold columns, literals,", "*"),
    ("SELECT d * d * d AS cube FROM r, s", PredicateError,
     "'d * d * d': a decimal has up to 38 digits, but all digits behind the point of this one are more; multiply fewer "
     "decimals, or divide by 1 for a float", "none"),
    ("SELECT 1e30 AS big FROM r, s", PredicateError,
     "'1e30': a whole number in the result must fit 64 bits, but this one never does; write a decimal or a float",
     "none"),
    ("", StatementError, "the statement is empty; write for example 'SELECT * FROM r JOIN s ON r.x = s.a'", "none"),
    (" ; ", StatementError, "the statement is empty; write for example 'SELECT * FROM r JOIN s ON r.x = s.a'", "none"),
    ("SELECT x FROM r, s WHERE", StatementError,
     "the statement 'SELECT x FROM r, s WHERE' cannot be read at line 1, column 20, after 'SELECT x FROM r, s': "
     "something must follow 'WHERE'", "none"),
    ("SELECT x FROM r, s WHERE name = 'ann", StatementError,
     "the statement \"SELECT x FROM r, s WHERE name = 'ann\" cannot be read: the ' opened at line 1, column 33 is not "
     "closed", "none"),
    ("SELECT abs|(|x FROM r, s", StatementError, "'(' has no counterpart", ""),
    ("SELECT x|)| FROM r, s", StatementError, "')' has no counterpart", ""),
    ("SELECT (x|]| FROM r, s", StatementError, "']' has no counterpart", ""),
    ("SELECT |,| x FROM r, s", StatementError, "a comma must stand between two names or values", ""),
    ("SELECT x|,| FROM r, s", StatementError, "a comma must stand between two names or values", ""),
    ("SELECT ALL|,| x FROM r, s", StatementError, "a comma must stand between two names or values", ""),
    ("SELECT x FROM r, s|,|", StatementError, "a comma must stand between two names or values", ""),
    ("SELECT x FROM r |AS|, s", StatementError, "a name must follow AS; a keyword needs double quotes", ""),
    ("SELECT x FROM r WHERE x = a|,| s", StatementError, "all tables must be named before WHERE", ""),
    ("SELECT x FROM r WHERE x = 3 |JOIN| s ON x = a", StatementError, "all tables must be named before WHERE", ""),
    ("SELECT |r.tags.x| FROM r, s", PredicateError, "a name of more than two parts is not supported in the SELECT list",
     "*"),
    ("SELECT x FROM r JOIN JOIN s", StatementError,
     "the statement 'SELECT x FROM r JOIN JOIN s' cannot be read at line 1, column 22, after 'SELECT x FROM r JOIN': a "
     "table's name is expected, not 'JOIN'", "none"),
    ("SELECT FROM r, s", StatementError, "a SELECT must name at least one column", "SELECT"),
]


@pytest.mark.parametrize(("marked", "kind", "said", "how"), CASES, ids=[c[0][:50] for c in CASES])
def test_refused_at_its_place(marked: str, kind: type[SplitJoinError], said: str, how: str) -> None:
    text = marked.replace("|", "")
    with pytest.raises(SplitJoinError) as caught:
        splitjoin.sql(text, r=R, s=S, window="ROWS 3")
    assert (SchemaError if isinstance(caught.value, SchemaError) else type(caught.value)) is kind
    message, *shown = str(caught.value).split("\n")
    assert message == said or (how == "*" and said in message)
    if how == "none":
        assert not shown
        return
    line, mark = shown
    part = how if how not in ("", "*") else marked.split("|")[1]
    assert line.strip() in text.split("\n")
    begin = mark.index("^")
    assert mark.strip("^ ") == ""
    if how == "*":
        assert line[begin:].startswith(part)
    else:
        assert line[begin:begin + len(mark.strip())] == part



def test_nesting_without_end_is_refused() -> None:
    deep = "(" * 300 + "x = a" + ")" * 300
    with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep"):
        splitjoin.sql(f"SELECT x FROM r, s WHERE {deep}", r=R, s=S, window="ROWS 3")
    with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep"):
        splitjoin.sql(f"SELECT {'+'.join(['x'] * 300)} FROM r, s", r=R, s=S, window="ROWS 3")


def test_select_out_of_place() -> None:
    made = splitjoin.sql("SELECT x FROM r, s", r=R, s=S, window="ROWS 3")
    with pytest.raises(SchemaError) as caught:
        splitjoin.open(made, select=["x"])
    assert str(caught.value) == "the result columns are those of the statement's SELECT list; leave select out"
