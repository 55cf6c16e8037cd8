"""Statements as they were read: a text that comes again has the tree, the parts and the steps that it had."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import StatementError
from splitjoin.base.recent import of_text
from splitjoin.lang.local_times import current_zone

from .files import named_files
from .statement import Statement, all_tables, read_statement
from .steps import Answering
from .trees import StatementText, statement_tree


@dataclass
class Prepared:
    """A statement as it was read. What changes its ``tree`` changes a copy.

    ``files``: as of `named_files`.

    Attributes:
        answers: The `Answering` of those tables that came last, by the key that `tables_key` gives these.
    """

    tree: Any
    source: StatementText
    files: Mapping[str, str]
    answers: dict[Hashable, Answering] = field(default_factory=dict, init=False)

    @cached_property
    def parts(self) -> Statement | StatementError:
        """The parts of a join of tables alone, or the error for any other statement."""
        try:
            return read_statement(self.tree, self.source)
        except StatementError as error:  # without its frames, which hold rows
            return type(error)(*error.args)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all its tables, in lower case."""
        return all_tables(self.tree)


def prepared(text: str) -> Prepared:
    """The statement ``text``: the same object as long as its text is among those that came last."""
    return of_text(_read, text)


def _read(text: str) -> Prepared:
    tree, source = statement_tree(text)
    return Prepared(tree, source, named_files(tree, text))


def tables_key(tables: Mapping[str, pa.Table]) -> Hashable:
    """The key of a statement's cached steps: the tables' names, types, which columns hold NULL, and the time zone."""
    return (current_zone(), *((name, *table.column_names, *table.schema.types, *(
        column.null_count > 0 for column in table.columns)) for name, table in sorted(tables.items())))
