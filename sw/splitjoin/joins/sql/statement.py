"""A statement's tree → the parts of a SELECT-FROM-WHERE over two streams or more: its items, its tables and its
conditions. Errors mark any other part and say what to do.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.lang.kind import How

from .trees import FromItem, FromJoin, StatementText, condition_tree, conjunction, from_trees, statement_tree

T = TokenType
#: What to write instead of EXISTS, and of IN with a SELECT.
SEMI = ("instead of EXISTS or IN with a SELECT write FROM r SEMI JOIN s ON r.x = s.a, and ANTI JOIN instead of "
        "NOT EXISTS")
#: The kinds of join whose rows have no column of S.
CHOOSING = ("semi", "anti")
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
}
#: Words that cannot be next to a comma.
_BETWEEN = {T.SELECT, T.ALL, T.FROM, T.WHERE, T.ON, T.JOIN, T.INNER, T.CROSS, T.COMMA, T.ALIAS}
_BEHIND_WHERE = {T.GROUP_BY, T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH}
_READ = {"expressions", "from_", "joins", "where", "order", "limit", "offset"}
#: Words by which a number of rows begins.
_COUNTS = (T.LIMIT, T.FETCH)
#: The joins of three tables and more: any that streams take, inner ones and a LEFT JOIN at the end, or inner ones.
Kinds = Literal["any", "left last", "inner"]
#: The kinds of each, and the name of the others.
_STEPS: Mapping[Kinds, tuple[tuple[How, ...], str]] = {
    "any": (("inner", "left", "semi", "anti", "asof", "asof_left"),
            "a join that is not INNER, LEFT, SEMI, ANTI or ASOF"),
    "left last": (("inner",), "a join that is not inner, but for a LEFT JOIN at the end,"),
    "inner": (("inner",), "a join that is not inner"),
}


@dataclass(frozen=True)
class TableName:
    """A table as the text names it: its ``name``, the ``label`` that its columns are written with, and its tree."""

    name: str
    label: str
    node: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.label if self.label == self.name else f"{self.name} {self.label}"


@dataclass(frozen=True)
class SelectItem:
    """An item of the SELECT list: its tree without AS, the name after AS (None without), its text and its place."""

    tree: exp.Expr
    alias: str | None
    text: str = ""
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Ordering:
    """Steps on all rows of the result: ORDER BY its ``terms``, then OFFSET, then LIMIT. ``word``: the first word of
    these clauses, None without any.
    """

    terms: tuple[Any, ...] = ()
    offset: int = 0
    limit: int | None = None
    word: Token | None = None


@dataclass(frozen=True)
class Statement:
    """A SELECT over two ``tables`` or more.

    ``on``: the condition behind each table but the first, None without one; ``hows``: the kind of its join. ``match``:
    of two tables, the comparison of times in MATCH_CONDITION. ``grouped``: True for a row for each combination of the
    tables but the last, by GROUP BY. ``nearest``: of an as-of join in both directions, how many partners a tuple has,
    and the columns of R and S by which they are near. ``reader``: the subclass of `TreeReader` that reads its
    conditions and values; None for that itself.

    Attributes:
        plans: What was made of it over tables of the types that came last.
    """

    source: StatementText
    items: tuple[SelectItem, ...]
    tables: tuple[TableName, ...]
    on: tuple[exp.Expr | None, ...] = (None,)
    where: exp.Expr | None = None
    hows: tuple[How, ...] = ("inner",)
    match: exp.Expr | None = None
    grouped: bool = False
    ordering: Ordering = Ordering()
    nearest: tuple[int, str, str] | None = None
    reader: Any = None
    plans: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The user's text."""
        return self.source.text

    @property
    def how(self) -> How:
        """The kind of the last join, the only one of two tables."""
        return self.hows[-1]

    def present(self, at: int) -> tuple[TableName, ...]:
        """The tables before number ``at`` whose tuples are parts of rows there, not those of semi and anti joins."""
        return tuple(t for t, how in zip(self.tables[:at], ("inner", *self.hows), strict=False) if how not in CHOOSING)


