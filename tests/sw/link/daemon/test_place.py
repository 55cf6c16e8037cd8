"""The daemon's place: private, one daemon at a time, and free again however a daemon ended."""

from __future__ import annotations

import os
import socket as sockets
import stat
from pathlib import Path

import pytest

from splitjoin.base.errors import DeviceError
from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon import place
from splitjoin.link.daemon.place import check_peer, default_socket, listen, lock_socket, peer
from splitjoin.link.daemon.server import Server


def test_the_default_is_in_the_user_s_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_socket() == tmp_path / "splitjoin" / "daemon.sock"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    assert default_socket() == tmp_path / "cache" / "splitjoin-cache" / "daemon" / "daemon.sock"


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "d.sock"
    with lock_socket(path) as lock, listen(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(os.fstat(lock.fileno()).st_mode) == 0o600


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(DeviceError, match=r"must be the user's own with mode 0700, but .* with mode 0750; choose"):
        lock_socket(tmp_path / "d.sock")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="the folder of the socket must be one that can be written to"):
        lock_socket(tmp_path / "file" / "d.sock")


def test_long_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="the path of a socket must have at most 107 bytes"):
        lock_socket(tmp_path / ("x" * 120))


def test_the_second_daemon_is_refused(tmp_path: Path) -> None:
    server = Server([GoldenDevice()], tmp_path / "d.sock")
    with pytest.raises(DeviceError, match=f"must have one daemon, but process {os.getpid()} serves .* already"):
        Server([GoldenDevice()], tmp_path / "d.sock")
    server.stop()
    assert server.serve()
    assert [p.name for p in tmp_path.iterdir()] == ["d.sock.lock"]
    again = Server([GoldenDevice()], tmp_path / "d.sock")
    again.stop()
    assert again.serve()


def test_the_socket_of_a_dead_daemon_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    with sockets.socket(sockets.AF_UNIX) as dead:
        dead.bind(str(path))
    with listen(path) as socket, sockets.socket(sockets.AF_UNIX) as client:
        client.connect(str(path))
        accepted, _ = socket.accept()
        accepted.close()


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    path.write_text("mine")
    with pytest.raises(DeviceError, match="must not take the place of a file"):
        Server([GoldenDevice()], path)
    assert path.read_text() == "mine"
    with lock_socket(path):  # the refused daemon has given it back
        pass


def test_only_the_same_user(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = sockets.socketpair()
    with a, b:
        assert peer(a) == (os.getpid(), os.geteuid())
        assert check_peer(a) == os.getpid()
        monkeypatch.setattr(place, "peer", lambda socket: (1, os.geteuid() + 1))
        with pytest.raises(DeviceError, match="daemon and client must be of one user"):
            check_peer(a)
