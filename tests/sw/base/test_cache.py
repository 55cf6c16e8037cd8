"""The cache folder: where it is, who may write to it, what is removed from it, and what is done without one."""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from pathlib import Path

import platformdirs
import pytest

from splitjoin import ToolError
from splitjoin.base import cache as cache_module, trust
from splitjoin.base.cache import (
    NoCache,
    cache_folder,
    cache_limit,
    find,
    locked,
    making,
    place,
    publish,
    trim,
    try_lock,
)
from tests.support.users import of_another_user

NAME = "model-0123456789abcdef01234567.so"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that SPLITJOIN_CACHE names; temporary files have a folder of their own."""
    folder = tmp_path / "team" / "base"
    monkeypatch.setenv("SPLITJOIN_CACHE", str(folder))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    cache_module._say.cache_clear()
    return folder


def test_entries_have_a_folder_of_their_own(base: Path) -> None:
    """Mode 0700, whatever the umask is, and marked as a cache for back-ups."""
    before = os.umask(0)
    try:
        folder = cache_folder()
    finally:
        os.umask(before)
    assert folder == base / "splitjoin-cache"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (base.parent, base, folder)} == {0o700}
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")


def test_a_relative_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPLITJOIN_CACHE", "own/cache")
    assert cache_folder() == tmp_path / "own" / "cache" / "splitjoin-cache"
    assert cache_folder().is_dir()


def test_the_folder_is_the_platform_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPLITJOIN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == platformdirs.user_cache_path("splitjoin") / "splitjoin-cache"


@pytest.mark.parametrize("folder", ["/proc/foo", "/dev/null", "/dev/null/x"])
def test_without_a_folder_that_can_be_written_to_there_is_a_temporary_one(
        folder: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", folder)
    with pytest.warns(RuntimeWarning, match=f"goes to the temporary folder .* as the cache {folder}/splitjoin-cache "
                                            f"cannot be used .*; set the variable SPLITJOIN_CACHE"):
        found = cache_folder()
    assert found.is_relative_to(tmp_path / "tmp")
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert cache_folder() == found  # and no second warning


def test_what_only_others_may_write_to_is_read(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the image of a container, where root has filled the cache."""
    made, *_ = place(NAME), place(NAME).write_bytes(b"x")
    monkeypatch.setattr(os, "access", lambda path, mode: not Path(path).is_relative_to(base))
    with pytest.warns(RuntimeWarning, match="cannot be used .it cannot be written to."):
        assert find(NAME) == made
    other = place("model-0123456789abcdef0123abcd.so")
    assert other.is_relative_to(tmp_path / "tmp")
    assert find(other.name) is None
    other.write_bytes(b"y")
    assert find(other.name) == other


def test_without_any_folder(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", "/proc/foo")
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.warns(RuntimeWarning, match="stays in memory, and each process compiles it again"):
        assert find(NAME) is None
    with pytest.raises(NoCache, match=r"must be a folder that can be written to, but the cache /proc/foo/.*; set"):
        place(NAME)


def test_a_lock_that_cannot_be_made() -> None:
    with pytest.raises(ToolError, match="SPLITJOIN_CACHE"), locked(Path("/proc/x/y.lock")):
        pass


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(mode: int, base: Path) -> None:
    folder = cache_folder()
    folder.chmod(mode)
    with pytest.raises(ToolError, match=f"nobody but this user and root may write to its folder, but in "
                                        f"{re.escape(str(folder))}, {re.escape(str(folder))} has mode {mode:04o}; set"):
        cache_folder()
    folder.chmod(0o755)
    assert cache_folder() == folder


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o1777, False), (0o755, False)])
def test_a_parent_that_others_may_write_to_is_refused(mode: int, refused: bool, base: Path) -> None:
    """They could exchange the folder below it, unless it has the sticky bit."""
    folder = cache_folder()
    for parent in (base, base.parent):
        parent.chmod(mode)
        if refused:
            with pytest.raises(ToolError, match=f"{re.escape(str(parent))} has mode {mode:04o}"):
                find(NAME)
        else:
            assert cache_folder() == folder
        parent.chmod(0o700)


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_in_the_cache_that_others_may_write_to_is_refused(mode: int, base: Path) -> None:
    path = place(f"kernels/{NAME}")
    path.write_bytes(b"x")
    assert find(f"kernels/{NAME}") == path
    path.parent.chmod(mode)
    with pytest.raises(ToolError, match=f"kernels has mode {mode:04o}"):
        find(f"kernels/{NAME}")


