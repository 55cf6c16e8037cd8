"""The command ``splitjoin daemon`` as processes: status, discovery, signals, and processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitjoin.base.errors import DeviceError
from splitjoin.cli import main
from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon.client import DaemonDevice, daemon_status

from ....support.conformance import run
from ....support.patience import SOON, until
from ....support.scenarios import SCENARIOS, arrivals_of
from .conftest import daemon_process

BAND = next(scenario for scenario in SCENARIOS if scenario.name == "band-rows-17")

#: Opens a session, says where, and leaves it open until it is killed or its input ends.
CLIENT = """
import sys
from splitjoin.link.daemon.client import DaemonDevice
from tests.support.scenarios import SCENARIOS
scenario = next(scenario for scenario in SCENARIOS if scenario.name == "band-rows-17")
session = DaemonDevice(socket=sys.argv[1], wait=60).open(scenario.query(), key="k")
print(session.address, flush=True)
sys.stdin.read()
session.detach("1")
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    path = tmp_path_factory.mktemp("daemon") / "d.sock"
    with daemon_process(path, "--device", "golden", "--count", "2", "--option", "cores=3", "--idle-timeout",
                        "1h") as started:
        yield started, path


def client(path: Path) -> subprocess.Popen[str]:
    """A client in a process of its own, once it has a session."""
    started = subprocess.Popen([sys.executable, "-c", CLIENT, str(path)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4])
    assert started.stdout is not None
    assert started.stdout.readline().startswith("golden:")
    return started


def test_discover_and_status(process: tuple[subprocess.Popen[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    started, path = process
    assert main(["daemon", "discover", "--socket", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "fpga", "addresses": ["golden:0", "golden:1"]}
    with DaemonDevice(socket=path, holder="task 4").open(BAND.query(), key="q/3") as session:
        session.mask([2])  # one of the three cores
        assert main(["daemon", "status", "--socket", str(path)]) == 0
        text = capsys.readouterr().out
        assert main(["daemon", "status", "--json", "--socket", str(path)]) == 0
        found = json.loads(capsys.readouterr().out)
    assert f"process {started.pid}" in text
    assert f"golden:0  leased, ok\n  leased by process {os.getpid()} (task 4) for 0 s, key 'q/3'\n" in text
    assert [unit["state"] for unit in found["devices"]] == ["leased", "free"]


def test_a_client_that_is_killed_frees_its_device(process: tuple[subprocess.Popen[str], Path]) -> None:
    _, path = process
    killed = client(path)
    assert "leased" in [unit["state"] for unit in daemon_status(path)["devices"]]
    killed.kill()
    killed.communicate()
    until(lambda: [unit["state"] for unit in daemon_status(path)["devices"]] == ["free", "free"])


def test_a_session_moves_to_another_process(process: tuple[subprocess.Popen[str], Path]) -> None:
    _, path = process
    first = client(path)
    first.communicate("")
    assert first.returncode == 0
    again = DaemonDevice(socket=path).attach(BAND.query(), "k", "1")
    assert again is not None
    with again:
        again.push(arrivals_of(BAND))
        assert (again.flush() == run(GoldenDevice(), BAND.query(), BAND.r, BAND.s)).all()


def test_a_daemon_that_is_killed_can_be_started_again(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    remote = DaemonDevice(socket=path, wait=SOON)
    with daemon_process(path, "--device", "golden") as started:
        session = remote.open(BAND.query())
        started.kill()
        started.wait()
        with pytest.raises(DeviceError, match=r"the daemon at .* must answer, but did not"):
            session.push(arrivals_of(BAND))
        session.close()
        assert path.exists()
        with pytest.raises(DeviceError, match=r"a daemon must serve .*, but none does"):
            remote.open(BAND.query())
        with daemon_process(path, "--device", "golden"):
            found = run(remote, BAND.query(), BAND.r, BAND.s)
        assert (found == run(GoldenDevice(), BAND.query(), BAND.r, BAND.s)).all()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "d.sock"
    with daemon_process(path, "--device", "golden", "--verbose") as started:
        session = DaemonDevice(socket=path).open(BAND.query())
        started.send_signal(number)
        out, log = started.communicate(timeout=SOON)
        assert (started.returncode, out) == (0, "")
        assert not path.exists()
        assert f"serves golden:0 at {path}" in log
        assert "golden:0: process" in log
        assert "Traceback" not in log
        session.close()


def test_stop_and_the_second_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.sock"
    with daemon_process(path, "--device", "golden") as started:
        assert main(["daemon", "--device", "golden", "--socket", str(path)]) == 1
        assert f"process {started.pid} serves {path} already" in capsys.readouterr().err
        assert main(["daemon", "stop", "--socket", str(path)]) == 0
        assert (started.communicate(timeout=SOON), started.returncode) == (("", ""), 0)
    for action in ("stop", "status", "discover"):
        assert main(["daemon", action, "--socket", str(path)]) == 1
        assert f"splitjoin: a daemon must serve {path}, but none does" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["--count", "0"], "--count must be from 1 to 256, not 0"),
    (["--option", "cores"], "--option must be NAME=VALUE, such as cores=4, not 'cores'"),
    (["--option", "cors=4"], "the device 'golden' has no option 'cors'"),
    (["--option", "cores=four"], "cores must be a positive integer, not 'four'"),
    (["--idle-timeout", "soon"], "--idle-timeout must be a time such as 90s, 5m or 1h, not 'soon'"),
    (["--idle-timeout", "-1s"], "--idle-timeout must be a time"),
])
def test_wrong_arguments(tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str],
                         ) -> None:
    joined = [f"{a}={b}" for a, b in zip(arguments[::2], arguments[1::2], strict=True)]
    assert main(["daemon", "--device", "golden", "--socket", str(tmp_path / "d.sock"), *joined]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_join_on_the_daemon_s_device(process: tuple[subprocess.Popen[str], Path], tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, path = process
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "splitjoin").mkdir()
    (tmp_path / "splitjoin" / "daemon.sock").symlink_to(path)
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    table = str(tmp_path / "t.csv")
    words = ["join", table, table, "--on", "r.x = s.x", "--window", "ROWS 9", "-o", str(tmp_path / "o.csv"),
             "--device", "daemon"]
    assert main(words) == 0
    assert "pairs                  2" in capsys.readouterr().out
    assert main([*words, "--cores", "2"]) == 1
    assert "the device 'daemon' has no option 'cores'; its options are socket, device" in capsys.readouterr().err
