"""Clauses of statements: those that are honoured, by their nodes in sqlglot's trees. All others that sqlglot reads are
refused: its text for DuckDB leaves many of them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

#: The arguments of each node that this package or DuckDB honours, or refuses in words of its own.
HONOURED: Mapping[type[exp.Expr], frozenset[str]] = {kind: frozenset(names.split()) for kind, names in {
    exp.Select: "with_ expressions distinct from_ joins where group having qualify windows order limit offset sample",
    exp.SetOperation: "with_ this expression distinct by_name order limit offset",
    exp.Subquery: "with_ this alias joins pivots order limit offset sample",
    exp.Join: "this on side kind using method match_condition nearest",
    exp.Table: "this db catalog alias joins pivots sample version rows_from",
    exp.Lateral: "this alias",
    exp.TableAlias: "this columns",
    exp.With: "expressions recursive",
    exp.CTE: "this alias materialized",
    exp.Group: "expressions grouping_sets cube rollup all",
    exp.Order: "this expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression limit_options",
    exp.Fetch: "direction count limit_options",
    exp.LimitOptions: "rows percent",
    exp.Offset: "expression",
}.items()}
#: Of arguments whose names do not tell: the words of the text, and what to do but to leave them out.
_WORDS = {
    "locks": "FOR UPDATE or FOR SHARE", "match": "MATCH_RECOGNIZE", "connect": "CONNECT BY", "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY", "sort": "SORT BY", "kind": "SELECT AS", "key_expressions": "USING KEY",
    "with_fill": "WITH FILL", "with_ties": "WITH TIES", "totals": "WITH TOTALS", "global_": "GLOBAL",
    "laterals": "LATERAL VIEW: write CROSS JOIN unnest(…)", "cross_apply": "APPLY: write CROSS JOIN LATERAL",
    "into": "INTO: the rows are what is returned; write them yourself",
}
_TABLE = ("what stands at this table is not supported, as AT, BEFORE, ONLY and WITH are not; leave it out, and give "
          "the rows that it means as a table")


def unread_clause(tree: exp.Expr) -> tuple[str, str] | None:
    """The first part of the statement ``tree`` that nothing here honours, as the first word of its text, and what is
    wrong with it; None for none.
    """
    for node in tree.walk():
        honoured = next((HONOURED[kind] for kind in type(node).__mro__ if kind in HONOURED), None)
        if honoured is None or (isinstance(node, exp.Table) and isinstance(node.this, exp.Func)):
            continue
        for name in [name for name, value in node.args.items() if name not in honoured and (
                value or (name == "cross_apply" and value is not None))]:  # False: OUTER APPLY
            if isinstance(node, exp.Table) and name != "laterals":
                return "", _TABLE
            words, _, advice = ("LIMIT BY" if isinstance(node, exp.Limit) else _WORDS.get(
                name, name.strip("_").upper())).partition(": ")
            return words.split()[0], f"{words} is not supported: {advice or 'leave it out'}"
        if isinstance(node, exp.LimitOptions) and isinstance(node.parent, exp.Fetch) and node.args.get("percent"):
            return "FETCH", "FETCH takes a number of rows, not PERCENT; write LIMIT 50 PERCENT for half of them"
        if isinstance(node, exp.TableAlias) and not isinstance(node.this, exp.Identifier | None):
            return "", _TABLE
    return None
