"""Files that a statement names as its tables, as DuckDB writes it: ``FROM 'day.parquet' AS d``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sqlglot import expressions as exp

from splitjoin.tables.formats import FORMATS, has_format

from .trees import statement_tree

#: What a statement with such a name has in it: most have none, and their trees are not searched.
_SUFFIX = re.compile("|".join(re.escape(suffix) for one in FORMATS for suffix in one.suffixes), re.IGNORECASE)


def statement_files(text: str) -> dict[str, str]:
    """`named_files` of the statement ``text``. Raises `StatementError` for what is no statement."""
    return named_files(statement_tree(text)[0], text)


def named_files(tree: Any, text: str) -> dict[str, str]:
    """The files that ``tree``, of the statement ``text``, names as tables, each under its own name: names with the
    suffix of a format, patterns among them. One without an alias gets its name without folder and suffix as its alias.
    """
    found = dict[str, str]()
    if _SUFFIX.search(text) is None:
        return found
    for table in tree.find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)  # day.parquet without quotes reads as schema and table
        if has_format(name):
            found[name] = name
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(Path(name).stem, quoted=True))
            table.set("this", exp.to_identifier(name, quoted=True))
            for above, value in (("db", None), ("catalog", None), ("alias", alias)):
                table.set(above, value)
    return found
