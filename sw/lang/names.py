"""Columns by their names, with or without their stream's."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SchemaError
from . import build
from .ir import Expr
from .schema import Schema, suggest

__all__ = ["find_column"]


def find_column(schemas: Mapping[str, Schema], name: str, stream: str | None, at: str) -> Expr:
    """Column ``name`` of ``stream``, or of the only one of ``schemas`` that has it. Raises `SchemaError`."""
    if stream is not None:
        schema = schemas.get(stream.lower())
        if schema is None:
            raise SchemaError(f"{at!r}: there is no stream {stream!r}; the streams are r and s")
        return build.column(schema, name)
    found = [c for c in schemas.values() if any(name.lower() == n.lower() for n in c.names)]
    if len(found) == 1:
        return build.column(found[0], name)
    if found:
        raise SchemaError(f"column {name!r} is ambiguous: it could be r.{found[0].find(name).name} or "
                          f"s.{found[1].find(name).name}; write which")
    names = [f"{c.side}.{n}" for c in schemas.values() for n in c.names]
    raise SchemaError(f"neither stream has a column {name!r}{suggest(name, [n[2:] for n in names])}; the columns are "
                      f"{', '.join(names) or '(none)'}")
