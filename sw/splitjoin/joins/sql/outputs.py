"""The result columns of a SELECT of which DuckDB computes the rest: stars written out, the columns that USING merges,
and names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import PredicateError, StatementError

from .database import check_order
from .trees import has_star, named_column, names_in

#: A column that USING merges: its name, and its trees on the left and on the right.
Merged = tuple[str, exp.Expr, exp.Column]


class NotDuckDBs(PredicateError):
    """The error for a statement of which DuckDB computes nothing, so that another error is its user's."""


class Outputs:
    """The SELECT list of ``select``, over the columns of ``tables``, by label.

    Attributes:
        merged: The trees of the columns that USING merges, by their names in lower case.
        is_opaque: True if a part of the list, such as COLUMNS(…), stands for columns that DuckDB alone knows.
    """

    def __init__(self, select: exp.Select, tables: Mapping[str, pa.Table]):
        self._tables = tables
        self.merged = dict[str, exp.Expr]()
        self._dropped = set[tuple[str, str]]()  # from a star, as they are merged with others
        # Of each item its name, its user's text, and of a column the table that is written with it.
        self._items = [self._item(item) for item in select.expressions]
        self.is_opaque = any(star.find_ancestor(exp.Select) is select and not isinstance(star.parent, exp.Count)
                             for item in select.expressions if not isinstance(item, (exp.Star, exp.Column))
                             for star in item.find_all(exp.Star, exp.Columns))

    @staticmethod
    def _item(item: exp.Expr) -> tuple[str | None, str | None]:
        if isinstance(item, exp.Alias):
            return item.alias, None
        if isinstance(item, exp.Column):
            return None, item.table if len(item.parts) == 2 else None  # others are fields
        return item.meta.get("text"), None

    def merge(self, same: Sequence[Merged], how: str) -> None:
        """Note that a join of the kind ``how`` merges the columns ``same``: S's value where rows may lack R."""
        for name, left, right in same:
            kind = how.removeprefix("asof_")
            made = exp.Coalesce(this=left.copy(), expressions=[right.copy()]) if kind == "full" else (
                right if kind == "right" else left).copy()
            self.merged[name.lower()] = made
            self._dropped.add((right.table, right.name))

    def shown(self, tree: exp.Expr) -> exp.Expr:
        """A copy of ``tree`` with the merged columns where it names them without a table."""
        made = tree.copy()
        if not self.merged:
            return made
        aliases = {of.alias.lower() for of in made.expressions if isinstance(of, exp.Alias)} if isinstance(
            made, exp.Select) else set[str]()
        for column in list(made.find_all(exp.Column)):
            name = column.name.lower()
            by_alias = name in aliases and column.find_ancestor(exp.Order, exp.Group, exp.Select) is not made
            if column.table or name not in self.merged or by_alias or self._is_within(column, made):
                continue
            value = self.merged[name].copy()
            if column is made:
                return value
            column.replace(exp.Alias(this=value, alias=column.this.copy()) if column.parent is made and isinstance(
                made, exp.Select) else value)
        return made

    def _is_within(self, column: exp.Column, root: exp.Expr) -> bool:
        """True if ``column`` may be of a table of a SELECT within ``root``, which comes before those around it."""
        select = column.find_ancestor(exp.Select)
        return select is not None and select is not root

    def parts(self, rest: exp.Select, parts: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The columns of ``parts`` that ``rest``, which becomes what DuckDB gets, names or asks for by a star; one at
        least.
        """
        self._check(rest)
        if self.is_opaque and self.merged:
            raise StatementError(f"{next(iter(self.merged))} is one column of both tables, by USING, and COLUMNS or a "
                                 f"star with LIKE would have it twice: write the columns, or ON in place of USING")
        self._expand(rest, parts)
        if self.merged:
            shown = self.shown(rest)
            for part in ("expressions", *(name for name in rest.args if name != "expressions")):
                rest.set(part, shown.args.get(part))
        said, star = names_in(rest), has_star(rest)
        made = dict[str, pa.Table]()
        for label, part in parts.items():
            made[label] = part if star else part.select([n for n in part.column_names if n.lower() in said])
            small = [n.lower() for n in made[label].column_names]
            if len(set(small)) < len(small):
                raise StatementError(f"{label} has columns whose names differ in case alone, which DuckDB does not "
                                     f"tell apart; rename one of them")
            check_order(label, made[label])
        if not any(part.num_columns for part in made.values()):
            label, part = next((label, part) for label, part in parts.items() if part.num_columns)
            made[label] = part.select(part.column_names[:1])
        return made

    def _expand(self, rest: exp.Select, parts: Mapping[str, pa.Table]) -> None:
        """Write out the stars over ``parts`` in the SELECT list of ``rest``."""
        listed, items = list[exp.Expr](), list[tuple[str | None, str | None]]()
        for item, known in zip(rest.expressions, self._items, strict=True):
            star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) and isinstance(
                item.this, exp.Star) else None
            of = {label: part for label, part in parts.items() if label in self._tables}
            if star is item or (star is not None and item.table):
                table = item.table.lower() if star is not item else None
                of = {label: part for label, part in of.items() if table in (None, label.lower())}
            if star is None or not of:
                listed.append(item)
                items.append(known)
                continue
            made = list(self._starred(star, of, own=star is not item))
            listed += [tree for tree, _, _ in made]
            items += [(name, label) for _, name, label in made]
        rest.set("expressions", listed)
        self._items = items

    def _starred(self, star: exp.Star, parts: Mapping[str, pa.Table], *, own: bool) -> Any:
        """The trees, names and labels of the columns that ``star`` stands for; ``own``: a table's star, which stands
        for its columns as they are.
        """
        out = {".".join(part.name.lower() for part in of.parts) if isinstance(of, exp.Column) else of.name.lower()
               for of in star.args.get("except_") or ()}
        again = {of.alias.lower(): of for of in star.args.get("replace") or ()}
        called = {of.this.name.lower(): of.alias for of in star.args.get("rename") or ()}
        for label, part in parts.items():
            for name in part.column_names:
                small = name.lower()
                if {small, f"{label}.{name}".lower()} & out or (not own and (label, name) in self._dropped):
                    continue
                if small in again:
                    yield again[small].copy(), again[small].alias, label
                    out.add(small)  # REPLACE leaves the first column of a name
                    continue
                tree = self.merged[small] if not own and small in self.merged else named_column(label, name)
                to = called.get(small, name)
                yield exp.Alias(this=tree.copy(), alias=exp.to_identifier(to, quoted=True)), to, label

    def names(self, found: Sequence[str], *, nested: bool = False) -> list[str]:
        """The names of the result columns, ``found`` by DuckDB: an expression without AS has its text for its name,
        and columns of one name in several tables that of their table behind it. As they are where a part of the list
        stands for columns that are not known here, and with ``nested``, within another SELECT.
        """
        if nested or len(found) != len(self._items) or self.is_opaque:
            return list(found)
        made = [(name if known is None else known, label) for name, (known, label) in zip(
            found, self._items, strict=True)]
        small = [name.lower() for name, _ in made]
        return [f"{name}_{label}" if label is not None and small.count(name.lower()) > 1 else name
                for name, label in made]

    def _check(self, rest: exp.Select) -> None:
        columns = {n.lower() for part in self._tables.values() for n in part.column_names}
        aliases = {of.alias.lower() for of in rest.find_all(exp.Alias)}
        for label in self._tables:
            if label.lower() in columns | aliases:
                continue
            if any(not c.table and c.name.lower() == label.lower() for c in rest.find_all(exp.Column)):
                raise StatementError(f"{label} stands for all columns of a table here, as one value; write its columns")


def name_groups(select: exp.Select, tables: Mapping[str, pa.Table]) -> None:
    """Have all columns of a table in place of its label in GROUP BY of ``select``, where no column has this name."""
    group, own = select.args.get("group"), {name.lower() for table in tables.values() for name in table.column_names}
    labels = {label.lower(): label for label in tables if label.lower() not in own}

    def columns(node: Any) -> list[exp.Expr]:
        label = labels.get(node.name.lower()) if isinstance(node, exp.Column) and not node.table else None
        return [node] if label is None else [named_column(label, name) for name in tables[label].column_names]

    if group is not None:
        group.set("expressions", [made for node in group.expressions for made in columns(node)])


def merged_names(left: Mapping[str, pa.Table], right: Mapping[str, pa.Table], using: Sequence[str] | None,
                 merged: Mapping[str, exp.Expr]) -> list[Merged]:
    """The columns that USING, or NATURAL by None, merges. Raises `StatementError` for names that are not on both sides,
    or more than once; ``merged`` are those that are one already.
    """
    of_left = [(label, name) for label, table in left.items() for name in table.column_names]
    of_right = [(label, name) for label, table in right.items() for name in table.column_names]
    names = using if using is not None else [n for n in dict.fromkeys(name for _, name in of_left) if n.lower() in {
        other.lower() for _, other in of_right}]
    if not names:
        raise StatementError(f"a NATURAL JOIN needs columns of one name on both sides, but {', '.join(left)} and "
                             f"{', '.join(right)} have none; say ON which condition")
    made = list[Merged]()
    for name in names:
        here, there = ([of for of in side if of[1].lower() == name.lower()] for side in (of_left, of_right))
        one = merged.get(name.lower())
        if (len(here) != 1 and one is None) or len(there) != 1:
            where, n = (left, len(here)) if len(here) != 1 and one is None else (right, len(there))
            raise StatementError(f"USING ({name}) needs one column of this name on each side, but {', '.join(where)} "
                                 f"has {n}; write ON with the tables' names")
        made.append((name, named_column(*here[0]) if one is None else one, named_column(*there[0])))
    return made
