"""SQL text → the parts of a SELECT-FROM-WHERE over two streams: its items, its two tables and its conditions, as trees
of sqlglot. Errors mark any other part and say what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import StatementError
from splitjoin.lang.ir import too_deep
from splitjoin.lang.kind import How
from splitjoin.lang.locations import marked
from splitjoin.lang.sql.parser import Sql
from splitjoin.lang.sql.source import sql_tokens, unreadable, untokenizable

__all__ = ["SEMI", "Ordering", "SelectItem", "SeveralTables", "Statement", "StatementText", "TableName", "all_tables",
           "check_clauses", "check_join", "check_table", "grouping", "join_how", "joined", "outer_tokens", "parse",
           "read_tree", "select_items", "table_name", "table_start", "written"]

T = TokenType
#: What to write instead of EXISTS, and of IN with a SELECT.
SEMI = ("instead of EXISTS or IN with a SELECT write FROM r SEMI JOIN s ON r.x = s.a, and ANTI JOIN instead of "
        "NOT EXISTS")
_AFTER = "do that to the result"
#: Arguments of sqlglot's Select: the words by which the part begins, its name, and what to do instead.
_CLAUSES: dict[str, tuple[tuple[TokenType, ...], str, str]] = {
    "with_": ((T.WITH,), "WITH", "write one SELECT over the two tables themselves"),
    "distinct": ((T.DISTINCT,), "DISTINCT", f"every pair is a row of its own; {_AFTER}"),
    "group": ((T.GROUP_BY,), "GROUP BY", f"write GROUP BY and the first table, for a row for each of its "
                                       f"tuples, or {_AFTER}"),
    "having": ((T.HAVING,), "HAVING", "a join gives pairs; put the condition on pairs into WHERE"),
    "qualify": ((T.QUALIFY,), "QUALIFY", "put the condition on pairs into WHERE"),
    "windows": ((T.WINDOW,), "WINDOW", "the windows of the streams are given by window=…, outside the text"),
    "sort": ((T.SORT_BY,), "SORT BY", _AFTER),
    "cluster": ((T.CLUSTER_BY,), "CLUSTER BY", _AFTER),
    "distribute": ((T.DISTRIBUTE_BY,), "DISTRIBUTE BY", _AFTER),
    "into": ((T.INTO,), "INTO", "the rows are what is returned; write them yourself"),
    "locks": ((T.FOR,), "FOR UPDATE", "leave it out"),
    "hint": ((T.HINT,), "a hint", "leave it out; the device is given by device=…"),
    "laterals": ((T.LATERAL,), "LATERAL", "write one SELECT over the two tables themselves"),
}
#: Words that cannot be next to a comma.
_BETWEEN = {T.SELECT, T.ALL, T.FROM, T.WHERE, T.ON, T.JOIN, T.INNER, T.CROSS, T.COMMA, T.ALIAS}
_READ = {"expressions", "from_", "joins", "where", "order", "limit", "offset"}
_SETS: dict[type[exp.Expr], tuple[tuple[TokenType, ...], str]] = {
    exp.Union: ((T.UNION,), "UNION"), exp.Except: ((T.EXCEPT,), "EXCEPT"),
    exp.Intersect: ((T.INTERSECT,), "INTERSECT"),
}
_OUTER: dict[str, How] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
_FILTERS: dict[str, How] = {"SEMI": "semi", "ANTI": "anti"}
#: Words of a join that is not inner.
_SIDES = {"LEFT": T.LEFT, "RIGHT": T.RIGHT, "FULL": T.FULL}
_KINDS = {"SEMI": T.SEMI, "ANTI": T.ANTI, "STRAIGHT_JOIN": T.STRAIGHT_JOIN, "OUTER": T.OUTER}
_METHODS = {"NATURAL": T.NATURAL, "ASOF": T.ASOF}
#: The side and kind in the text of a join, and the kind of join.
_HOW: dict[tuple[str, str], How] = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner",
    **{(side, kind): how for side, how in _OUTER.items() for kind in ("", "OUTER")},
    **{(side, kind): how for kind, how in _FILTERS.items() for side in ("", "LEFT")},
}
_JOIN_READ = {"this", "on", "kind", "side", "method", "match_condition"}


class StatementText:
    """The ``text`` of a statement, with ``outer``, its tokens outside parentheses: makes errors that mark a part."""

    def __init__(self, text: str, outer: Sequence[Token]):
        self._text, self._outer = text, outer

    def error(self, said: str, start: int | None = None, end: int | None = None) -> StatementError:
        """An error ``said``, with the line of the text in which ``start`` lies and a mark under it."""
        if start is None:
            return StatementError(said)
        begin = self._text.rfind("\n", 0, start) + 1
        line = self._text[begin:].split("\n", 1)[0]
        stop = start + 1 if end is None else end
        return StatementError(f"{said}\n{marked(line, start - begin, min(stop - begin, len(line)))}")

    def at(self, said: str, kinds: Sequence[TokenType], nth: int = 0) -> StatementError:
        """An error ``said`` at the ``nth`` of the words of these ``kinds`` outside parentheses."""
        found = [t for t in self._outer if t.token_type in kinds]
        if len(found) <= nth:
            return self.error(said)
        return self.error(said, found[nth].start, found[nth].end + 1)

    def on(self, said: str, tree: exp.Expr) -> StatementError:
        """An error ``said`` at ``tree``."""
        spans = [n.meta for n in tree.walk() if "start" in n.meta]
        if not spans:
            return self.error(said)
        return self.error(said, min(m["start"] for m in spans), max(m["end"] for m in spans) + 1)

    def around(self, said: str, tree: exp.Expr) -> StatementError:
        """An error ``said`` at the parentheses that hold ``tree``, a table."""
        begins = min((n.meta["start"] for n in tree.walk() if "start" in n.meta), default=0)
        opened = [t.start for t in self._outer if t.token_type == T.L_PAREN and t.start <= begins]
        closed = [t.end + 1 for t in self._outer if t.token_type == T.R_PAREN and t.start >= begins]
        return self.error(said, opened[-1], closed[0]) if opened and closed else self.on(said, tree)

    def has(self, kind: TokenType) -> bool:
        """True if there is a word of this kind outside parentheses."""
        return any(t.token_type == kind for t in self._outer)

    def check_begin(self) -> None:
        """Raise `StatementError` unless the text is one statement and begins with SELECT."""
        if not self._outer or self._outer[0].token_type not in (T.SELECT, T.WITH):
            word = self._outer[0] if self._outer else None
            raise self.error("a statement must begin with SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'",
                             0 if word is None else word.start, None if word is None else word.end + 1)
        again = [n for n, t in enumerate(self._outer) if t.token_type == T.SEMICOLON]
        if again:
            raise self.at("one statement is needed, not several; leave out all behind the ';'", (T.SEMICOLON,))

    def check_commas(self) -> None:
        """Raise `StatementError` for a superfluous comma or AS, which sqlglot accepts."""
        inside = [None, *self._outer, None]
        for before, token, after in zip(inside, inside[1:], inside[2:], strict=False):
            assert token is not None
            ends = after is None or after.token_type in _BETWEEN
            if token.token_type == T.COMMA and (ends or before is None or before.token_type in _BETWEEN):
                raise self.error("a comma must stand between two names or values", token.start, token.end + 1)
            if token.token_type == T.ALIAS and ends:
                raise self.error("a name must follow AS; a keyword needs double quotes", token.start, token.end + 1)
        where = next((t.start for t in self._outer if t.token_type == T.WHERE), None)
        for token in self._outer:
            if token.token_type in (T.GROUP_BY, T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH):
                break
            if where is not None and token.start > where and token.token_type in (T.COMMA, T.JOIN):
                raise self.error("all tables must be named before WHERE", token.start, token.end + 1)


def check_clauses(tree: Any, source: StatementText) -> None:
    """Raise `StatementError` for a clause of the statement ``tree`` that is not supported."""
    if type(tree) in _SETS:
        kinds, name = _SETS[type(tree)]
        raise source.at(_no(name, "run the statements one by one and put their results together"), kinds)
    if not isinstance(tree, exp.Select):
        raise source.error("a statement must be a SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'", 0)
    for arg, value in tree.args.items():
        if not value or arg in _READ:
            continue
        if arg == "group" and (_grouped_by(value) is not None or len(tree.args.get("joins") or ()) > 1):
            continue  # of several joins `parse_multiway` checks it
        _check_two(tree, source)  # with one table, advice on pairs would mislead
        kinds, name, advice = _CLAUSES.get(arg, ((), arg.strip("_").upper(), "leave it out"))
        if arg == "having" and grouping(tree) is not None:
            advice = "filter the rows of the result; a condition on pairs belongs into WHERE"
        raise source.at(_no(name, advice), kinds)
    if not tree.args.get("from_"):
        raise source.at("a statement must say FROM which two tables its rows come, such as FROM r JOIN s ON r.x = s.a",
                        (T.SELECT,))
    if not tree.expressions:
        raise source.at("a SELECT must name at least one column", (T.SELECT,))


def grouping(tree: Any) -> str | None:
    """The table that the statement ``tree`` groups by; None if it does not group."""
    group = tree.args.get("group")
    return None if group is None else _grouped_by(group)


def _grouped_by(group: Any) -> str | None:
    """The only name in GROUP BY; None if there is anything else."""
    others = [name for name, value in group.args.items() if value and name != "expressions"]
    if others or len(group.expressions) != 1 or not isinstance(group.expressions[0], exp.Column):
        return None
    column = group.expressions[0]
    return None if column.args.get("table") is not None else str(column.name)


def check_join(tree: exp.Select, source: StatementText) -> Any:
    """The only join of the statement. Raises `StatementError` unless it joins two tables, in a kind that there
    is.
    """
    joins, first = joined(tree)
    if not joins:
        _check_two(tree, source)
        raise source.around(_subquery(), first)
    if len(joins) > 1:
        raise SeveralTables(str(source.on("two tables can be joined here, not more; join two of them first, and their "
                                          "result with the next one", joins[1].this)))
    join = joins[0]
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if method == "NATURAL":
        raise source.at(_no("NATURAL JOIN", "say ON which condition, such as ON a.x = b.x"), (T.NATURAL,))
    how = join_how(join)
    if how is None:
        words = " ".join(word for word in (method, side, kind) if word)
        known = [kinds[word] for kinds, word in ((_METHODS, method), (_SIDES, side), (_KINDS, kind)) if word in kinds]
        raise source.at(_no(words if words.endswith("JOIN") else f"{words} JOIN",
                            "write INNER, LEFT, RIGHT, FULL, SEMI, ANTI, ASOF or ASOF LEFT JOIN"), known or (T.JOIN,))
    if join.args.get("using"):
        names = join.args["using"]
        raise source.at(_no("USING", f"write ON, such as ON a.{names[0].name} = b.{names[0].name}"), (T.USING,))
    if kind == "CROSS" and join.args.get("on") is not None:
        raise source.at("a CROSS JOIN has no ON; write JOIN … ON, or put the condition into WHERE", (T.ON,))
    matched = join.args.get("match_condition") is not None
    if matched and method != "ASOF":
        raise source.at("MATCH_CONDITION compares the times of an ASOF JOIN; leave it out, or write ASOF JOIN",
                        (T.MATCH_CONDITION,))
    if kind != "CROSS" and join.args.get("on") is None and source.has(T.JOIN) and not matched:
        raise source.at("a JOIN needs ON and a condition, such as ON r.x = s.a; without a condition write CROSS JOIN",
                        (T.JOIN,))
    unread = [name for name, value in join.args.items() if value and name not in _JOIN_READ]
    if unread:
        raise source.at(_no(f"{unread[0].upper()} in a join", "leave it out"), (T.JOIN,))
    if how != "inner" and tree.args.get("where") is not None:
        raise source.at(_no("WHERE behind a join that is not inner", "put a condition on pairs into ON, and filter the "
                            "rows of the result yourself"), (T.WHERE,))
    return join


class SeveralTables(StatementError):
    """The error for a statement that joins more than two tables."""


def _check_two(tree: Any, source: StatementText) -> None:
    """Raise `StatementError` for a FROM of one table."""
    if not tree.args.get("from_"):
        return
    joins, first = joined(tree)
    where = tree.args.get("where")
    if not joins and where is not None and any(e.args.get("query") or isinstance(e, exp.Exists)
                                               for e in where.find_all(exp.Exists, exp.In)):
        raise source.at(f"two tables must be joined, but FROM names only one; {SEMI}", (T.WHERE,))
    if not joins and isinstance(first, exp.Table):
        raise source.on("two tables must be joined, but there is only one; to join a table with itself, name it "
                        "twice, such as FROM t a JOIN t b ON …; what reads one table, window functions among it, is "
                        "a statement for duckdb.sql, whose result is a table to give", first)


def joined(tree: Any) -> tuple[list[Any], Any]:
    """The joins of the statement ``tree``, and the first table or what stands in its place."""
    first = tree.args["from_"].this
    joins = list(tree.args.get("joins") or [])
    if isinstance(first, exp.Table) and first.args.get("joins"):
        joins = [*first.args["joins"], *joins]
    return joins, first


def join_how(join: Any) -> How | None:
    """The kind of join that the tree ``join`` asks for; None if there is no such kind.

    An ASOF JOIN with MATCH_CONDITION gives every tuple of the first table, as in Snowflake.
    """
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if method == "ASOF":
        if kind not in ("", "INNER", "OUTER") or side not in ("", "LEFT"):
            return None
        return "asof_left" if side or join.args.get("match_condition") is not None else "asof"
    return None if method else _HOW.get((side, kind))


def check_table(tree: Any, source: StatementText) -> None:
    """Raise `StatementError` unless ``tree`` is a table's name, with or without an alias."""
    if not isinstance(tree, exp.Table):
        raise source.around(_subquery(), tree)
    if not isinstance(tree.this, exp.Identifier):
        raise source.on(_no("a table function", "give the table itself by a name"), tree)
    if tree.args.get("db") or tree.args.get("catalog"):
        raise source.on("a table must have a name of one part, by which its rows are given, not of several; write for "
                        "example FROM trades", tree)
    if tree.args.get("joins"):
        raise source.on("two tables can be joined, not more; join two of them first, and their result with the next "
                        "one", tree)
    alias = tree.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise source.on(_no("a list of column names behind a table", "name columns with AS in the SELECT list"), alias)
    unread = [name for name, value in tree.args.items() if value and name not in ("this", "alias")]
    if unread:
        what = "TABLESAMPLE" if unread[0] == "sample" else unread[0].strip("_").upper()
        raise source.on(_no(f"{what} behind a table", "give a table that is prepared so"), tree)


