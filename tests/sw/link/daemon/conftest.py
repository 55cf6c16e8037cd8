"""Daemons for tests: in this process, or as a command of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from splitjoin.base.errors import DeviceError
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon.client import DaemonDevice, daemon_status
from splitjoin.link.daemon.server import Server

from ....support.patience import SOON, until


@contextmanager
def serving(folder: Path, devices: Sequence[Device], **options: Any) -> Iterator[Server]:
    """A daemon in a thread of this process."""
    server = Server(devices, folder / "d.sock", **options)
    thread = Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(SOON)
        assert not thread.is_alive()


def states(server: Server) -> dict[str, str]:
    """Address → state of each device."""
    return {unit["address"]: unit["state"] for unit in server.status()["devices"]}


def counts(server: Server, unit: int = 0) -> dict[str, Any]:
    """The counters of a device."""
    found: dict[str, Any] = server.status()["devices"][unit]["counters"]
    return found


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A daemon with two golden devices, for tests that leave it as it was."""
    with serving(tmp_path_factory.mktemp("daemon"), [GoldenDevice(cores=2), GoldenDevice(cores=2)]) as server:
        yield server


@pytest.fixture
def golden(shared: Server) -> DaemonDevice:
    """A device of the shared daemon."""
    return DaemonDevice(socket=shared.path, wait=SOON)


@contextmanager
def daemon_process(socket: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon as a command, which serves when the block begins, and is killed if it still runs when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "splitjoin", "daemon", "--socket", os.fspath(socket), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: process.poll() is not None or _serves(socket, process.pid))
        yield process
    finally:
        process.kill()
        process.communicate()


def _serves(socket: Path, pid: int) -> bool:
    try:
        return bool(daemon_status(socket)["pid"] == pid)
    except DeviceError:
        return False