def test_nothing_is_made_below_a_parent_that_is_refused(base: Path) -> None:
    base.parent.mkdir()
    base.parent.chmod(0o777)
    with pytest.raises(ToolError, match="has mode 0777"):
        cache_folder()
    assert list(base.parent.iterdir()) == []


def test_the_group_of_a_parent_may_write_if_nobody_else_is_in_it(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folder()
    base.chmod(0o770)
    monkeypatch.setattr(trust, "_is_private_group", lambda group, user: True)
    assert cache_folder() == folder
    monkeypatch.setattr(trust, "_is_private_group", lambda group, user: False)
    with pytest.raises(ToolError, match="has mode 0770"):
        cache_folder()


def test_private_groups() -> None:
    """That of root is one on all systems; a group that nobody knows is none."""
    assert trust._is_private_group(0, 0)
    assert not trust._is_private_group(54321, 0)
    assert not trust._is_private_group(0, 54321)


def test_folders_of_another_user_are_refused(base: Path) -> None:
    place(f"kernels/{NAME}").write_bytes(b"x")
    for folder in (cache_folder() / "kernels", cache_folder(), base, base.parent):
        with of_another_user(folder), pytest.raises(ToolError, match=f"{re.escape(str(folder))} is of user 12345"):
            find(f"kernels/{NAME}")
    assert find(f"kernels/{NAME}") is not None


def test_another_user_s_folder_is_no_reason_to_fail_if_nobody_has_named_it(
        base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the home of an image that a container runs for any user."""
    monkeypatch.delenv("SPLITJOIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    cache_folder()
    with of_another_user(tmp_path / "home"), pytest.warns(RuntimeWarning, match="home is of user 12345.; set the var"):
        assert cache_folder().is_relative_to(tmp_path / "tmp")


def test_a_temporary_folder_that_another_user_has_made_is_not_used(
        base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE", "/proc/foo")
    planted = tmp_path / "tmp" / f"splitjoin-{os.geteuid()}"
    planted.mkdir()
    with of_another_user(planted), pytest.warns(RuntimeWarning, match="nor a temporary folder .*is of user 12345"):
        assert find(NAME) is None


def test_links(base: Path, tmp_path: Path) -> None:
    """One's own are followed; those of others, and those to what others may write to, are refused."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    base.mkdir(parents=True)
    (base / "splitjoin-cache").symlink_to(elsewhere)
    (elsewhere / "kernels").symlink_to("other")
    (elsewhere / "other").mkdir(mode=0o700)
    (elsewhere / "other" / NAME).write_bytes(b"x")
    assert cache_folder() == elsewhere
    assert find(f"kernels/{NAME}") == elsewhere / "kernels" / NAME
    for link in (base / "splitjoin-cache", elsewhere / "kernels"):
        with of_another_user(link), pytest.raises(ToolError, match=f"{re.escape(str(link))} is of user 12345"):
            find(f"kernels/{NAME}")
    (elsewhere / "other").chmod(0o777)
    with pytest.raises(ToolError, match="other has mode 0777"):
        find(f"kernels/{NAME}")
    (elsewhere / "other").chmod(0o700)
    (base / "splitjoin-cache").unlink()
    (base / "splitjoin-cache").symlink_to("splitjoin-cache")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        trust.check_folder(base / "splitjoin-cache")


def test_a_file_that_others_could_have_written_is_made_again(base: Path) -> None:
    path = place(NAME)
    path.write_bytes(b"planted")
    with of_another_user(path):
        assert find(NAME) is None
    assert find(NAME) == path
    assert trust.private_bytes(path) == b"planted"
    path.chmod(0o666)
    assert find(NAME) is trust.private_bytes(path) is None
    part = path.with_suffix(".part")
    part.write_bytes(b"own")
    part.chmod(0o777)  # as a compiler leaves it where the umask is 0
    publish(part, path)
    assert find(NAME) == path
    assert trust.private_bytes(path) == b"own"
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert find(NAME) is trust.private_bytes(path) is None


@pytest.mark.parametrize(("text", "limit"), [("", 4 << 30), ("0", 0), ("1000", 1000), ("500 MiB", 500 << 20),
                                             ("2GiB", 2 << 30)])
def test_the_limit(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", text)
    assert cache_limit() == limit


@pytest.mark.parametrize("text", ["-1", "2 GB", "much", "1.5GiB"])
def test_a_wrong_limit(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", text)
    with pytest.raises(ToolError, match=f"SPLITJOIN_CACHE_LIMIT must be a whole number of .*, not '{text}'"):
        cache_limit()


def entry(folder: Path, names: tuple[str, ...], hours: float) -> None:
    """Files of 1,000 bytes each, last used so many ``hours`` ago."""
    then = time.time() - hours * 3600
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
    for name in names:
        for path in (folder / name, *(folder / name).parents):
            if path != folder and path.is_relative_to(folder):
                os.utime(path, (then, then))


def cached(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".lock" and path.name != "CACHEDIR.TAG"}


A, B, C, D = (f"{name}-0123456789abcdef0123456{n}" for n, name in enumerate(("model", "runtime", "region", "model")))
KERNEL = (f"kernels/{C}.code", f"kernels/{C}.77.part", f"kernels/{C}.txt")
OLD, RUNTIME, NEW = (f"{A}.so",), (f"{B}/verilated.o", f"{B}/deep/verilated.h"), (f"{D}.so",)


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """A folder that says that it is a cache."""
    (tmp_path / "CACHEDIR.TAG").write_text(cache_module._TAG_TEXT)
    return tmp_path


@pytest.mark.parametrize(("limit", "left"), [
    (10_000, {*OLD, *RUNTIME, *KERNEL, *NEW}), (6500, {*RUNTIME, *KERNEL, *NEW}), (6000, {*RUNTIME, *KERNEL, *NEW}),
    (5999, {*KERNEL, *NEW}), (3999, {*NEW}), (0, {*NEW})])
def test_the_least_recently_used_goes_first(limit: int, left: set[str], marked: Path) -> None:
    for names, hours in ((KERNEL, 20), (OLD, 40), (NEW, 0.1), (RUNTIME, 30)):
        entry(marked, names, hours)
    (marked / f"{A}.lock").touch()
    before = len(cached(marked))
    removed = trim(marked, limit)
    assert cached(marked) == left
    assert removed == 1000 * (before - len(left))
    assert (marked / f"{A}.lock").exists()


def test_use_keeps_an_entry(base: Path) -> None:
    """Also where the file system notes no times of reading."""
    for name, hours in ((f"{A}.so", 40), (f"{D}.so", 30)):
        entry(cache_folder(), (name,), hours)
    assert find(f"{A}.so") is not None
    assert trim(cache_folder(), 0) == 1000
    assert cached(cache_folder()) == {f"{A}.so"}


def test_nothing_else_is_removed(marked: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever is in the folder, whatever a link in it names, and however full it is."""
    home = tmp_path_factory.mktemp("home")
    foreign = (".ssh/id_ed25519", "thesis.tex", "kernels/notes.txt", "model-old.so", f"{A}x.so", "daemon/daemon.sock")
    entry(marked, (*foreign, *OLD, *KERNEL), 1000)
    entry(home, (*OLD, "thesis.tex"), 1000)
    for link, target in ((marked / "kernels" / B, home), (marked / f"{D}.so", home / "thesis.tex")):
        link.symlink_to(target)
        os.utime(link, (0, 0), follow_symlinks=False)
    trim(marked, 0)
    assert cached(marked) == set(foreign)
    assert cached(home) == {*OLD, "thesis.tex"}
    (marked / "kernels").rename(marked / "before")
    (marked / "kernels").symlink_to(home)
    assert trim(marked, 0) == 0
    assert cached(home) == {*OLD, "thesis.tex"}


def test_only_what_is_marked_as_a_cache_is_trimmed(tmp_path: Path) -> None:
    entry(tmp_path, OLD, 40)
    assert trim(tmp_path, 0) == 0
    (tmp_path / "CACHEDIR.TAG").write_text("another text")
    assert trim(tmp_path, 0) == 0
    assert cached(tmp_path) == {*OLD}


def test_one_process_trims_at_a_time(marked: Path) -> None:
    entry(marked, OLD, 40)
    with try_lock([marked / "trim.lock"]) as mine:
        assert mine
        assert trim(marked, 0) == 0
    assert trim(marked, 0) == 1000
    assert trim(marked / "missing", 0) == 0


def test_what_is_made_makes_room(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITJOIN_CACHE_LIMIT", "1500")
    cache_module._trim_once.cache_clear()
    entry(cache_folder(), OLD, 40)
    with making(place(f"{D}.lock")):
        entry(cache_folder(), NEW, 0)
    assert cached(cache_folder()) == {*NEW}
