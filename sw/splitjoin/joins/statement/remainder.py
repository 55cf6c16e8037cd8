"""`Remainder`: the part of a SELECT that DuckDB computes when its joins have run, and the columns that this needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import PredicateError, StatementError

from .clauses import Clauses, has_star, list_items, quoted, tokens_of, words
from .duckdb_columns import check_order

__all__ = ["NotDuckDBs", "Remainder"]

T = TokenType
Said = dict[str, list[tuple[Any, Any]]]


class NotDuckDBs(PredicateError):
    """The error for a statement of which DuckDB computes nothing, so that another error is its user's."""


class Remainder:
    """The SELECT list of ``found`` and all behind its FROM, over the columns of its ``tables``, by label.

    ``nested``: True for a SELECT within another one, whose columns have DuckDB's names.
    """

    def __init__(self, found: Clauses, tables: Mapping[str, pa.Table], *, nested: bool):
        self._found, self._tables, self._nested = found, tables, nested
        self._hidden, self._written = set[tuple[str, str]](), dict[str, str]()

    def texts(self, where: str) -> tuple[str, str, str]:
        """The SELECT list, ``where`` and what is behind it, with hidden columns under their names."""
        head, tail = (self._found.text[piece] for piece in (self._found.head, self._found.tail))
        return self.shown(head), self.shown(where), self.shown(tail)

    def says(self, label: str, first: str, where: Sequence[str]) -> bool:
        """True if the SELECT, with the conditions ``where``, may say anything of the table ``label`` behind the table
        ``first``.
        """
        said = self._words(" AND ".join(f"({condition})" for condition in where))
        of_table = {label.lower(), *(name.lower() for name in self._tables[label].column_names)}
        own = {name.lower() for name in self._tables[first].column_names}
        return label in self._stars(said) or any(
            name not in own or any(before != T.DOT for before, _ in at) for name, at in said.items()
            if name in of_table)

    @property
    def merges(self) -> bool:
        """True if USING merges columns."""
        return bool(self._hidden)

    def hide(self, label: str, name: str) -> str:
        """The name under which a column, which USING merges with another one, stays for those who name its table."""
        self._hidden.add((label.lower(), name.lower()))
        self._written[self._hidden_name(name)] = name
        return self._hidden_name(name)

    def shown(self, text: str) -> str:
        """``text`` with the hidden columns in place of those that USING merged."""
        if not self._hidden or not text.strip():
            return text
        tokens: list[Token] = tokens_of(text)
        for label, dot, column in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
            if dot.token_type == T.DOT and (label.text.lower(), column.text.lower()) in self._hidden:
                text = text[:column.start] + quoted(self._hidden_name(column.text)) + text[column.end + 1:]
        return text

    def parts(self, parts: Mapping[str, pa.Table], where: str) -> dict[str, pa.Table]:
        """The columns of ``parts`` that the SELECT, with the condition ``where``, names or asks for by a star; one at
        least.
        """
        said = self._words(where)
        stars, qualified = self._stars(said), self._named_stars()
        shown = words(tokens_of(self.shown(self._rest_of(where))))
        self._check(said, parts)
        made = dict[str, pa.Table]()
        for label, part in parts.items():
            hidden = {self._hidden_name(name): name for of, name in self._hidden if of == label.lower()}
            names = [n for n in part.column_names if n not in hidden and (label in stars or n.lower() in said)]
            names += [n for n in hidden if n in part.column_names and n in shown and n not in names]
            if hidden and label.lower() in qualified:
                part, names = self._with_own(label, part, hidden, said)
            elif label in stars and {*names} & {*hidden}:
                name = next(hidden[n] for n in names if n in hidden)
                raise StatementError(f"{name} is one column of both tables, by USING, and * stands for it: write it "
                                     f"without a table, or write ON in place of USING")
            made[label] = part.select(names)
            self._check_names(label, made[label])
        if not any(part.num_columns for part in made.values()):
            label, part = next((label, part) for label, part in parts.items() if part.num_columns)
            made[label] = part.select(part.column_names[:1])
        return made

    def names(self, parts: Mapping[str, pa.Table], found: list[str]) -> list[str]:
        """The names of the result columns, ``found`` by DuckDB: where the SELECT list has stars, a column's name that
        occurs more than once has its table's behind it.
        """
        items, found = list_items(self._found), [self._written.get(n, n) for n in found]
        if self._nested or not any(map(has_star, items)):
            return found
        made = list[tuple[str, str | None]]()
        for item in items:
            kinds, label = [t.token_type for t in item], item[0].text.lower() if item else ""
            if has_star(item):
                out, again = _excluded(item), _replaced(item)
                for of, part in parts.items():
                    for n in part.column_names if kinds[0] == T.STAR or of.lower() == label else ():
                        if not out & {n.lower(), f"{of}.{n}".lower()}:
                            made.append((n, of))
                            out |= again & {n.lower()}  # REPLACE leaves the first column of a name
            elif kinds[1:2] == [T.DOT] and len(item) == 3:
                made.append((item[2].text, item[0].text))
            else:
                made.append((found[len(made)] if len(made) < len(found) else "", None))
        if len(made) != len(found) or any(n.lower() != of.lower() for (n, label), of in zip(made, found, strict=True)
                                          if label is not None):
            return found  # as RENAME and LIKE behind a star make them
        small = [n.lower() for n, _ in made]
        return [f"{n}_{label}" if label is not None and small.count(n.lower()) > 1 else n for n, label in made]

    def _with_own(self, label: str, part: pa.Table, hidden: Mapping[str, str],
                  said: Said) -> tuple[pa.Table, list[str]]:
        """The columns that ``label.*`` stands for: those that USING merged as they were."""
        for name, merged in hidden.items():
            if any(before != T.DOT for before, _ in said.get(merged, ())):
                raise StatementError(f"{merged} is one column of both tables, by USING, but {label}.* stands for its "
                                     f"own one: write {label}.{merged}, or write ON in place of USING")
            own = [n for n in part.column_names if n.lower() == merged]
            if own:
                at = part.column_names.index(own[0])
                part = part.set_column(at, own[0], part.column(name)).drop_columns([name])
            else:
                part = part.rename_columns([merged if n == name else n for n in part.column_names])
        return part, part.column_names

    def _rest_of(self, where: str) -> str:
        head, tail = self._found.text[self._found.head], self._found.text[self._found.tail]
        return f"{head} FROM x WHERE {where or 'TRUE'} {tail}"

    def _words(self, where: str) -> Said:
        return words(tokens_of(self._rest_of(where)))

    def _stars(self, said: Said) -> set[str]:
        """The tables of which all columns are asked for."""
        alone = [before for before, after in said.get("*", ()) if before != T.DOT and not (
            before == T.L_PAREN and after == T.R_PAREN)]
        if "columns" in said or any(before in (T.SELECT, T.COMMA, T.DISTINCT, T.ALL, T.R_PAREN) for before in alone):
            return set(self._tables)
        named = self._named_stars()
        return {label for label in self._tables if label.lower() in named}

    def _named_stars(self) -> set[str]:
        """The words before ``.*``, in lower case."""
        tokens = self._found.tokens
        return {label.text.lower() for label, dot, star in zip(tokens, tokens[1:], tokens[2:], strict=False)
                if dot.token_type == T.DOT and star.token_type == T.STAR}

    def _check(self, said: Said, parts: Mapping[str, pa.Table]) -> None:
        columns = {n.lower() for part in parts.values() for n in part.column_names}
        for label in self._tables:
            alone = [before for before, after in said.get(label.lower(), ()) if T.DOT not in (before, after)
                     and before not in (T.FROM, T.JOIN)]
            if T.GROUP_BY in alone and label.lower() not in columns:
                raise NotDuckDBs(f"GROUP BY {label} makes rows here, and no others")
            if alone and label.lower() not in columns and T.ALIAS not in alone:
                raise StatementError(f"{label} stands for all columns of a table here, as one value; write its columns")

    def _check_names(self, label: str, part: pa.Table) -> None:
        small = [n.lower() for n in part.column_names]
        if len(set(small)) < len(small):
            raise StatementError(f"{label} has columns whose names differ in case alone, which DuckDB does not tell "
                                 f"apart; rename one of them")
        check_order(label, part)

    @staticmethod
    def _hidden_name(name: str) -> str:
        return f"splitjoin_{name.lower()}"


