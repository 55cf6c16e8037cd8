"""Statements as trees of sqlglot in DuckDB's words: FROM as tables and joins, the names that a tree says, and the table
of each column, by sqlglot's `qualify`. Errors mark the place of a part in the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError, UnsupportedError
from sqlglot.optimizer.qualify import qualify
from sqlglot.parser import Parser
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.schema import MappingSchema
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import PredicateError, StatementError, first_line
from splitjoin.lang.ir import too_deep
from splitjoin.lang.locations import marked
from splitjoin.lang.sql.source import WholeIntervals, language_functions, unreadable, untokenizable, with_names

from .clauses import unread_clause

#: Words by which a query may begin.
_BEGINS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.L_PAREN}
_PAIRS = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET,
          TokenType.L_BRACE: TokenType.R_BRACE}


class _Tokenizer(DuckDB.Tokenizer):
    IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
    HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
    KEYWORDS: ClassVar[dict[str, Any]] = {
        **DuckDB.Tokenizer.KEYWORDS, "MATCH_CONDITION": TokenType.MATCH_CONDITION, "TIMESTAMP": TokenType.TIMESTAMP,
        "VARCHAR": TokenType.VARCHAR}


class StatementParser(WholeIntervals, DuckDBParser):
    """Parser of `StatementSql`."""

    # Where sqlglot's own parser knows no node for an aggregate of the language, it is read by its name.
    FUNCTIONS: ClassVar[dict[str, Any]] = {"LIST": Parser.FUNCTIONS["LIST"], **language_functions({
        name: node for name, node in DuckDBParser.FUNCTIONS.items() if name not in (
            "BIT_AND", "BIT_OR", "BIT_XOR", "LIST", "XOR")})}
    # Functions of these names have no places in the text by DuckDB's parsers of their own.
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name not in ("MAX", "MIN") and (
            "QUANTILE" not in name)}
    BITWISE = Parser.BITWISE
    EXPONENT: ClassVar[dict[Any, Any]] = {
        word: node for word, node in DuckDBParser.EXPONENT.items() if word != TokenType.CARET}
    TYPE_CONVERTERS = Parser.TYPE_CONVERTERS

    def _parse_expression(self) -> exp.Expr | None:
        begin = self._index
        made: exp.Expr | None = super()._parse_expression()
        if made is not None:  # the numbers of its first token and of the one behind its last
            made.meta["item"] = (begin, self._index)
        return made

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        begin = self._index
        made: exp.Join | None = super()._parse_join(*args, **kwargs)
        if made is not None:  # the place of its words; a comma and JOIN are one in the tree
            words = [self._tokens[begin]]
            while begin + len(words) < self._index and words[-1].token_type not in (
                    TokenType.COMMA, TokenType.JOIN, TokenType.STRAIGHT_JOIN):
                words.append(self._tokens[begin + len(words)])
            made.meta.update(start=words[0].start, end=words[-1].end, comma=words[-1].token_type == TokenType.COMMA)
            if made.this.args.get("version") is not None:
                self._as_of_versions(made)
        return made

    def _as_of_versions(self, join: exp.Join) -> None:
        """Have ``JOIN s FOR SYSTEM_TIME AS OF r.t``, the standard's and Flink's, as an as-of join by the column t of
        both.
        """
        version, on = join.this.args["version"], join.args.get("on")
        of = version.expression
        if (version.this != "TIMESTAMP" or not isinstance(of, exp.Column) or not of.table or on is None or join.method
                or join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER")):
            self.raise_error(_VERSIONS)
        join.this.set("version", None)
        since = exp.column(of.this.copy(), exp.to_identifier(join.this.alias_or_name, quoted=True))
        join.set("method", "ASOF")
        join.set("on", exp.and_(on, exp.GTE(this=of.copy(), expression=since), copy=False))

    def _parse_cte(self) -> Any:
        before = [t.token_type for t in self._tokens[:self._index] if t.token_type != TokenType.RECURSIVE][-2:]
        if before[1:] == [TokenType.WITH] and before[0] in (TokenType.R_PAREN, TokenType.COMMA):
            self.raise_error("a SELECT has one WITH; write a comma in place of the second", self._prev)
        return super()._parse_cte()

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        nearest = self._curr.text.upper() == "NEAREST" and self._next.text.upper() == "BY"
        return None if nearest else super()._parse_table_alias(*args, **kwargs)

    def _parse_number(self) -> exp.Expr | None:
        before = self._prev.text.upper() == "NEAREST" and self._curr.text.upper() == "BY"
        return exp.Literal.number(1) if before else super()._parse_number()


_VERSIONS = ("FOR SYSTEM_TIME AS OF stands behind a table that is joined by JOIN or LEFT JOIN with ON, and names the "
             "time column of a table before it, which the versions have under the same name, such as JOIN s FOR "
             "SYSTEM_TIME AS OF r.ts ON r.k = s.k")


class StatementSql(DuckDB):
    """DuckDB's words, with Spark's `name` and Snowflake's MATCH_CONDITION, where trees of what the language has are as
    `Sql` makes them: ^ is XOR.
    """

    Tokenizer = _Tokenizer
    Parser = StatementParser


class StatementText:
    """The ``text`` of a statement, with ``outer``, its tokens outside parentheses: makes errors that mark a part."""

    def __init__(self, text: str, outer: Sequence[Token] = ()):
        self.text, self.outer = text, outer

    def error(self, said: str, start: int | None = None, end: int | None = None) -> StatementError:
        """An error ``said``, with the line of the text in which ``start`` lies and a mark under it."""
        if start is None:
            return StatementError(said)
        begin = self.text.rfind("\n", 0, start) + 1
        line = self.text[begin:].split("\n", 1)[0]
        stop = start + 1 if end is None else end
        return StatementError(f"{said}\n{marked(line, start - begin, min(stop - begin, len(line)))}")

    def first(self, kinds: Collection[TokenType]) -> Token | None:
        """The first word of these ``kinds`` outside parentheses."""
        return next((t for t in self.outer if t.token_type in kinds), None)

    def at(self, said: str, kinds: Collection[TokenType]) -> StatementError:
        """An error ``said`` at the first of the words of these ``kinds`` outside parentheses."""
        found = self.first(kinds)
        return self.error(said) if found is None else self.error(said, found.start, found.end + 1)

    def on(self, said: str, tree: exp.Expr) -> StatementError:
        """An error ``said`` at ``tree``."""
        place = self.span(tree)
        return self.error(said, *place) if place[1] else self.error(said)

    def span(self, tree: exp.Expr) -> tuple[int, int]:
        """The place of ``tree`` in the text, about, by the places of its parts; (0, 0) if it has none."""
        spans = [n.meta for n in tree.walk() if "start" in n.meta]
        return min((m["start"] for m in spans), default=0), max((m["end"] + 1 for m in spans), default=0)

    def around(self, said: str, tree: exp.Expr) -> StatementError:
        """An error ``said`` at the parentheses that hold ``tree``, a table."""
        begins = min((n.meta["start"] for n in tree.walk() if "start" in n.meta), default=0)
        opened = [t.start for t in self.outer if t.token_type == TokenType.L_PAREN and t.start <= begins]
        closed = [t.end + 1 for t in self.outer if t.token_type == TokenType.R_PAREN and t.start >= begins]
        return self.error(said, opened[-1], closed[0]) if opened and closed else self.on(said, tree)

    def check_begin(self, words: Collection[TokenType]) -> None:
        """Raise `StatementError` unless the text is one statement and begins with one of these ``words``."""
        if not self.outer or self.outer[0].token_type not in words:
            word = self.outer[0] if self.outer else None
            raise self.error("a statement must begin with SELECT, such as 'SELECT * FROM r JOIN s ON r.x = s.a'",
                             0 if word is None else word.start, None if word is None else word.end + 1)
        if self.first((TokenType.SEMICOLON,)):
            raise self.at("one statement is needed, not several; leave out all behind the ';'", (TokenType.SEMICOLON,))


def statement_tree(text: str, dialect: type[Dialect] = StatementSql) -> tuple[Any, StatementText]:
    """The tree of the statement ``text`` in ``dialect``, each item of a SELECT list with its own text at ``text`` and
    its ``place`` in its meta data, and the text for errors. Raises `StatementError` for what is no statement.
    """
    try:
        tokens = with_names(dialect().tokenize(text))
    except TokenError as error:
        raise StatementError(untokenizable(text, error, "statement")) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    tokens = [t for t, after in zip(tokens, [*tokens[1:], None], strict=False) if after is None or (
        t.text.upper(), after.text.upper()) != ("EXACT", "NEAREST")]  # what NEAREST means without APPROX
    outer, unpaired = _outer_tokens(tokens)
    source = StatementText(text, outer)
    if unpaired is not None:
        raise source.error(f"{unpaired.text!r} has no counterpart", unpaired.start, unpaired.end + 1)
    if not tokens:
        raise StatementError("the statement is empty; write for example 'SELECT * FROM r JOIN s ON r.x = s.a'")
    source.check_begin(_BEGINS)
    try:
        tree: Any = dialect().parser().parse(tokens, text)[0]
    except ParseError as error:
        raise StatementError(unreadable(text, error, "statement")) from None
    except RecursionError:
        raise too_deep() from None
    if any(t.text.upper() == "FOR" for t in tokens) and tree.find(exp.Version):
        raise StatementError(_VERSIONS)
    if (unread := unread_clause(tree)) is not None:
        word = next((t for t in tokens if t.text.upper().startswith(unread[0])), None) if unread[0] else None
        raise source.error(unread[1], *(() if word is None else (word.start, word.end + 1)))
    for item in (of for select in tree.find_all(exp.Select) for of in select.expressions if "item" in of.meta):
        begin, end = item.meta["item"]
        item.meta["place"] = tokens[begin].start, tokens[end - 1].end + 1
        if isinstance(item, exp.Alias):
            end -= 2 if end > 1 and tokens[end - 2].token_type == TokenType.ALIAS else 1
        words = tokens[begin:end]  # without AS and the name behind it, comments and line breaks
        gaps = ["" if a.end + 1 == b.start else " " for a, b in pairwise(words)]
        item.meta["text"] = "".join(text[w.start:w.end + 1] + gap for w, gap in zip(words, [*gaps, ""], strict=True))
    return tree, source


def _outer_tokens(tokens: Sequence[Token]) -> tuple[list[Token], Token | None]:
    """The tokens outside all parentheses, and the first parenthesis that has no counterpart."""
    opened, found = list[Token](), list[Token]()
    for token in tokens:
        if token.token_type in _PAIRS.values() and (not opened or _PAIRS[opened.pop().token_type] != token.token_type):
            return found, token
        if not opened:
            found.append(token)
        if token.token_type in _PAIRS:
            opened.append(token)
    return found, opened[0] if opened else None


def condition_tree(text: str) -> exp.Expr:
    """The tree of the condition ``text``. Raises `PredicateError` for what cannot be read."""
    try:
        return sqlglot.parse_one(text, dialect=StatementSql, into=exp.Condition)
    except SqlglotError as error:
        raise PredicateError(first_line(error)) from None


def check_meaning(tree: exp.Expr, source: StatementText) -> None:
    """Raise `StatementError` for what DuckDB means otherwise than the language, and for recursion."""
    if any(of.args.get("recursive") for of in tree.find_all(exp.With)):
        raise source.at("WITH RECURSIVE is not supported: its steps are joins without end; write WITH and tables that "
                        "do not name themselves", (TokenType.RECURSIVE,))
    if caret := tree.find(exp.BitwiseXor):
        raise source.on("^ is XOR in a condition and a power in DuckDB, which computes what is not a join here; write "
                        "xor(x, y) or power(x, y)", caret)


@dataclass(frozen=True)
class FromItem:
    """One table in FROM: the ``name`` of a table that is given, a SELECT in parentheses (``query``), joins in
    parentheses (``tree``), or anything else that DuckDB makes rows of.

    ``node``: its tree; ``label``: what its columns are written with, empty for none.
    """

    node: Any
    label: str
    name: str | None = None
    query: exp.Query | None = None
    tree: FromTree | None = None

    def called(self, label: str) -> str:
        """Its text for DuckDB, under the name ``label``."""
        node = self.node.copy()
        if not node.args.get("pivots"):
            alias = node.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(label, quoted=True))
            node.set("alias", alias)
        return sql_text(node)


@dataclass(frozen=True)
class FromJoin:
    """A join with ``item``: its ``how`` ("inner", "left", …, "asof", "asof_left", …, "positional"), the conditions
    behind ON, MATCH_CONDITION's, and the names in USING; None for those that both sides have (NATURAL). Or the
    ``nearest`` rows of the item for each row before it. ``node``: its tree.
    """

    how: str
    item: FromItem
    on: tuple[exp.Expr, ...] = ()
    using: tuple[str, ...] | None = ()
    match: exp.Expr | None = None
    nearest: exp.Nearest | None = None
    node: Any = None


@dataclass(frozen=True)
class FromTree:
    """A table and the joins behind it, from left to right."""

    first: FromItem
    joins: tuple[FromJoin, ...]

    def items(self) -> list[FromItem]:
        """The tables that it is made of, from left to right; those in parentheses too."""
        return [leaf for item in (self.first, *(join.item for join in self.joins))
                for leaf in (item.tree.items() if item.tree is not None else [item])]


def from_trees(select: exp.Select, source: StatementText) -> list[FromTree]:
    """The trees between the commas of FROM. Raises `StatementError` for joins that are none by a condition."""
    return _FromReader(source).trees(select.args["from_"].this, select.args.get("joins") or ())


class _FromReader:
    def __init__(self, source: StatementText):
        self._source = source

    def trees(self, first: Any, joins: Iterable[exp.Join]) -> list[FromTree]:
        joins = [*(first.args.get("joins") or ()), *joins]
        cuts = [0, *(n + 1 for n, join in enumerate(joins) if join.meta.get("comma")), len(joins) + 1]
        nodes = [first, *(join.this for join in joins)]
        return [FromTree(self._item(nodes[a], bare=a == 0), tuple(map(self._join, joins[a:b - 1])))
                for a, b in pairwise(cuts)]

    def _join(self, join: Any) -> FromJoin:
        item, nearest = self._item(join.this), join.args.get("nearest")
        method, side, kind = (str(join.args.get(name) or "").upper() for name in ("method", "side", "kind"))
        on, using, match = join.args.get("on"), join.args.get("using"), join.args.get("match_condition")
        conditions = [part for part in (on, match, *(using or ())) if part is not None]
        if method == "POSITIONAL" or (kind == "CROSS" and conditions):
            if conditions:
                raise self._error(f"a {method or kind} JOIN has no condition; leave it out, or the word "
                                  f"{method or kind}", join)
            return FromJoin("positional" if method else "inner", item, node=join)
        how = self._how(join, method, side, kind)
        if nearest is not None:
            count = nearest.args.get("count")
            if how not in ("inner", "left"):
                raise self._error(f"NEAREST BY is for INNER and LEFT JOIN, not {side or kind} JOIN", join)
            if count is None or not count.name.isdigit() or not int(count.name):
                raise self._error("NEAREST takes a number from 1 on, BY, DISTANCE or SIMILARITY, and a value, such as "
                                  "NEAREST 2 BY DISTANCE abs(r.x - s.a)", join)
            return FromJoin(how, item, nearest=nearest, node=join)
        if match is not None:
            if not how.startswith("asof"):
                raise self._error("MATCH_CONDITION compares the times of an ASOF JOIN; leave it out, or write ASOF "
                                  "JOIN", join)
            how = {"asof": "asof_left"}.get(how, how)
        natural = method == "NATURAL"
        if not (conditions or natural or kind == "CROSS" or join.meta.get("comma")):
            raise self._error("a JOIN needs ON and a condition, such as ON r.x = s.a; without a condition write CROSS "
                              "JOIN", join)
        return FromJoin(how, item, tuple(conjuncts(on)), None if natural else tuple(n.name for n in using or ()), match,
                        node=join)

    def _how(self, join: Any, method: str, side: str, kind: str) -> str:
        kinds = [word for word in (side, kind) if word not in ("", "INNER", "OUTER", "CROSS", "STRAIGHT_JOIN")]
        if kinds[:1] == ["LEFT"] and kinds[1:] in (["SEMI"], ["ANTI"]):
            kinds = kinds[1:]
        if kind in ("MARK", "SINGLE"):
            raise self._error(f"JOIN BY (TYPE …) takes INNER, LEFT, RIGHT, FULL, SEMI or ANTI, not {kind}; for MARK, "
                              f"write EXISTS or IN behind SELECT", join)
        if len(kinds) > 1 or (kinds and kinds[0] not in ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")):
            raise self._error(f"{' '.join(kinds)} JOIN is not supported: write INNER, LEFT, RIGHT, FULL, SEMI or ANTI, "
                              f"each with or without ASOF", join)
        words = [*(["asof"] if method == "ASOF" else []), *map(str.lower, kinds)]
        return "_".join(words) or "inner"

    def _item(self, node: Any, *, bare: bool = False) -> FromItem:
        """The table ``node``; ``bare`` leaves its joins to the caller."""
        if isinstance(node, exp.Lateral):  # a word that DuckDB needs no more than this does
            alias, inner = node.args.get("alias"), node.this
            node = exp.Subquery(this=inner.this, alias=alias) if isinstance(inner, exp.Subquery) else exp.Table(
                this=inner, alias=alias)
        if node.args.get("joins"):
            joins, node = node.args["joins"], node.copy()
            node.set("joins", None)
            if not bare:
                return FromItem(node, "", tree=FromTree(self._item(node), tuple(map(self._join, joins))))
        alias, pivots, inner = node.args.get("alias"), node.args.get("pivots"), node.this
        label = next((p.alias for p in reversed(pivots or ()) if p.alias), node.alias)
        plain = not (pivots or node.args.get("sample") or (alias is not None and alias.args.get("columns")))
        if isinstance(node, exp.Subquery) and isinstance(inner, exp.Query) and not (
                isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Table)):
            return FromItem(node, label, query=inner)
        if isinstance(node, exp.Subquery) and not label and plain and not isinstance(inner, exp.Values):
            trees = self.trees(inner, ())
            if len(trees) == 1:
                return FromItem(node, label, tree=trees[0])
        if isinstance(node, exp.Table) and isinstance(inner, exp.Identifier) and plain and not node.args.get("db"):
            return FromItem(node, label or inner.name, name=inner.name)
        itself = inner.name if isinstance(inner, exp.Identifier) else sql_text(node).split("(")[0].lower()
        return FromItem(node, label or (itself if isinstance(node, exp.Table) else ""))

    def _error(self, said: str, at: exp.Expr) -> StatementError:
        return self._source.error(said, at.meta.get("start"), at.meta.get("end", 0) + 1)


def conjuncts(tree: exp.Expr | None) -> Iterator[exp.Expr]:
    """The terms of the condition ``tree`` between its outermost ANDs; none for None."""
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    elif tree is not None:
        yield tree


def conjunction(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """All ``conditions`` as one; None without any."""
    made: exp.Expr | None = None
    for one in conditions:
        made = exp.Paren(this=one) if made is None else exp.And(this=made, expression=exp.Paren(this=one))
    return made


def qualified(terms: Sequence[exp.Expr], tables: Mapping[str, Collection[str]],
              given: Mapping[str, Collection[str]]) -> list[exp.Expr | None]:
    """Copies of ``terms`` in which each column has its table, by sqlglot's `qualify`; None for a term of which sqlglot
    cannot tell.

    ``tables``: the names of columns of the tables that the terms are on, by label; ``given``: those of the tables that
    a SELECT in a term may name. All names come in lower case, as DuckDB does not tell cases apart. Columns that are not
    found, or in several tables, have no table.
    """
    if not terms:
        return []
    views = {f"splitjoin_{n}": columns for n, columns in enumerate(tables.values())}
    schema = MappingSchema({name.lower(): {c.lower(): "INT" for c in columns} for name, columns in {
        **given, **views}.items()}, dialect="duckdb", normalize=False)
    sources = [exp.Table(this=exp.to_identifier(view), alias=exp.TableAlias(this=exp.to_identifier(label, quoted=True)))
               for view, label in zip(views, tables, strict=True)]
    known = [None if _is_misread(term, tables, given) else term for term in terms]
    tree = exp.Select(expressions=[exp.Alias(this=term.copy(), alias=exp.to_identifier(f"splitjoin term {n}"))
                                   for n, term in enumerate(known) if term is not None],
                      from_=exp.From(this=sources[0]), joins=[exp.Join(this=one) for one in sources[1:]])
    try:
        found = iter(qualify(tree, schema=schema, dialect="duckdb", expand_alias_refs=False,
                             validate_qualify_columns=False).expressions) if tree.expressions else iter(())
        return [None if term is None else next(found).this.pop() for term in known]
    except (SqlglotError, RecursionError, KeyError, AttributeError):
        return [None] if len(terms) == 1 else [qualified([term], tables, given)[0] for term in terms]


def _is_misread(term: exp.Expr, tables: Mapping[str, Collection[str]], given: Mapping[str, Collection[str]]) -> bool:
    """True if a SELECT in ``term`` has several joins of which USING or NATURAL merges columns, which sqlglot takes for
    those of the first table, or hides one of the ``tables`` around it by another table of the same name.
    """
    around = {label.lower(): [*columns] for label, columns in tables.items()}
    for select in term.find_all(exp.Select):
        joins = select.args.get("joins") or ()
        if len(joins) > 1 and any(join.args.get("using") or join.method == "NATURAL" for join in joins):
            return True
        for source in (*([select.args["from_"].this] if select.args.get("from_") else []), *(j.this for j in joins)):
            of = around.get(source.alias_or_name.lower())
            if of is not None and (source.alias or of != [*given.get(source.name.lower(), ())]):
                return True
    return False


def named_column(label: str, name: str) -> exp.Column:
    """The tree of a column, by its table and its name."""
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(label, quoted=True))


def quoted(name: str) -> str:
    """``name`` as an SQL name."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(tree: exp.Expr) -> str:
    """The text of ``tree`` for DuckDB."""
    try:
        return str(tree.sql("duckdb", comments=False, unsupported_level=ErrorLevel.RAISE))
    except UnsupportedError as error:  # what the text would leave out
        raise StatementError(f"DuckDB has no words for a part of {tree.sql()!r}: {first_line(error)}") from None


def one_line(tree: exp.Expr | str) -> str:
    """The text of ``tree``, as explanations show it."""
    return " ".join((tree if isinstance(tree, str) else sql_text(tree)).split())


def may_join(tree: exp.Expr) -> bool:
    """True if ``tree`` joins tables, in any of its parts, or may do so by a SELECT in a value."""
    tables = (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.Subquery)
    return tree.find(exp.Join) is not None or any(
        query.parent is not None and query is not tree and not isinstance(query.parent, tables)
        for query in tree.find_all(exp.Query))


def names_in(tree: exp.Expr) -> set[str]:
    """Every name in ``tree``, in lower case."""
    return {name.name.lower() for name in tree.find_all(exp.Identifier)}


def has_star(tree: exp.Expr) -> bool:
    """True if ``tree`` may have a star for columns, or COLUMNS."""
    return tree.find(exp.Columns) is not None or any(
        not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))


def said_columns(tree: exp.Expr, names: Sequence[str]) -> list[str]:
    """Those of the columns ``names`` that ``tree`` names; all, if it may have a star for them."""
    said = names_in(tree)
    return [*names] if has_star(tree) else [n for n in names if n.lower() in said]
