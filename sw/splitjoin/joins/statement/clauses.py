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

__all__ = ["Clauses", "CommonTable", "boolean_terms", "clauses", "common_tables", "conjuncts", "has_star", "item_names",
           "list_items", "named_columns", "quoted", "says_from", "select_first", "selected_tables", "set_operands",
           "table_names", "tokens_of", "words"]

T = TokenType
#: Words that begin a clause behind FROM and WHERE.
_BEHIND = {T.GROUP_BY, T.HAVING, T.QUALIFY, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH}
_SETS = {T.UNION, T.EXCEPT, T.INTERSECT}
#: Words behind the last SELECT of several, which are of them all.
_ENDING = {T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH}
#: Words behind the first table of joins in parentheses.
_BEHIND_FIRST = {T.JOIN, T.LEFT, T.RIGHT, T.FULL, T.INNER, T.CROSS, T.NATURAL, T.SEMI, T.ANTI, T.ASOF, T.ALIAS, T.VAR}
#: Words within which AND and OR are those of a value.
_OPENING = {T.L_PAREN, T.L_BRACKET, T.L_BRACE, T.CASE}
_CLOSING = {T.R_PAREN, T.R_BRACKET, T.R_BRACE, T.END}
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


@dataclass(frozen=True)
class CommonTable:
    """A table that WITH names: its ``name``, the names of its ``columns`` in parentheses (empty without), its text."""

    name: str
    columns: str
    text: str


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


def tokens_of(text: str) -> list[Token]:
    """The tokens of ``text``, without semicolons at its end. Raises `StatementError` for what is no SQL."""
    return _tokens(text)[0]


def select_first(text: str) -> str:
    """``text``, where it begins with FROM as DuckDB allows it, with SELECT first."""
    tokens, outer = _tokens(text)
    if not outer or outer[0].token_type != T.FROM:
        return text
    at = next((t for t in outer if t.token_type == T.SELECT), None)
    if at is None:
        return f"SELECT * {text}"
    behind = [t.start for t in outer if t.start > at.start and (t.token_type in _BEHIND or t.token_type == T.WHERE)]
    stop = behind[0] if behind else tokens[-1].end + 1
    return f"{text[at.start:stop]} {text[:at.start]} {text[stop:]}"


def common_tables(text: str) -> tuple[list[CommonTable], str]:
    """The tables that WITH names, and the SELECT behind them. Raises `StatementError` for recursion."""
    _, outer = _tokens(text)
    if not outer or outer[0].token_type != T.WITH:
        return [], text
    tables, at, source = list[CommonTable](), 1, StatementText(text, outer)
    if outer[1].token_type == T.RECURSIVE:
        raise source.at("WITH RECURSIVE is not supported: its steps are joins without end; write WITH and tables that "
                        "do not name themselves", (T.RECURSIVE,))
    while True:
        name, at, columns = outer[at], at + 1, ""
        if at + 1 < len(outer) and outer[at].token_type == T.L_PAREN:
            columns, at = text[outer[at].start:outer[at + 1].end + 1], at + 2
        begin = at
        while at < len(outer) and outer[at].text.upper() in ("AS", "NOT", "MATERIALIZED"):
            at += 1
        if at + 1 >= len(outer) or outer[at].token_type != T.L_PAREN or at == begin:
            raise source.error("WITH takes a name, AS and a SELECT in parentheses, such as WITH c AS (SELECT …)",
                               name.start, name.end + 1)
        opened, closed = outer[at], outer[at + 1]
        tables.append(CommonTable(name.text, columns, text[opened.end + 1:closed.start]))
        at += 2
        if at >= len(outer) or outer[at].token_type != T.COMMA:
            break
        at += 1
    return tables, text[outer[at].start:] if at < len(outer) else ""


def set_operands(text: str) -> list[slice]:
    """The places of the SELECTs between UNION, EXCEPT and INTERSECT; none without these words."""
    tokens, outer = _tokens(text)
    cuts = [n for n, t in enumerate(outer) if t.token_type in _SETS]
    if not cuts:
        return []
    into = [t for t in outer if t.token_type == T.INTO]
    if into:
        raise StatementText(text, outer).error("INTO is not supported: the rows are what is returned", into[0].start,
                                               into[0].end + 1)
    found, begin = list[slice](), 0
    for n in [*cuts, len(outer)]:
        while begin < n and outer[begin].text.upper() in ("ALL", "DISTINCT", "BY", "NAME"):
            begin += 1
        last = n == len(outer)
        stop = next((m for m in range(begin, n) if last and outer[m].token_type in _ENDING), n)
        end = tokens[-1].end + 1 if stop == len(outer) else outer[stop - 1].end + 1
        whole = stop - begin == 2 and outer[begin].token_type == T.L_PAREN
        found.append(slice(outer[begin].end + 1, outer[begin + 1].start) if whole else slice(outer[begin].start, end))
        begin = n + 1
    return found