def parse(text: str, reader: Any) -> Statement:
    """The parts of the SELECT in ``text``, in the dialect of its ``reader``. Raises `StatementError` as
    `read_statement`, and for what is no text of a statement.
    """
    return replace(read_statement(*statement_tree(text, reader.dialect)), reader=reader)


def condition_statement(text: str) -> Statement:
    """A join of r and s by the condition ``text``. Raises `PredicateError` for what cannot be read."""
    return Statement(StatementText(text), (), (TableName("r", "r"), TableName("s", "s")), (condition_tree(text),))


def read_statement(tree: Any, source: StatementText) -> Statement:
    """The parts of the SELECT ``tree``. Raises `StatementError` for all that is not SELECT-FROM-WHERE over two tables
    or more, pointing at it.
    """
    source.check_begin((T.SELECT, T.WITH))
    _check_commas(source)
    _check_clauses(tree, source)
    return statement_of(tree, source)


def statement_of(tree: Any, source: StatementText) -> Statement:
    """The parts of ``tree``, a SELECT without other clauses. Raises as `read_statement`."""
    first, *joins = [of for one in from_trees(tree, source) for of in (FromJoin("inner", one.first), *one.joins)]
    if not joins:
        _check_two(tree, source)
    for join in joins:
        _check_join(join, source)
    tables = [_table_name(join.item, source) for join in (first, *joins)]
    labels = [t.label.lower() for t in tables]
    for n, table in enumerate(tables):
        if labels[n] in labels[:n]:
            raise source.on(f"two tables are called {table.label!r}; give them names of their own, such as "
                            f"{table.name} a JOIN {table.name} b", table.node)
    where, hows, several = tree.args.get("where"), tuple(cast(How, join.how) for join in joins), len(joins) > 1
    if not several and hows[0] != "inner" and where is not None:
        raise source.at(_no("WHERE behind a join that is not inner", "put a condition on pairs into ON, and filter the "
                            "rows of the result yourself"), (T.WHERE,))
    items = tuple(SelectItem(of.unalias(), of.alias if isinstance(of, exp.Alias) else None, of.meta.get("text", ""),
                             of.meta.get("place", (0, 0))) for of in tree.expressions)
    on = tuple(None if join.node is None else join.node.args.get("on") for join in joins)
    if several:
        on = tuple(conjunction([one for one in (of, join.match) if one is not None]) if join.match is not None else of
                   for of, join in zip(on, joins, strict=True))
    made = Statement(source, items, tuple(tables), on, None if where is None else where.this, hows,
                     None if several else joins[0].match, tree.args.get("group") is not None, ordering_of(tree, source))
    if made.grouped:
        _check_grouping(tree.args["group"], made)
    return made


def all_tables(tree: Any) -> frozenset[str]:
    """The names of all tables in ``tree``, in lower case."""
    return frozenset(table.name.lower() for table in tree.find_all(exp.Table))


def table_names(tree: Any) -> list[str]:
    """The names of the tables that must be given for ``tree``, in its order: not those that its WITH makes."""
    made = {table.alias.lower() for table in tree.find_all(exp.CTE)}
    names = dict.fromkeys(table.name for table in tree.find_all(exp.Table, bfs=False))
    return [name for name in names if name and name.lower() not in made]


def check_steps(statement: Statement, kinds: Kinds) -> None:
    """Raise `StatementError` for what a join of three tables and more does not take; ``kinds``: its joins."""
    allowed, refused = _STEPS[kinds]
    for n, how in enumerate(statement.hows, 1):
        if how not in allowed and not (kinds == "left last" and how == "left" and n == len(statement.hows)):
            raise statement.source.on(_not_yet(refused), statement.tables[n].node)
    if statement.grouped and kinds != "any":
        raise statement.source.error(_not_yet("GROUP BY"))
    if statement.ordering.word is not None:
        raise statement.source.error(_not_yet(statement.ordering.word.text.upper()))