def _replaced(item: Sequence[Token]) -> set[str]:
    """The names that REPLACE behind the star of ``item`` gives, in lower case."""
    at = next((n for n, t in enumerate(item) if t.text.upper() == "REPLACE"), len(item))
    return {name.text.lower() for before, name in pairwise(item[at:]) if before.token_type == T.ALIAS}


def _excluded(item: Sequence[Token]) -> set[str]:
    """The columns in EXCLUDE behind the star of ``item``, in lower case as they are written, perhaps with tables."""
    star = next(n for n, t in enumerate(item) if t.token_type == T.STAR)
    if star + 1 >= len(item) or item[star + 1].text.upper() not in ("EXCLUDE", "EXCEPT"):
        return set()
    names, begin = set[str](), star + 2
    if begin < len(item) and item[begin].token_type == T.L_PAREN:
        end = next((n for n in range(begin, len(item)) if item[n].token_type == T.R_PAREN), len(item))
        begin += 1
    else:
        end = next((n for n in range(begin, len(item)) if item[n].text.upper() in ("REPLACE", "RENAME")), len(item))
    word = ""
    for token in item[begin:end]:
        if token.token_type == T.COMMA:
            names.add(word)
            word = ""
        else:
            word += "." if token.token_type == T.DOT else token.text.lower()
    return {*names, word} - {""}
