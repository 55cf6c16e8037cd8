"""The GPU engine in numba's simulator, in a process of its own: numba reads NUMBA_ENABLE_CUDASIM at its import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitjoin.base.errors import DeviceError, ToolError
from splitjoin.engines.gpu import GpuDevice, driver
from tests.support.scenarios import SCENARIOS

SUITE = Path(__file__).with_name("suite.py")


def test_suite_in_the_simulator() -> None:
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1].split(" passed")[0].split()[-1]) > 30


def test_without_numba_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "find_spec", lambda name: None)
    driver._cuda.cache_clear()
    with pytest.raises(ToolError, match=r"needs the Python package 'numba-cuda', which is not installed; "
                                        r"pip install 'splitjoin\[gpu\]', or use device='cpu'"):
        GpuDevice().open(SCENARIOS[0].query())
    assert GpuDevice.problem().startswith("the device 'gpu' needs the Python package 'numba-cuda'")


@pytest.mark.parametrize(("options", "error"), [
    ({"target": 1}, "must be the number of a GPU"), ({"target": "-1"}, "must be the number of a GPU"),
    ({"threads": 0}, "threads must be a number from 1 to 256"), ({"threads": True}, "threads must be a number")])
def test_options(options: dict[str, object], error: str) -> None:
    with pytest.raises(DeviceError, match=error):
        GpuDevice(**options)  # type: ignore[arg-type]
