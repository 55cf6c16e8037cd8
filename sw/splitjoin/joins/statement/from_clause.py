"""The FROM of a SELECT as pieces of the user's own text: its tables, and the joins between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import StatementError

from .checks import StatementText
from .clauses import Clauses, conjuncts
from .parts import outer_tokens

__all__ = ["FromItem", "FromJoin", "FromTree", "Nearest", "from_trees"]

T = TokenType
#: Words that may stand before JOIN.
_BEFORE_JOIN = {"NATURAL", "ASOF", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "POSITIONAL"}
_BEHIND_TABLE = {T.ON, T.USING, T.MATCH_CONDITION}
_QUERIES = {T.SELECT, T.WITH, T.VALUES, T.FROM}


@dataclass(frozen=True)
class FromItem:
    """One table in FROM: the ``name`` of a table that is given, a SELECT in parentheses (``query``), joins in
    parentheses (``tree``), or anything else that DuckDB makes rows of, with its ``text``.

    ``columns``: the names behind the ``label``, if it has a list of them, and PIVOT or UNPIVOT.
    ``body``: the text without these two.
    """

    text: str
    label: str
    name: str | None = None
    query: str | None = None
    tree: FromTree | None = None
    columns: str = ""
    body: str = ""


@dataclass(frozen=True)
class Nearest:
    """NEAREST BY: the ``k`` rows of which ``rank``, an SQL text, is least, or with ``by_similarity`` greatest."""

    k: int
    rank: str
    by_similarity: bool


@dataclass(frozen=True)
class FromJoin:
    """A join with ``item``: its ``how`` ("inner", "left", …, "asof", "asof_left", …, "positional"), the conditions
    behind ON, MATCH_CONDITION's, and the names in USING; None for those that both sides have (NATURAL). Or the
    ``nearest`` rows of the item for each row before it.
    """

    how: str
    item: FromItem
    on: tuple[str, ...] = ()
    using: tuple[str, ...] | None = ()
    match: str | None = None
    nearest: Nearest | None = None


@dataclass(frozen=True)
class FromTree:
    """A table and the joins behind it, from left to right."""

    first: FromItem
    joins: tuple[FromJoin, ...]

    def items(self) -> list[FromItem]:
        """The tables that it is made of, from left to right; those in parentheses too."""
        return [leaf for item in (self.first, *(join.item for join in self.joins))
                for leaf in (item.tree.items() if item.tree is not None else [item])]


def from_trees(found: Clauses) -> list[FromTree]:
    """The trees between the commas of FROM. Raises `StatementError` for joins that are none by a condition."""
    return _Reader(found).trees(found.source)


class _Reader:
    def __init__(self, found: Clauses):
        self._found = found

    def trees(self, piece: slice) -> list[FromTree]:
        outer, _ = outer_tokens(self._found.within(piece))
        commas = [n for n, t in enumerate(outer) if t.token_type == T.COMMA]
        cuts = [-1, *commas, len(outer)]
        return [self._tree(outer[a + 1:b]) for a, b in pairwise(cuts)]

    def _tree(self, outer: Sequence[Token]) -> FromTree:
        if not outer:
            raise StatementError("a comma in FROM must stand between two tables")
        begins = []
        for n, token in enumerate(outer):
            if token.token_type in (T.JOIN, T.STRAIGHT_JOIN):
                begin = n
                while begin and outer[begin - 1].text.upper() in _BEFORE_JOIN and outer[begin - 1].token_type != (
                        T.IDENTIFIER):
                    begin -= 1
                begins.append((begin, n))
        first = self._item(outer[:begins[0][0]] if begins else outer)
        ends = [begin for begin, _ in begins[1:]] + [len(outer)]
        return FromTree(first, tuple(self._join(outer[begin:at + 1], outer[at + 1:end])
                                     for (begin, at), end in zip(begins, ends, strict=False)))

    def _join(self, words: Sequence[Token], rest: Sequence[Token]) -> FromJoin:
        said = [w.text.upper() for w in words]
        if [t.text.upper() for t in rest[:2]] == ["BY", "("]:
            said, rest = self._by_type(said, words, rest), rest[3:]
        near = next((n for n, t in enumerate(rest) if n and t.text.upper() == "NEAREST" and any(
            of.text.upper() in ("DISTANCE", "SIMILARITY") for of in rest[n + 1:n + 4])), None)
        if near is not None:
            return self._nearest(said, words, rest, near)
        at = next((n for n, t in enumerate(rest) if t.token_type in _BEHIND_TABLE), len(rest))
        item, behind = self._item(rest[:at]), rest[at:]
        if "POSITIONAL" in said:
            if behind:
                raise self._error("a POSITIONAL JOIN has no condition; leave ON out, or the word POSITIONAL", behind)
            return FromJoin("positional", item)
        how = self._how(said, words)
        match = None
        if behind and behind[0].token_type == T.MATCH_CONDITION:
            if not how.startswith("asof"):
                raise self._error("MATCH_CONDITION compares the times of an ASOF JOIN; leave it out, or write ASOF "
                                  "JOIN", behind)
            match, behind = self._inside(behind, "MATCH_CONDITION"), behind[3:]
            how = {"asof": "asof_left"}.get(how, how)
        if not behind:
            if said[:1] != ["NATURAL"] and not {"CROSS"} & {*said} and match is None:
                raise self._error("a JOIN needs ON and a condition, such as ON r.x = s.a; without a condition write "
                                  "CROSS JOIN", words)
            return FromJoin(how, item, using=None if "NATURAL" in said else (), match=match)
        if behind[0].token_type == T.USING:
            names = self._found.within(slice(behind[1].end + 1, behind[2].start)) if len(behind) > 2 else []
            if len(behind) > 3 or not names:
                raise self._error("USING takes names in parentheses, and nothing behind them", behind)
            return FromJoin(how, item, using=tuple(t.text for t in names if t.token_type != T.COMMA), match=match)
        again = [t for t in behind[1:] if t.token_type == T.ON]
        if behind[0].token_type != T.ON or again:
            raise self._error("each JOIN needs its own ON right behind its table; or put parentheses around the joins "
                              "that come first", again or behind)
        stop = behind[-1].end + 1
        return FromJoin(how, item, on=tuple(conjuncts(self._found, slice(behind[0].end + 1, stop))), match=match)

    def _by_type(self, said: list[str], words: Sequence[Token], rest: Sequence[Token]) -> list[str]:
        """The words of a join whose kind is written behind it: JOIN BY (TYPE semi)."""
        inside = [t.text.upper() for t in self._found.within(slice(rest[1].end + 1, rest[2].start))]
        kind = inside[1].removesuffix("_JOIN") if len(inside) == 2 and inside[0] == "TYPE" else ""
        if said != ["JOIN"] or kind not in ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"):
            raise self._error(f"JOIN BY (TYPE …) takes INNER, LEFT, RIGHT, FULL, SEMI or ANTI, not {' '.join(inside)}; "
                              f"for MARK, write EXISTS or IN behind SELECT", [*words, rest[2]])
        return [kind, "JOIN"]

    def _nearest(self, said: list[str], words: Sequence[Token], rest: Sequence[Token], near: int) -> FromJoin:
        """A join with the item that ``rest`` begins with, by NEAREST at ``near``: [n] BY DISTANCE or SIMILARITY."""
        said_behind = [t.text.upper() for t in rest[near + 1:]]
        number = said_behind[:1] if rest[near + 1].token_type == T.NUMBER else []
        rank = rest[near + 3 + len(number):]
        if said_behind[len(number):len(number) + 1] != ["BY"] or not rank or (number and not number[0].isdigit()) or (
                number == ["0"]):
            raise self._error("NEAREST takes a number from 1 on, BY, DISTANCE or SIMILARITY, and a value, such as "
                              "NEAREST 2 BY DISTANCE abs(r.x - s.a)", rest[near:])
        how = self._how(said, words)
        if how not in ("inner", "left"):
            raise self._error(f"NEAREST BY is for INNER and LEFT JOIN, not {' '.join(said)}", words)
        item = self._item(rest[:near - (near > 1 and rest[near - 1].text.upper() in ("APPROX", "EXACT"))])
        text = self._found.text[rank[0].start:rank[-1].end + 1]
        by_similarity = said_behind[len(number) + 1] == "SIMILARITY"
        return FromJoin(how, item, nearest=Nearest(int(number[0]) if number else 1, text, by_similarity))

    def _how(self, said: list[str], words: Sequence[Token]) -> str:
        left = [w for w in said if w not in ("NATURAL", "INNER", "OUTER", "JOIN", "CROSS")]
        kind = "_".join(w.lower() for w in left if w != "LEFT" or left[-1] not in ("SEMI", "ANTI"))
        if kind in ("", "straight_join"):
            return "inner"
        if kind not in ("left", "right", "full", "semi", "anti", "asof", "asof_left", "asof_right", "asof_full",
                        "asof_semi", "asof_anti"):
            raise self._error(f"{' '.join(said)} is not supported: write INNER, LEFT, RIGHT, FULL, SEMI or ANTI, each "
                              f"with or without ASOF", words)
        return kind

    def _item(self, outer: Sequence[Token]) -> FromItem:
        text = self._found.text
        if not outer:
            raise StatementError("a JOIN needs a table on each side")
        first, stop, label, columns = outer[0], len(outer), "", ""
        if first.token_type == T.LATERAL:  # a word that DuckDB needs no more than this does
            return self._item(outer[1:])
        turn = next((n for n, t in enumerate(outer) if n and t.text.upper() in ("PIVOT", "UNPIVOT")
                     and t.token_type != T.IDENTIFIER and len(outer) > n + 2), None)
        if turn is not None:
            return self._turned(outer[:turn], outer[turn:])
        if outer[-1].token_type == T.R_PAREN and len(outer) > 3 and outer[-2].token_type == T.L_PAREN and (
                outer[-4].token_type in (T.ALIAS, T.R_PAREN) or len(outer) == 4):
            columns = text[outer[-2].start:outer[-1].end + 1]  # t(a, b)
            stop -= 2
        called = stop - 1
        if called > 0 and outer[called].token_type != T.R_PAREN and outer[called - 1].token_type != T.DOT:
            label, stop = outer[called].text, called
            if outer[stop - 1].token_type == T.ALIAS:
                stop -= 1
        said = outer[:stop]
        inside = self._found.within(slice(first.end + 1, said[-1].start)) if first.token_type == T.L_PAREN else []
        item = text[first.start:said[-1].end + 1]
        if len(said) == 2 and inside and first.token_type == T.L_PAREN:
            piece = slice(first.end + 1, said[1].start)
            if inside[0].token_type in _QUERIES and inside[0].token_type != T.VALUES:
                return FromItem(item, label, query=text[piece], columns=columns, body=item)
            if inside[0].token_type != T.VALUES and not label:
                trees = self.trees(piece)
                if len(trees) == 1:
                    return FromItem(item, label, tree=trees[0])
        if len(said) == 1 and not columns:
            return FromItem(item, label or first.text, name=first.text)
        whole = text[first.start:outer[-1].end + 1]
        called_itself = first.text if first.token_type != T.L_PAREN else ""
        return FromItem(whole, label or called_itself, columns=columns, body=item)

    def _turned(self, outer: Sequence[Token], turn: Sequence[Token]) -> FromItem:
        """The item ``outer`` with PIVOT or UNPIVOT, ``turn``, and a name behind it: DuckDB turns its rows."""
        text, item = self._found.text, self._item(outer)
        end = next(n for n, t in enumerate(turn) if t.token_type == T.R_PAREN)
        called, turned = turn[end + 1:], text[turn[0].start:turn[end].end + 1]
        if called and called[-1].token_type == T.R_PAREN and len(called) > 2:  # AS p(a, b)
            turned, called = text[turn[0].start:called[-1].end + 1], called[:-2]
        label = called[-1].text if called else item.label
        query = item.query if item.query is not None else f"SELECT * FROM {text[outer[0].start:outer[-1].end + 1]}"
        return FromItem(text[outer[0].start:turn[end].end + 1], label, query=query,
                        columns=f"{item.columns} {turned}")

    def _inside(self, outer: Sequence[Token], word: str) -> str:
        if len(outer) < 3 or outer[1].token_type != T.L_PAREN:
            raise self._error(f"{word} takes a condition in parentheses", outer)
        return self._found.text[outer[1].end + 1:outer[2].start]

    def _error(self, said: str, at: Sequence[Token]) -> StatementError:
        return StatementText(self._found.text, ()).error(said, at[0].start, at[-1].end + 1)
