"""The database that tests of a process share is gone before DuckDB's binding looks for what has leaked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: A thread that lives when the process ends, as libraries have them, in a module that sees the database.
_PROGRAM = """
import threading
from tests.support.databases import database

def ask():
    with database() as db:
        assert db.sql("SELECT 1").fetchall() == [(1,)]

ask()
threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
"""


def test_a_thread_that_lives_at_the_end_keeps_no_database() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=Path(__file__).parents[2], capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
