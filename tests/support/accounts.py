"""Accounts of statements: which of their joins run here, and what DuckDB computes, as their rows do not show it.

`tests/sw/joins/sql/accounts.golden` has those of several files of tests. After a change that is meant, or with new
statements, write it again: python -m tests.support.accounts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from splitjoin.base import recent
from splitjoin.joins.sql import api
from splitjoin.joins.sql.partial_aggregates import PARTIAL

FOLDER = Path(__file__).parents[1] / "sw" / "joins" / "sql"
PATH = FOLDER / "accounts.golden"
#: The accounts of this run, by file and statement, if they are to be written.
_noted: dict[str, dict[str, str]] = {}
_writes = False


def account(lines: Sequence[str]) -> str:
    """The joins and DuckDB's parts of a statement's run, without the texts of conditions, which sqlglot may change."""
    made = []
    for line in lines:
        what, said = line[:17].strip(), line[17:]
        if what == "DuckDB":
            what += f" {said.partition(' by ')[0].partition(':')[0]}{' of folded parts' * (PARTIAL in said)}"
        elif what == "join":
            what, _, on = said.partition(" ON ")
            what = f"{what} ON {on.partition('; and ')[0].count(' AND ') + 1}" if on else what.partition(" by ")[0]
            what += " and pairs by DuckDB" * on.endswith("by DuckDB on the pairs")
        made.append(what)
    return "; ".join(made) or "as a whole"


@contextmanager
def accounted(file: str, text: str) -> Iterator[None]:
    """Assert that what answers the statement ``text`` within is in the golden file, below the name of the test's
    ``file``.
    """
    answers, answer = list[Any](), api.answer

    def noted(*args: Any, **how: Any) -> Any:
        answers.append(answer(*args, **how))
        return answers[-1]

    recent.forget()  # steps of the same statement
    with mock.patch.object(api, "answer", noted):
        yield
    found, name = account(answers[0].lines if answers else ()), Path(file).stem
    if _writes:
        _noted.setdefault(name, {})[text] = found
    else:
        assert found == _written().get((name, text), "python -m tests.support.accounts")


@cache
def _written() -> dict[tuple[str, str], str]:
    made, name, text = dict[tuple[str, str], str](), "", ""
    for line in PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name = line[2:]
        elif line.startswith("    "):
            made[name, text] = line.strip()
        else:
            text = line
    return made


def _write() -> None:
    global _writes
    _writes = True
    if pytest.main(["-q", "-n0", "-p", "no:randomly", "-k", "rows_are_those_of_duckdb", str(FOLDER)]) == 0:
        lines = [line for name, of in sorted(_noted.items()) for line in (f"# {name}", *(
            line for text, found in of.items() for line in (text, f"    {found}")))]
        PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    from tests.support import accounts  # as the tests import it

    accounts._write()
