"""The tests that must find a fault in a file: those that mirror it, and the machines that drive it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

_ROOMS = {"sw/splitjoin/hls": "tests/hw/hls", "sw/splitjoin": "tests/sw", "hw/splitjoin_hw": "tests/hw",
          "sim/splitjoin_sim": "tests/sim", "boards/splitjoin_boards": "tests/boards"}
#: Folders of machines, which run whatever they say.
_MACHINES = ("tests/machine", "tests/disk", "tests/simulation")
#: Folders with tests of a room beside those that mirror it, by the beginning of a file's path: the first that fits.
_MORE = {
    "sw/splitjoin/base/threads": ["tests/simulation"],
    "sw/splitjoin/base/": ["tests/disk", "tests/sw/sessions/epochs"],
    "sw/splitjoin/sessions/epochs/": ["tests/disk", "tests/machine", "tests/simulation"],
    "sw/splitjoin/sessions/": ["tests/sw/sessions", "tests/machine", "tests/simulation"],
    "sw/splitjoin/server/": ["tests/simulation"],
    "sw/splitjoin/spark/streaming/": ["tests/disk"],
    "sw/splitjoin/rows/": ["tests/sw/sessions", "tests/machine"],
    "sw/splitjoin/engines/": ["tests/machine", "tests/simulation"],
    "sw/splitjoin/link/": ["tests/sw/link", "tests/simulation"],
    "hw/splitjoin_hw/": ["tests/formal"],
}
#: Folders whose tests begin a JVM or compile circuits: of these, only the file that mirrors a fault's is run.
_LONG = ("tests/sw/spark", "tests/sim", "tests/hw")
#: Rooms behind one function: what a test says names few of the files that it runs, so the tests of all of them are run.
_ONE_DOOR = ("sw/splitjoin/joins/sql/",)
#: Tests of other rooms, or of whole cores, that run what is in a file and seldom name it.
_ELSEWHERE = {
    "sw/splitjoin/circuit/parameters.py": ("tests/sim/test_options.py", "tests/sim/test_external_memory.py",
                                           "tests/sw/circuit/test_architectures.py"),
    "hw/splitjoin_hw/core/bitmap.py": ("tests/hw/core/test_index.py", "tests/sim/test_index_cores.py"),
    "hw/splitjoin_hw/core/range_prober.py": ("tests/hw/core/test_index.py", "tests/sim/test_index_cores.py"),
    "sw/splitjoin/circuit/driver.py": ("tests/sim/test_slices.py", "tests/sim/test_folding.py",
                                       "tests/sim/test_verify.py", "tests/sim/test_fault_isolation.py"),
}
#: Files at most, beside the machines.
_MOST = 4


def finders_of(root: Path, file: str) -> list[str]:
    """The test files in ``root`` for the product file ``file``: first its mirror, then those of its room that speak of
    what it has, that of its name and those that say most about it first, those that are named as its classes or begin
    with its name, and the machines at last. If it has no mirror, the tests of any room that import it come first. If
    none speaks of it, those of the files beside it that import it.
    """
    if found := _finders(root, file):
        return found
    path = Path(file)
    users = [str(one.relative_to(root)) for one in sorted((root / path.parent).glob("*.py")) if re.search(
        rf"(?m)^ *from \.(?: import .*\b)?{path.stem}\b", one.read_text())]
    return list(dict.fromkeys(test for user in users for test in _finders(root, user)))[:_MOST]


def _finders(root: Path, file: str) -> list[str]:
    room = next((room for room in _ROOMS if file.startswith(f"{room}/")), None)
    if room is None:
        return []
    path = Path(_ROOMS[room] + file.removeprefix(room))
    mirror = path.parent / f"test_{path.stem.strip('_')}.py"
    more = next((more for start, more in _MORE.items() if file.startswith(start)), [])
    own = next(str(folder) for folder in path.parents if (root / folder).is_dir())
    folders = [own, *(one for one in more if one not in _MACHINES)]
    names = _names((root / file).read_text(), path)
    found: dict[str, int] = {}
    for folder in folders if own not in _LONG else []:
        for one in sorted((root / folder).glob("test_*.py")):
            words = _words(one)
            said = sum(min(words[name], 5) for name in names)
            if said or file.startswith(_ONE_DOOR):
                found[str(one.relative_to(root))] = said
    near = sorted(found, key=lambda one: (Path(one).name != mirror.name, -found[one], one))
    near = near if file.startswith(_ONE_DOOR) else near[:_MOST]
    alike = _class_words(root / file)
    near = [*_ELSEWHERE.get(file, ()), *([] if (root / mirror).is_file() else _importers(root, file, names)), *near]
    near += [one for one in found if Path(one).name.startswith(f"{mirror.stem}_")
             or Path(one).stem.removeprefix("test_") in alike]
    machines = [str(one.relative_to(root)) for folder in more if folder in _MACHINES
                for one in sorted((root / folder).glob("test_*.py"))]
    return list(dict.fromkeys([*([str(mirror)] if (root / mirror).is_file() else []), *near, *machines]))


def _importers(root: Path, file: str, names: set[str]) -> list[str]:
    """The tests that import ``file``, those that say most of its ``names`` first."""
    module = ".".join(Path(file).with_suffix("").parts[1:])
    found = {one: sum(min(words[name], 5) for name in names) for one in sorted((root / "tests").rglob("test_*.py"))
             if module in _modules(one) for words in [_words(one)]}
    return [str(one.relative_to(root)) for one in sorted(found, key=lambda one: -found[one])][:_MOST]


def _class_words(path: Path) -> set[str]:
    """The words in the names of a file's classes, such as "retained" and "windows" of RetainedWindows."""
    return {word.lower() for name in re.findall(r"(?m)^class (\w+)", path.read_text())
            for word in re.findall("[A-Z][a-z]+", name)}


@cache
def _words(path: Path) -> Counter[str]:
    return Counter(re.findall(r"\w+", path.read_text()))


@cache
def _modules(path: Path) -> set[str]:
    """The modules of which a file imports something."""
    return set(re.findall(r"(?m)^ *from ([\w.]+) import", path.read_text()))


def _names(source: str, path: Path) -> set[str]:
    """Words by which tests may speak of a file: of its name and its folder, and what is public in it."""
    words = {path.stem, *path.stem.split("_"), path.parent.name}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            words.add(node.name)
    return {word for word in words if len(word) > 3}
