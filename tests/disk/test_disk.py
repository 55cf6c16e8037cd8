"""Short runs of `python -m tests.disk`, and faults that they must find."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from splitjoin.base import disk
from splitjoin.sessions.epochs import folder
from splitjoin.sessions.epochs.folder import EpochFolder
from splitjoin.sessions.epochs.writer import EpochWriter

from ..support.planting import faulty
from ..support.sampling import at_length, examples
from ..support.simulated_disk import FAULTS
from .schedules import SUBJECTS, every_call, run

#: The schedules within which a planted fault must be found, by the seeds that the short runs have.
_ENOUGH = 250


@pytest.mark.parametrize("name", SUBJECTS)
def test_files_outlast_faults_kills_and_power_cuts(name: str) -> None:
    for failure in run(name, range(examples(357))):
        pytest.fail("\n".join([*failure.calls, failure.why, f"replay: {failure.replay}"]))


@pytest.mark.parametrize(("name", "faults"), [
    *((name, ["end"]) for name in SUBJECTS), *(at_length(name, FAULTS) for name in SUBJECTS)])
def test_a_fault_at_any_call_leaves_the_old_or_the_new(name: str, faults: Sequence[str]) -> None:
    for failure in every_call(name, faults):
        pytest.fail("\n".join([*failure.calls, failure.why, f"replay: {failure.replay}"]))


def unnamed(call: str) -> str:
    """A call without the name of a half-written file, which is another one each time."""
    return re.sub(r"\.splitjoin-\w+", "", call)


@pytest.mark.parametrize(("subject", "part", "function", "old", "new"), [
    # The content of files is not synced, or only once they have their names.
    ("epochs", disk, "created", "_disk.sync(handle)", "pass"),
    ("results", disk, "replacing", "_disk.sync(handle)", "pass"),
    ("states", disk, "replacing", "_disk.sync(handle)", "pass"),
    ("cache", disk, "publish", "_sync_all(part)", "pass"),
    ("cache", disk, "_sync_all", "_disk.sync_folder(path)", "pass"),
    # Names are not synced: of files, of the manifest, of folders.
    ("results", disk, "replacing", "_disk.sync_folder(path.parent)", "pass"),
    ("states", disk, "replacing", "_disk.sync_folder(path.parent)", "pass"),
    ("epochs", EpochFolder, "commit", "disk.sync_folder(_folder_of(self.path, name))", "pass"),
    ("epochs", disk, "make_folder", "_disk.sync_folder(folder.parent)", "pass"),
    ("states", disk, "make_folder", "_disk.sync_folder(folder.parent)", "pass"),
    ("epochs", EpochFolder, "settle", "disk.sync_folder(self.path)", "pass"),
    ("epochs", EpochFolder, "_finish", "disk.sync_folder(folder)", "pass"),
    # Recovery takes the wrong epochs.
    ("epochs", EpochFolder, "_finish", "_state_name(end - 2)", "_state_name(end - 1)"),
    ("epochs", EpochFolder, "_finish", "hidden_name(end - 1)", "hidden_name(end)"),
    ("epochs", EpochFolder, "_sweep", "int(found[1]) != end - 1", "int(found[1]) < end"),
    ("epochs", folder, "_check_rows", "first > at", "first >= at"),
    # The writer takes an error for the end of a commit.
    ("epochs", EpochFolder, "commit", "self._begun = True", "pass"),
    ("epochs", EpochWriter, "_end_cut", "self.epochs > epoch", "self.epochs >= epoch"),
    ("epochs", EpochFolder, "__init__", "_check_alone(self.path)", "pass"),
])
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, subject: str, part: type | ModuleType, function: str,
                                  old: str, new: str) -> None:
    made = faulty(part, function, old, new)
    for user in {part, folder} if hasattr(folder, function) else {part}:
        monkeypatch.setattr(user, function, made)
    failure = next(iter(run(subject, range(_ENOUGH))), None)
    assert failure is not None
    *command, seed, one, n = failure.replay.split()
    assert (command, one, n) == (["python", "-m", "tests.disk", subject, "--seed"], "--schedules", "1")
    (again,) = run(subject, [int(seed)])
    assert [unnamed(call) for call in again.calls] == [unnamed(call) for call in failure.calls]


def test_a_rename_before_the_sync_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(part: Path, path: Path) -> None:
        disk.rename(part, path)
        disk._sync_all(path)

    monkeypatch.setattr(disk, "publish", publish)
    assert next(iter(run("cache", range(_ENOUGH))), None) is not None