def _check_commas(source: StatementText) -> None:
    """Raise `StatementError` for a superfluous comma or AS, which sqlglot accepts."""
    inside = [None, *source.outer, None]
    where = source.first((T.WHERE,))
    behind = False
    for before, token, after in zip(inside, inside[1:], inside[2:], strict=False):
        assert token is not None
        ends = after is None or after.token_type in _BETWEEN
        if token.token_type == T.COMMA and (ends or before is None or before.token_type in _BETWEEN):
            raise source.error("a comma must stand between two names or values", token.start, token.end + 1)
        if token.token_type == T.ALIAS and ends:
            raise source.error("a name must follow AS; a keyword needs double quotes", token.start, token.end + 1)
        behind = (behind or token is where) and token.token_type not in _BEHIND_WHERE
        if behind and token.token_type in (T.COMMA, T.JOIN):
            raise source.error("all tables must be named before WHERE", token.start, token.end + 1)


def _check_clauses(tree: Any, source: StatementText) -> None:
    """Raise `StatementError` for a clause of the statement ``tree`` that is not supported."""
    if isinstance(tree, exp.SetOperation):
        name = type(tree).__name__.upper()
        raise source.at(_no(name, "run the statements one by one and put their results together"), (getattr(T, name),))
    if not isinstance(tree, exp.Select):
        raise source.error("a statement must be a SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'", 0)
    for arg, value in tree.args.items():
        if not value or arg in _READ or (
                arg == "group" and (len(_names(value)) == 1 or len(tree.args.get("joins") or ()) > 1)):
            continue  # `_check_grouping` checks the names
        _check_two(tree, source)  # with one table, advice on pairs would mislead
        kinds, name, advice = _CLAUSES.get(arg, ((), arg.strip("_").upper(), "leave it out"))
        if arg == "having" and tree.args.get("group") is not None and _names(tree.args["group"]):
            advice = "filter the rows of the result; a condition on pairs belongs into WHERE"
        raise source.at(_no(name, advice), kinds)
    if not tree.args.get("from_"):
        raise source.at("a statement must say FROM which two tables its rows come, such as FROM r JOIN s ON r.x = s.a",
                        (T.SELECT,))
    if not tree.expressions:
        raise source.at("a SELECT must name at least one column", (T.SELECT,))


def _check_two(tree: Any, source: StatementText) -> None:
    """Raise `StatementError` for a FROM of one table."""
    if not tree.args.get("from_") or tree.args.get("joins") or tree.args["from_"].this.args.get("joins"):
        return
    first, where = tree.args["from_"].this, tree.args.get("where")
    if where is not None and any(e.args.get("query") or isinstance(e, exp.Exists)
                                 for e in where.find_all(exp.Exists, exp.In)):
        raise source.at(f"two tables must be joined, but FROM names only one; {SEMI}", (T.WHERE,))
    if isinstance(first, exp.Table):
        raise source.on("two tables must be joined, but there is only one; to join a table with itself, name it "
                        "twice, such as FROM t a JOIN t b ON …; what reads one table, window functions among it, is "
                        "a statement for duckdb.sql, whose result is a table to give", first)


def _check_join(join: FromJoin, source: StatementText) -> None:
    """Raise `StatementError` for a ``join`` of a kind that there is not, or by names alone."""
    if join.using is None:
        raise source.at(_no("NATURAL JOIN", "say ON which condition, such as ON a.x = b.x"), (T.NATURAL,))
    if join.using:
        name = join.using[0]
        raise source.at(_no("USING", f"write ON, such as ON a.{name} = b.{name}"), (T.USING,))
    if join.how not in get_args(How) or join.nearest is not None:
        words = "NEAREST BY behind a" if join.nearest is not None else join.how.upper().replace("_", " ")
        raise source.error(_no(f"{words} JOIN", "write INNER, LEFT, RIGHT, FULL, SEMI, ANTI, ASOF or ASOF LEFT JOIN"),
                           join.node.meta["start"], join.node.meta["end"] + 1)


