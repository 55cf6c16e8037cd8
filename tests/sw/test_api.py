"""The public names of the package: `dir` lists the API and nothing else; a star import hides nothing of Python's."""

from __future__ import annotations

import builtins
import subprocess
import sys
from types import ModuleType

import splitjoin


def test_dir_lists_the_api_and_nothing_else() -> None:
    names = dir(splitjoin)
    assert names == sorted({*splitjoin.__all__, "open", "__version__"})
    assert [name for name in names if isinstance(getattr(splitjoin, name), ModuleType)] == []
    assert [name for name in names if name != "__version__" and name.startswith("_")] == []


def test_other_modules_that_are_imported_stay_out() -> None:
    code = "import splitjoin, splitjoin.spark, splitjoin.cli, splitjoin_sim; print(*dir(splitjoin))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == dir(splitjoin)


def test_what_is_not_asked_for_is_not_imported() -> None:
    """A task of Spark needs no sessions and no statements; who asks for a module of the package gets it."""
    code = ("import sys, splitjoin.catalyst.task; "
            "print(sorted({'splitjoin.joins', 'splitjoin.sessions', 'splitjoin.sessions.gate'} & set(sys.modules))); "
            "print(splitjoin.engines.golden.GoldenDevice is not None, splitjoin.sessions.open is splitjoin.open, "
            "hasattr(splitjoin, 'nothing'), hasattr(splitjoin, '_nothing'))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True True False False"]


def test_all_is_sorted_and_documented() -> None:
    assert splitjoin.__all__ == sorted(splitjoin.__all__)
    assert [name for name in splitjoin.__all__ if not getattr(splitjoin, name).__doc__] == []


def test_a_star_import_hides_nothing_of_python() -> None:
    assert [name for name in splitjoin.__all__ if hasattr(builtins, name)] == []
