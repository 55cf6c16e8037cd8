"""`splitjoin program` with a script in the place of openFPGALoader: its arguments, and its errors in words."""

import stat

import pytest

from splitjoin.base.errors import InputError, ToolError, UnsupportedError
from splitjoin.cli import main
from splitjoin.link.sidecar import Sidecar
from splitjoin_boards.catalog import find
from splitjoin_boards.program import loader, program

CALLS = 'echo "$@" >> "$(dirname "$0")/calls"'


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a shell script on PATH as openFPGALoader; gives what it was called with."""
    def make(script):
        path = tmp_path / "bin" / "openFPGALoader"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{CALLS}\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
        return lambda: (path.parent / "calls").read_text().splitlines()
    return make


@pytest.fixture
def folder(tmp_path):
    """A built folder for a ULX3S."""
    Sidecar(parameters={}, abi=1, board="ulx3s_85f", clock_hz=25_000_000, baud=115_200).write(tmp_path / "design.json")
    (tmp_path / "top.bit").write_bytes(b"bits")
    return tmp_path


def test_a_built_folder_is_loaded(fake, folder, capsys):
    calls = fake("exit 0")
    assert main(["program", str(folder)]) == 0
    assert main(["program", str(folder), "--flash", "--cable", "ft2232"]) == 0
    assert calls() == [f"-b ulx3s {folder / 'top.bit'}", f"--cable ft2232 --write-flash {folder / 'top.bit'}"]
    assert "run joins on it with --device uart:PORT" in capsys.readouterr().out


@pytest.mark.parametrize(("script", "said"), [
    ("echo 'unable to open ftdi device: -3'; exit 1", "ended with 1: unable to open ftdi device.*\n.*plugged in"),
    ("echo 'error while loading shared libraries: libftdi1.so.2'; exit 127", "apt-get install libusb-1.0-0 libftdi1-2"),
])
def test_what_fails_is_told_with_its_cure(fake, folder, script, said):
    fake(script)
    with pytest.raises(ToolError, match=said):
        program(find("ulx3s_85f"), folder / "top.bit", flash=False)


def test_boards_without_a_loader_and_missing_files(fake, folder):
    calls = fake("exit 0")
    with pytest.raises(UnsupportedError, match="has no name for board icesugar; copy the bitstream to the drive"):
        program(find("icesugar"), folder / "top.bit", flash=False)
    with pytest.raises(InputError, match=r"must be a file that `splitjoin build` wrote, but .*top\.fs is none"):
        program(find("tang_nano_9k"), folder / "top.fs", flash=False)
    program(find("colorlight_5a75b_r7_0"), folder / "top.bit", flash=False, cable="ft232")
    assert len(calls()) == 1


def test_without_the_program_the_error_names_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"not installed; pip install 'splitjoin\[boards\]', or Debian's package"):
        loader()