def _check_grouping(group: Any, statement: Statement) -> None:
    """Raise `StatementError` unless GROUP BY names the tables whose tuples rows are made of before the last join."""
    source, last = statement.source, statement.tables[-1].label
    bases = [t.label for t in statement.present(len(statement.tables) - 1)]
    named = _names(group)
    if sorted(name.lower() for name in named) != sorted(label.lower() for label in bases):
        raise source.at(f"a join of three streams and more gives a row for each combination of all but the last, so "
                        f"write GROUP BY {', '.join(bases)}, and aggregates over {last}" if len(bases) > 1 or not named
                        else f"GROUP BY {named[0]} is not supported in a SELECT over streams: it must name the first "
                             f"table, {bases[0]}, for a row for each of its tuples", (T.GROUP_BY,))
    if len(statement.tables) > 2 and statement.how not in ("inner", "left"):
        raise source.at(f"aggregates are over the partners of an inner join or a LEFT JOIN, not over those of a "
                        f"{statement.how.upper()} JOIN; change the last join", (T.GROUP_BY,))


def _names(group: Any) -> list[str]:
    """The names in GROUP BY; none if there is anything else."""
    columns = [one for one in group.expressions if isinstance(one, exp.Column) and not one.table]
    others = any(value for name, value in group.args.items() if name != "expressions")
    return [] if others or len(columns) < len(group.expressions) else [column.name for column in columns]


def _table_name(item: FromItem, source: StatementText) -> TableName:
    """The table that ``item``, a part of FROM, names. Raises `StatementError` for anything else."""
    node = item.node
    if item.name is not None:
        return TableName(item.name, item.label, node)
    if not isinstance(node, exp.Table):
        raise source.around(_no("a subquery", "give its rows as a table of their own"), node)
    if not isinstance(node.this, exp.Identifier):
        raise source.on(_no("a table function", "give the table itself by a name"), node)
    if node.args.get("db"):
        raise source.on("a table must have a name of one part, by which its rows are given, not of several; write for "
                        "example FROM trades", node)
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise source.on(_no("a list of column names behind a table", "name columns with AS in the SELECT list"), alias)
    unread = next((name for name, value in node.args.items() if value and name not in ("this", "alias")), "joins")
    what = {"sample": "TABLESAMPLE", "joins": "a join"}.get(unread, unread.strip("_").upper())
    raise source.on(_no(f"{what} behind a table", "give a table that is prepared so"), node)


def ordering_of(tree: Any, source: StatementText) -> Ordering:
    """ORDER BY, LIMIT (or FETCH) and OFFSET of the statement ``tree``. Raises `StatementError` for what they cannot
    have.
    """
    order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
    options = None if limit is None else limit.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise source.at("LIMIT and FETCH take a number of rows only, without PERCENT", _COUNTS)
    counts = [None if part is None else _count(part, source) for part in (limit, offset)]
    word = None if order is limit is offset is None else source.first((T.ORDER_BY, *_COUNTS, T.OFFSET))
    return Ordering(() if order is None else tuple(order.expressions), counts[1] or 0, counts[0], word)


def _count(part: Any, source: StatementText) -> int:
    """The number of rows that LIMIT, FETCH or OFFSET has."""
    number = part.args.get("count") if isinstance(part, exp.Fetch) else part.args.get("expression")
    if not isinstance(number, exp.Literal) or number.is_string or not re.fullmatch(r"[0-9]{1,18}", number.name):
        kinds = (T.OFFSET,) if isinstance(part, exp.Offset) else _COUNTS
        raise source.at("LIMIT, FETCH and OFFSET take a whole number of rows, from 0 and of up to 18 digits", kinds)
    return int(number.name)


def _no(name: str, advice: str) -> str:
    return f"{name} is not supported in a SELECT over streams: {advice}"


def _not_yet(name: str) -> str:
    return (f"{name} is not supported in a join of three tables and more; join two of them first, and their result "
            f"with the next one")
