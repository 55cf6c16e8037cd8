"""The clauses of a SELECT as pieces of the user's own text, which DuckDB reads where they are no join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import StatementError
from splitjoin.lang.sql.source import sql_tokens, untokenizable

from .checks import StatementText
from .parts import is_distinct, outer_tokens, written

__all__ = ["Clauses", "Nested", "clauses", "common_tables", "conjuncts", "item_names", "named_columns",
           "nested_tables", "on_condition", "quoted", "table_names", "using", "words"]

T = TokenType
#: Words that begin a clause behind FROM and WHERE.
_BEHIND = {T.GROUP_BY, T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH}
_SETS = {T.UNION, T.EXCEPT, T.INTERSECT, T.INTO}
_BEFORE_TABLE = {T.FROM, T.JOIN, T.COMMA, T.STRAIGHT_JOIN}


@dataclass(frozen=True)
class Clauses:
    """The pieces of a SELECT without WITH: their beginnings and ends in ``text``, without the words FROM and WHERE.

    ``head``: SELECT and its list; ``where`` is empty where there is none; ``tail``: GROUP BY and all behind it.
    """

    text: str
    tokens: Sequence[Token]
    head: slice
    source: slice
    where: slice
    tail: slice

    def within(self, *pieces: slice) -> list[Token]:
        """The tokens of ``pieces``."""
        return [t for p in pieces for t in self.tokens if p.start <= t.start < p.stop]

    @property
    def is_join(self) -> bool:
        """True if FROM holds more than one table."""
        return any(t.token_type in (T.COMMA, T.JOIN, T.STRAIGHT_JOIN) for t in self.within(self.source))


@dataclass(frozen=True)
class Nested:
    """A SELECT within a statement: its ``name`` as a table (empty for a subquery), its text, and the place of the
    parentheses around it.
    """

    name: str
    text: str
    start: int
    end: int


def quoted(name: str) -> str:
    """``name`` as an SQL name."""
    return '"' + name.replace('"', '""') + '"'


def _tokens(text: str) -> tuple[list[Token], list[Token]]:
    """All tokens of ``text``, and those outside parentheses. Raises `StatementError` for what is no SQL."""
    try:
        tokens = sql_tokens(text)
    except TokenError as error:
        raise StatementError(untokenizable(text, error, "statement")) from None
    while tokens and tokens[-1].token_type == T.SEMICOLON:
        tokens = tokens[:-1]
    outer, unpaired = outer_tokens(tokens)
    if unpaired is not None:
        raise StatementText(text, outer).error(f"{unpaired.text!r} has no counterpart", unpaired.start,
                                               unpaired.end + 1)
    return tokens, outer


def common_tables(text: str) -> tuple[list[Nested], str]:
    """The tables that WITH names, and the SELECT behind them. Raises `StatementError` for recursion."""
    _, outer = _tokens(text)
    if not outer or outer[0].token_type != T.WITH:
        return [], text
    tables, at, source = list[Nested](), 1, StatementText(text, outer)
    if outer[1].token_type == T.RECURSIVE:
        raise source.at("WITH RECURSIVE is not supported: its steps are joins without end; write WITH and tables that "
                        "do not name themselves", (T.RECURSIVE,))
    while True:
        name, at = outer[at], at + 1
        while at < len(outer) and outer[at].text.upper() in ("AS", "NOT", "MATERIALIZED"):
            at += 1
        before = outer[at - 1]
        if at + 1 >= len(outer) or outer[at].token_type != T.L_PAREN or before is name:
            raise source.error("WITH takes a name, AS and a SELECT in parentheses, such as WITH c AS (SELECT …); name "
                               "its columns within the SELECT", name.start, name.end + 1)
        opened, closed = outer[at], outer[at + 1]
        tables.append(Nested(name.text, text[opened.end + 1:closed.start], opened.start, closed.end + 1))
        at += 2
        if at >= len(outer) or outer[at].token_type != T.COMMA:
            break
        at += 1
    return tables, text[outer[at].start:] if at < len(outer) else ""


def clauses(text: str) -> Clauses:
    """The pieces of the SELECT ``text``. Raises `StatementError` unless it is one SELECT, with FROM."""
    tokens, outer = _tokens(text)
    source = StatementText(text, outer)
    source.check_begin()
    wrong = [t for t in outer if t.token_type in _SETS]
    if wrong:
        raise source.error(f"{wrong[0].text.upper()} is not supported behind a join: run the statements one by one and "
                           f"put their rows together", wrong[0].start, wrong[0].end + 1)
    carets = [t for t in tokens if t.token_type == T.CARET]
    if carets:
        raise source.error("^ is XOR in a condition and a power in DuckDB, which computes what is not a join here; "
                           "write xor(x, y) or power(x, y)", carets[0].start, carets[0].end + 1)
    begins = [n for n, t in enumerate(outer) if t.token_type == T.FROM and not is_distinct(outer[:n])]
    if not begins:
        raise source.at("a statement must say FROM which two tables its rows come, such as FROM r JOIN s ON r.x = s.a",
                        (T.SELECT,))
    begin, end = outer[begins[0]], tokens[-1].end + 1
    behind = [t for t in outer[begins[0] + 1:] if t.token_type in _BEHIND or t.text.upper() == "SAMPLE"]
    stop = behind[0].start if behind else end
    if behind and behind[0].text.upper() == "SAMPLE":
        raise source.error("USING SAMPLE is not supported: which rows it leaves is left to chance; leave it out",
                           behind[0].start, behind[0].end + 1)
    wheres = [t for t in outer[begins[0] + 1:] if t.token_type == T.WHERE and t.start < stop]
    where = slice(wheres[0].end + 1, stop) if wheres else slice(stop, stop)
    return Clauses(text, tokens, slice(tokens[0].start, begin.start),
                   slice(begin.end + 1, wheres[0].start if wheres else stop), where, slice(stop, end))


def nested_tables(select: Clauses) -> list[Nested]:
    """The SELECTs in parentheses that FROM has for tables."""
    inside = select.within(select.source)
    outer, _ = outer_tokens(inside)
    nested = []
    for before, opened, closed in zip([None, *outer], outer, outer[1:], strict=False):
        first = next((t for t in inside if t.start > opened.end), None)
        if opened.token_type == T.L_PAREN and (before is None or before.token_type in _BEFORE_TABLE) and (
                first is not None and first.token_type in (T.SELECT, T.WITH)):
            nested.append(Nested("", select.text[opened.end + 1:closed.start], opened.start, closed.end + 1))
    return nested


def using(select: Clauses) -> tuple[list[str], str]:
    """The names in USING, and the text of FROM with ON in its place."""
    outer, _ = outer_tokens(select.within(select.source))
    source = select.text[select.source]
    at = next((n for n, t in enumerate(outer) if t.token_type == T.USING), None)
    if at is None or at + 2 >= len(outer):
        return [], source
    opened, closed = outer[at + 1], outer[at + 2]
    names = [t.text for t in select.within(slice(opened.end + 1, closed.start)) if t.token_type != T.COMMA]
    begin = select.source.start
    return names, f"{source[:outer[at].start - begin]}ON TRUE {source[closed.end + 1 - begin:]}"


def on_condition(select: Clauses) -> tuple[list[str], str]:
    """The conditions behind ON, and the text of FROM with TRUE in their place; as it is where there is not one ON."""
    outer, _ = outer_tokens(select.within(select.source))
    source, begin = select.text[select.source], select.source.start
    ons = [t for t in outer if t.token_type == T.ON]
    if len(ons) != 1:
        return [], source
    end = ons[0].end + 1
    return list(conjuncts(select, slice(end, select.source.stop))), f"{source[:end - begin]} TRUE "


def conjuncts(select: Clauses, piece: slice) -> Iterator[str]:
    """The texts of the conditions in ``piece`` between its outermost ANDs; one, where there is an OR beside them."""
    depth, cut, between, cuts = 0, piece.start, 0, list[slice]()
    for token in select.within(piece):
        kind = token.token_type
        depth += (kind in (T.L_PAREN, T.L_BRACKET, T.L_BRACE, T.CASE)) - (
            kind in (T.R_PAREN, T.R_BRACKET, T.R_BRACE, T.END))
        if depth:
            continue
        if kind == T.OR:
            cuts, cut = [], piece.start
            break
        if kind == T.BETWEEN:
            between += 1
        elif kind == T.AND and between:
            between -= 1
        elif kind == T.AND:
            cuts.append(slice(cut, token.start))
            cut = token.end + 1
    for part in [*cuts, slice(cut, piece.stop)]:
        inside = select.within(part)
        if inside:  # without comments behind it
            yield select.text[inside[0].start:inside[-1].end + 1]


def item_names(select: Clauses, names: Sequence[str]) -> list[str]:
    """``names`` of the columns that DuckDB gives for the SELECT list, made those of a SELECT without it: an expression
    without AS has its text for its name, and columns of one name in both tables that of their table behind it.

    They are as given where a star stands for columns.
    """
    inside = select.within(select.head)[1:]
    if [t.token_type for t in inside[:2]] == [T.DISTINCT, T.ON]:
        return list(names)
    outer = {id(t) for t in outer_tokens(inside)[0]}
    items: list[list[Token]] = [[]]
    for token in inside:
        if id(token) in outer and token.token_type == T.COMMA:
            items.append([])
        elif items[-1] or token.token_type not in (T.DISTINCT, T.ALL):
            items[-1].append(token)
    if len(items) != len(names) or any(item[-1].token_type == T.STAR for item in items if item):
        return list(names)
    texts = []
    for item, name in zip(items, names, strict=True):
        dotted = len(item) == 3 and item[1].token_type == T.DOT
        if dotted and names.count(name) > 1:
            texts.append(f"{name}_{item[0].text}")
        elif len(item) == 1 or dotted or (item[-1].text == name and id(item[-1]) in outer):
            texts.append(name)
        else:
            texts.append(written(item, select.text))
    return texts


def words(tokens: Sequence[Token]) -> dict[str, list[tuple[Any, Any]]]:
    """Every name in ``tokens``, in lower case, with the kinds of the tokens before and behind it each time."""
    places: dict[str, list[tuple[Any, Any]]] = {}
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type not in (T.STRING, T.NUMBER):
            places.setdefault(token.text.lower(), []).append((None if before is None else before.token_type,
                                                              None if after is None else after.token_type))
    return places


def table_names(text: str) -> set[str]:
    """The names in ``text`` that may be those of tables, in lower case."""
    tokens, _ = _tokens(text)
    return {name for name, at in words(tokens).items() if any(before in _BEFORE_TABLE for before, _ in at)}


def named_columns(text: str, names: Sequence[str]) -> set[str]:
    """Those of the columns ``names`` that ``text`` names; all, if it may have a star for them."""
    said = words(_tokens(text)[0])
    stars = any((before, after) != (T.L_PAREN, T.R_PAREN) for before, after in said.get("*", ()))
    return {n for n in names if stars or "columns" in said or n.lower() in said}
