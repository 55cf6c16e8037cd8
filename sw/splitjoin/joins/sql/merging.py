"""SELECTs in FROM that only name columns of their tables, as parts of the SELECT around them: these are one statement
with fewer SELECTs, and one plan.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from .trees import FromItem, conjunction, conjuncts

_READ = {"expressions", "from_", "joins", "where"}


def with_subqueries(tree: Any) -> Any:
    """``tree`` with the SELECTs of its WITH that it names once where it names them."""
    named = tree.args.get("with_")
    if named is None:
        return tree
    for table in list(named.expressions):
        own = {id(of) for of in table.this.find_all(exp.Table, exp.CTE)}
        said = [of for of in tree.find_all(exp.Table) if of.name.lower() == table.alias.lower() and id(of) not in own]
        others = [of.alias.lower() for of in tree.find_all(exp.CTE) if of is not table and id(of) not in own]
        # A name of another WITH could be one of other rows where this SELECT is to stand.
        inside = {of.name.lower() for of in table.this.find_all(exp.Table)} & {*others}
        hidden = table.alias.lower() in others
        if len(said) != 1 or inside or hidden or table.args.get("materialized") or table.args["alias"].args.get(
                "columns") or said[0].args.get("db") or not isinstance(said[0].parent, (exp.From, exp.Join)):
            continue
        node = said[0]
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        if alias.args.get("columns") or {name for name, value in node.args.items() if value} - {"this", "alias"}:
            continue
        node.replace(exp.Subquery(this=table.this.copy(), alias=alias))
        table.pop()
    if not named.expressions:
        tree.set("with_", None)
    return tree


def merged_query(outer: exp.Select, item: FromItem) -> exp.Select | None:
    """``outer``, whose FROM is ``item``, over the tables of the SELECT that this is; None where ``item`` says more than
    which columns of which rows, or its names are not known for sure.
    """
    inner, alias = item.query, item.node.args.get("alias")
    if not isinstance(inner, exp.Select) or any(value for name, value in inner.args.items() if name not in _READ) or (
            not inner.args.get("from_")) or any(item.node.args.get(name) for name in ("pivots", "sample")) or (
            alias is not None and alias.args.get("columns")):
        return None
    columns, items = dict[str, exp.Column](), dict[str, exp.Expr]()
    for one in inner.expressions:
        column, name = one.unalias(), one.alias_or_name.lower()
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star) or len(column.parts) != 2 or (
                name in columns):
            return None
        columns[name], items[name] = column, one
    made, label = outer.copy(), item.label.lower()
    made.set("from_", None)
    if made.find(exp.Columns) or any(of is not made for of in made.find_all(exp.Query)):
        return None
    aliases, listed = {of.alias.lower() for of in made.expressions if isinstance(of, exp.Alias)}, list[exp.Expr]()
    for one in made.expressions:
        star = one if isinstance(one, exp.Star) else one.this if isinstance(one, exp.Column) else None
        if isinstance(star, exp.Star) and any(star.args.values()):
            return None
        listed += list(items.values()) if star is one else [one]
    for of in list(made.find_all(exp.Column)):
        if not of.table and of.name.lower() in aliases and of.find_ancestor(exp.Order):
            continue
        if of.name.lower() not in columns or len(of.parts) > 2 or (of.table and of.table.lower() != label):
            return None
        if any(of is one for one in listed):
            listed = [items[of.name.lower()] if one is of else one for one in listed]
        else:
            of.replace(columns[of.name.lower()].copy())
    made.set("expressions", [one.copy() for one in listed])
    made.set("from_", inner.args["from_"].copy())
    made.set("joins", [join.copy() for join in inner.args.get("joins") or ()])
    where = [*conjuncts(inner.args["where"].this if inner.args.get("where") else None),
             *conjuncts(made.args["where"].this if made.args.get("where") else None)]
    condition = conjunction(term.copy() for term in where)
    made.set("where", None if condition is None else exp.Where(this=condition))
    return made
