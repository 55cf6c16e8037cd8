"""`splitjoin doctor`, `devices`, `--version`: what is there has its version, what is missing the way to get it."""

from pathlib import Path

import pytest

from splitjoin.base.version import __version__
from splitjoin.cli import DONE, FAILURE, main
from splitjoin.cli.doctor import findings
from splitjoin.engines.registry import DEVICES, missing
from splitjoin_sim.tools import cxx


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("JAVA_HOME", "CXX"):
        monkeypatch.delenv(name, raising=False)
    cxx.cache_clear()


def test_what_is_there_has_its_version() -> None:
    found = {f.name: f.found for f in findings()}
    assert found["amaranth"] == "0.5.10"
    cures = " ".join(f.cure for f in findings())
    assert all(f"splitjoin[{extra}]" in cures for extra in ("compiled", "sql", "spark", "serve", "hw", "boards"))
    assert {name for name, there in found.items() if not there} <= {"GPU"}, "everything is installed for the tests"


def test_what_is_missing_has_a_cure(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == DONE
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if line.startswith("missing")}
    assert set(lines) - {"GPU"} == {"Java", "C++", "make"}
    assert "Spark jobs: install a JDK 17 or later" in lines["Java"]


def test_a_cache_that_others_can_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing runs with it; where there can be none at all, joins still run."""
    tmp_path.chmod(0o777)
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    assert main(["doctor"]) == FAILURE
    said = capsys.readouterr()
    assert "set the variable SPLITJOIN_CACHE" in said.out
    assert "nothing runs without cache" in said.err
    monkeypatch.setenv("SPLITJOIN_CACHE", "/dev/null/cache")
    assert main(["doctor"]) == DONE
    said = capsys.readouterr()
    assert "missing cache" in said.out
    assert "set the variable SPLITJOIN_CACHE" in said.out


def test_devices(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEVICES, "sim", DEVICES["sim"]._replace(module="a_package_that_is_not_there.device"))
    assert "pip install 'splitjoin[sim]'" in missing("sim")
    assert main(["devices"]) == DONE
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == set(DEVICES)
    assert [name for name, line in lines.items() if "(missing: " in line and name != "gpu"] == ["sim"]
    assert "(missing: " not in lines["gpu"] or "use device='cpu'" in lines["gpu"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"splitjoin {__version__}\n")
