"""Statements have the trees that conditions have, whatever else DuckDB's words could mean."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from splitjoin import PredicateError
from splitjoin.joins.sql.trees import statement_tree
from splitjoin.lang.aggregate_functions import USAGES
from splitjoin.lang.sql.parser import parse_tree
from tests.sw.lang import test_casts
from tests.sw.lang.sql import test_parser

#: What is not in the language, and has a node of its own in one of the trees.
REFUSED = ("xor(", "[")


def conditions() -> Iterator[str]:
    """The conditions and values of the tests of the language, and its aggregates."""
    for test in (test for module in (test_parser, test_casts) for test in vars(module).values() if callable(test)):
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "parametrize" and ("sql" in mark.args[0] or "on" in mark.args[0]):
                yield from (case if isinstance(case, str) else str(case[0]) for case in mark.args[1])
    yield from re.findall(r"\w+\(.*?\)", USAGES)


def test_conditions_have_the_same_trees() -> None:
    compared, other = 0, list[str]()
    for text in conditions():
        want = None
        with contextlib.suppress(PredicateError):
            want = parse_tree(text)
        if want is None or any(word in text for word in REFUSED):
            continue
        compared += 1
        body = text.rstrip("; \n") + "\n"
        if statement_tree(f"SELECT 1 FROM r, s WHERE {body}")[0].args["where"].this != want:
            other.append(text)
    assert not other
    assert compared > 150