def table_start(tree: Any) -> int:
    """The offset in the text at which the name of the table ``tree`` begins."""
    return int(tree.this.meta.get("start", 0))


def _no(name: str, advice: str) -> str:
    return f"{name} is not supported in a SELECT over streams: {advice}"


def _subquery() -> str:
    return _no("a subquery", "give its rows as a table of their own")


#: Words by which a number of rows begins.
_COUNTS = (TokenType.LIMIT, TokenType.FETCH)
_PAIRS = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET,
          TokenType.L_BRACE: TokenType.R_BRACE}


@dataclass(frozen=True)
class TableName:
    """A table as the text names it: its ``name``, and the ``label`` that its columns are written with."""

    name: str
    label: str
    start: int

    def __str__(self) -> str:
        return self.label if self.label == self.name else f"{self.name} {self.label}"


@dataclass(frozen=True)
class SelectItem:
    """An item of the SELECT list: its tree without AS, the name after AS (None without), its text and its place."""

    tree: exp.Expr
    alias: str | None
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Ordering:
    """Steps on all rows of the result: ORDER BY its ``terms``, then OFFSET, then LIMIT.

    ``words``: the words of the text by which the clauses begin, each with its place.
    """

    terms: tuple[Any, ...] = ()
    offset: int = 0
    limit: int | None = None
    words: tuple[tuple[str, int, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is no such clause."""
        return not self.words


@dataclass(frozen=True)
class Statement:
    """A SELECT over two tables; R is the first of them.

    ``match``: the comparison of times in MATCH_CONDITION. ``grouped``: True for a row for each tuple of R, by GROUP BY.
    ``nearest``: of an as-of join in both directions, how many partners a tuple has, and the columns of R and S by which
    they are near. ``named``: all tables that the text names, in lower case, those of a SELECT within it among them.
    """

    text: str
    items: tuple[SelectItem, ...]
    tables: tuple[TableName, TableName]
    on: exp.Expr | None
    where: exp.Expr | None
    how: How = "inner"
    match: exp.Expr | None = None
    grouped: bool = False
    ordering: Ordering = Ordering()
    nearest: tuple[int, str, str] | None = None
    named: frozenset[str] = frozenset()


def read_tree(text: str) -> tuple[list[Token], list[Token], StatementText, Any]:
    """The tokens of the SELECT in ``text``, those outside parentheses, the text for errors, and sqlglot's tree.

    Raises `StatementError` for what is no statement.
    """
    try:
        tokens = sql_tokens(text)
    except TokenError as error:
        raise StatementError(untokenizable(text, error, "statement")) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    outer, unpaired = outer_tokens(tokens)
    source = StatementText(text, outer)
    if unpaired is not None:
        raise source.error(f"{unpaired.text!r} has no counterpart", unpaired.start, unpaired.end + 1)
    if not tokens:
        raise StatementError("the statement is empty; write for example 'SELECT * FROM r JOIN s ON r.x = s.a'")
    source.check_begin()
    try:
        tree = cast(Any, Sql().parser().parse(tokens, text)[0])
    except ParseError as error:
        raise StatementError(unreadable(text, error, "statement")) from None
    except RecursionError:
        raise too_deep() from None
    source.check_commas()
    return tokens, outer, source, tree


def parse(text: str) -> Statement:
    """The parts of the SELECT in ``text``. Raises `StatementError` for all that is not SELECT-FROM-WHERE over two
    tables, pointing at it.
    """
    tokens, outer, source, tree = read_tree(text)
    check_clauses(tree, source)
    join = check_join(tree, source)
    tables = [table_name(t, source) for t in (tree.args["from_"].this, join.this)]
    if tables[0].label.lower() == tables[1].label.lower():
        raise source.error(f"two tables are called {tables[1].label!r}; give them names of their own, such as "
                           f"{tables[1].name} a JOIN {tables[1].name} b", tables[1].start, tables[1].start)
    by = grouping(tree)
    if by is not None and by.lower() != tables[0].label.lower():
        raise source.at(f"GROUP BY {by} is not supported in a SELECT over streams: it must name the first table, "
                        f"{tables[0].label}, for a row for each of its tuples", (TokenType.GROUP_BY,))
    where = tree.args.get("where")
    return Statement(text, tuple(select_items(tree.expressions, tokens, text)), (tables[0], tables[1]),
                     join.args.get("on"), None if where is None else where.this, join_how(join) or "inner",
                     join.args.get("match_condition"), by is not None, _ordering(tree, outer, source),
                     named=all_tables(tree))


def all_tables(tree: Any) -> frozenset[str]:
    """The names of all tables in ``tree``, in lower case."""
    return frozenset(table.name.lower() for table in tree.find_all(exp.Table))


def _ordering(tree: Any, outer: list[Token], source: StatementText) -> Ordering:
    """ORDER BY, LIMIT (or FETCH) and OFFSET of the statement ``tree``. Raises `StatementError` for what they cannot
    have.
    """
    order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
    terms = () if order is None else tuple(order.expressions)
    unread = [term for term in terms if any(value for name, value in term.args.items()
                                            if name not in ("this", "desc", "nulls_first"))]
    if unread or (order is not None and any(value for name, value in order.args.items() if name != "expressions")):
        raise source.at("ORDER BY takes columns of the result, each with ASC or DESC and NULLS FIRST or LAST only",
                        (TokenType.ORDER_BY,))
    options = None if limit is None else limit.args.get("limit_options")
    asked = options is not None and any(options.args.get(name) for name in ("percent", "with_ties"))
    if limit is not None and (asked or limit.args.get("expressions")):
        raise source.at("LIMIT and FETCH take a number of rows only, without PERCENT, WITH TIES and BY", _COUNTS)
    counts = [None if part is None else _count(part, source) for part in (limit, offset)]
    words = tuple((t.text, t.start, t.end + 1) for t in outer
                  if t.token_type in (TokenType.ORDER_BY, *_COUNTS, TokenType.OFFSET))
    return Ordering(terms, counts[1] or 0, counts[0], words)


def _count(part: Any, source: StatementText) -> int:
    """The number of rows that LIMIT, FETCH or OFFSET has."""
    number = part.args.get("count") if isinstance(part, exp.Fetch) else part.args.get("expression")
    if not isinstance(number, exp.Literal) or number.is_string or not re.fullmatch(r"[0-9]{1,18}", number.name):
        kinds = (TokenType.OFFSET,) if isinstance(part, exp.Offset) else _COUNTS
        raise source.at("LIMIT, FETCH and OFFSET take a whole number of rows, from 0 and of up to 18 digits", kinds)
    return int(number.name)


def outer_tokens(tokens: list[Token]) -> tuple[list[Token], Token | None]:
    """The tokens outside all parentheses, and the first parenthesis that has no counterpart."""
    opened: list[Token] = []
    found: list[Token] = []
    for token in tokens:
        if token.token_type in _PAIRS.values() and (
                not opened or _PAIRS[opened.pop().token_type] != token.token_type):
            return found, token
        if not opened:
            found.append(token)
        if token.token_type in _PAIRS:
            opened.append(token)
    return found, opened[0] if opened else None


def table_name(tree: exp.Expr, source: StatementText) -> TableName:
    """The table that ``tree``, a part of FROM, names. Raises `StatementError` for anything else."""
    check_table(tree, source)
    alias = tree.args.get("alias")
    name = tree.name
    return TableName(name, name if alias is None else alias.name, table_start(tree))


def select_items(trees: list[exp.Expr], tokens: list[Token], text: str) -> list[SelectItem]:
    """The items of a SELECT list with their texts."""
    items = []
    for tree in trees:
        begin, end = tree.meta["item"]
        alias, stop = (tree.alias, end - 1) if isinstance(tree, exp.Alias) else (None, end)
        if alias is not None and tokens[stop - 1].token_type == TokenType.ALIAS:
            stop -= 1
        items.append(SelectItem(tree.this if alias is not None else tree, alias, written(tokens[begin:stop], text),
                                tokens[begin].start, tokens[end - 1].end + 1))
    return items


def written(words: list[Token], text: str) -> str:
    """The words of the text, without comments and line breaks."""
    gaps = ["" if a.end + 1 == b.start else " " for a, b in pairwise(words)]
    return "".join(text[w.start:w.end + 1] + gap for w, gap in zip(words, [*gaps, ""], strict=True))
