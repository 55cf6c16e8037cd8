"""Building models, and their cache."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import splitjoin_hw as hw
from splitjoin import ToolError, join
from splitjoin.base.cache import cache_folder
from splitjoin_sim import build
from splitjoin_sim.device import SimDevice
from splitjoin_sim.runtime import header, objects
from splitjoin_sim.tools import Verilator, cxx, find_verilator

R = pa.table({"x": [1, 2]})
S = pa.table({"a": [2, 3]})


def run() -> None:
    assert len(join(R, S, on="r.x = s.a", window="ROWS 9", device=SimDevice(small=True, capacity=16))) == 1


def lend_runtime(folder: Path) -> None:
    """Let the cache ``folder`` have the run-time library of the usual cache: compiling it takes longer than a model."""
    for level in build._levels().values():
        objects(find_verilator(), cxx(), level)
        header(find_verilator(), cxx(), (level, "-DVM_TRACE=0"))
    folder.mkdir(parents=True, mode=0o700)
    for made in cache_folder().glob("runtime-*"):
        if made.is_dir():
            (folder / made.name).symlink_to(made)


def test_a_relative_cache_and_what_a_killed_build_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path("cache", "splitjoin-cache")
    lend_runtime(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPLITJOIN_CACHE", "cache")
    run()
    (model,) = folder.glob("model-*.so")
    model.unlink()
    left = model.with_suffix(".work")
    left.mkdir()
    (left / "stale.cpp").write_text("stale")
    run()
    assert model.exists()
    assert {path.suffix for path in folder.iterdir()} == {".so", ".lock", ".TAG", ""}
    assert not left.exists()


def test_a_failed_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ToolError("it failed")

    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "_run", fail)
    with pytest.raises(ToolError, match="it failed"):
        run()
    assert not list(tmp_path.glob("*.work"))


def test_the_key_of_a_model_covers_every_module_that_its_verilog_depends_on() -> None:
    """Otherwise a model made before one of them changed would still be used. Errors and locks are in no Verilog."""
    covered = {path.resolve() for path in build._sources()}
    circuits = sorted(Path(hw.__path__[0]).rglob("*.py"))
    assert {path.resolve() for path in circuits} <= covered
    for path in circuits:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (
                    node.module or "").startswith("splitjoin") and node.module not in ("splitjoin.base.errors",
                                                                              "splitjoin.base.threads"):
                imported = importlib.import_module(node.module or "").__file__
                assert imported is not None and Path(imported).resolve() in covered, f"{path.name}: {node.module}"


def test_parts_are_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For any number of cores, the model has each function of a core once, and each function of a node few times."""
    found: Counter[str] = Counter()
    real = build._run

    def translate(command: list[str], verilator: Verilator) -> None:
        assert "--cc" in command
        real(command, verilator)
        for path in Path(command[command.index("--Mdir") + 1]).glob("*[0-9].cpp"):
            defined = re.findall(r"^void (Vsplitjoin_splitjoin_\w+___nba_\w+)\(.*\) {$", path.read_text(), re.MULTILINE)
            for name in defined:
                found[re.sub(r"Vsplitjoin_splitjoin_(\w+?)___nba_.*__(\d+)$", r"\1 \2", name)] += 1
        raise ToolError("enough")

    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "_run", translate)
    with pytest.raises(ToolError, match="enough"):
        join(R, S, on="r.x = s.a", window="ROWS 9", device=SimDevice(cores=8, capacity=2, core="scan"))
    kinds = {name.split()[0].rstrip("0123456789") for name in found}
    assert kinds == {"core", "merger", "merger2_offer_input", "broadcast", "credit_fifo", "pipeline_register", "reset"}
    for name, times in found.items():
        assert times <= (1 if name.startswith("core") else 3), found


def test_the_optimization_level_must_be_0_to_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_OPTIMIZE", "fast")
    with pytest.raises(ToolError, match=r"^the variable SPLITJOIN_OPTIMIZE must be 0, 1, 2 or 3, .*, not 'fast'$"):
        run()
