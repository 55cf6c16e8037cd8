"""The SQL that conditions and statements are written in, for sqlglot."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from ..operations import OPERATIONS

__all__ = ["Sql", "sql_of"]


class Sql(Dialect):
    """sqlglot's own dialect, with Spark's `name` beside the standard's "name", X'00FF' and DuckDB's //."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        KEYWORDS: ClassVar[dict[str, Any]] = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}

    class Parser(parser.Parser):
        # Ours are read by their names, whatever sqlglot knows of functions of that name.
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: node for name, node in parser.Parser.FUNCTIONS.items() if name.lower() not in OPERATIONS}


def sql_of(e: exp.Expr) -> str:
    """Equivalent SQL of ``e``."""
    return str(e.sql(dialect=Sql, comments=False))