def says_from(text: str) -> bool:
    """True if the SELECT ``text`` has FROM."""
    outer = _tokens(text)[1]
    return any(t.token_type == T.FROM and not is_distinct(outer[:n]) for n, t in enumerate(outer))


def clauses(text: str) -> Clauses:
    """The pieces of the SELECT ``text``. Raises `StatementError` unless it is one SELECT, with FROM."""
    tokens, outer = _tokens(text)
    source = StatementText(text, outer)
    source.check_begin()
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


def conjuncts(select: Clauses, piece: slice) -> Iterator[str]:
    """The texts of the conditions in ``piece`` between its outermost ANDs; one, where there is an OR beside them."""
    tokens = select.within(piece)
    terms = [tokens] if len(boolean_terms(tokens, T.OR)) > 1 else boolean_terms(tokens, T.AND)
    for term in terms:
        if term:  # without comments behind it
            yield select.text[term[0].start:term[-1].end + 1]


def boolean_terms(tokens: Sequence[Token], kind: TokenType) -> list[list[Token]]:
    """The tokens between the outermost words AND, or OR, by ``kind``; not the AND of BETWEEN."""
    depth, between, terms = 0, 0, list[list[Token]]([[]])
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        between += not depth and token.token_type == T.BETWEEN
        if depth or token.token_type != kind or (kind == T.AND and between):
            between -= not depth and token.token_type == T.AND and between > 0
            terms[-1].append(token)
        else:
            terms.append([])
    return terms


def list_items(select: Clauses) -> list[list[Token]]:
    """The tokens of each item of the SELECT list, without DISTINCT or ALL in front of the first."""
    inside = select.within(select.head)[1:]
    outer = {id(t) for t in outer_tokens(inside)[0]}
    items: list[list[Token]] = [[]]
    for token in inside:
        if id(token) in outer and token.token_type == T.COMMA:
            items.append([])
        elif items[-1] or token.token_type not in (T.DISTINCT, T.ALL):
            items[-1].append(token)
    return items


def has_star(item: Sequence[Token]) -> bool:
    """True if ``item``, of the SELECT list, is a star, or a table's, perhaps with EXCLUDE, REPLACE or RENAME behind."""
    kinds = [t.token_type for t in item]
    return kinds[:1] == [T.STAR] or kinds[1:3] == [T.DOT, T.STAR]


def item_names(select: Clauses, names: Sequence[str]) -> list[str]:
    """``names`` of the columns that DuckDB gives for the SELECT list, made those of a SELECT without it: an expression
    without AS has its text for its name, and columns of one name in both tables that of their table behind it.

    They are as given where a star stands for columns.
    """
    inside = select.within(select.head)[1:]
    if [t.token_type for t in inside[:2]] == [T.DISTINCT, T.ON]:
        return list(names)
    outer, items = {id(t) for t in outer_tokens(inside)[0]}, list_items(select)
    if len(items) != len(names) or any(map(_stands_for_columns, items)):
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


def _stands_for_columns(item: Sequence[Token]) -> bool:
    """True for an item such as ``*``, ``r.* EXCLUDE (x)`` or ``COLUMNS(…)``, which may stand for one column, too."""
    called = len(item) > 1 and item[0].text.lower() == "columns" and item[1].token_type == T.L_PAREN
    return has_star(item) or called


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
    typed = {of[5].text.lower() for of in zip(*(tokens[n:] for n in range(6)), strict=False)
             if [t.text.upper() for t in of[:3]] == ["BY", "(", "TYPE"]}  # JOIN BY (TYPE SEMI) t
    return typed | {name for name, at in words(tokens).items() if any(
        before in _BEFORE_TABLE or (before == T.L_PAREN and after in _BEHIND_FIRST) for before, after in at)}


def selected_tables(text: str) -> set[str]:
    """The names behind FROM and JOIN in ``text``, in lower case."""
    return {name for name, at in words(_tokens(text)[0]).items() if any(before in (T.FROM, T.JOIN) for before, _ in at)}


def named_columns(text: str, names: Sequence[str]) -> set[str]:
    """Those of the columns ``names`` that ``text`` names; all, if it may have a star for them."""
    said = words(_tokens(text)[0])
    stars = any((before, after) != (T.L_PAREN, T.R_PAREN) for before, after in said.get("*", ()))
    return {n for n in names if stars or "columns" in said or n.lower() in said}
