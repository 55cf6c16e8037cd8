"""Each pass alone does to the conditions of its golden file what it did before."""

from pathlib import Path

import pytest

from splitjoin.circuit import lowering
from splitjoin.plan.passes.compiler import PASSES

from ....support.pass_texts import PATHS, conditions, written


@pytest.mark.parametrize("path", PATHS, ids=lambda p: str(p.stem))
def test_golden(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == written(path)


def test_every_pass_has_a_golden_file() -> None:
    assert {p.name for p in (*PASSES, *lowering.PASSES)} == {path.stem for path in PATHS}
    assert all(conditions(path) for path in PATHS)
