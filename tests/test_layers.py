"""The import graph: layers import downwards only, no module imports itself in a circle, and `lang` stays small.

The layers are written down here and drawn in docs/architecture.md. Imports inside functions count as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = {"sw": "splitjoin", "hw": "splitjoin.hw", "sim": "splitjoin.sim", "boards": "splitjoin.boards"}

#: Packages and modules below `splitjoin`, the lowest first: each imports only those before it. What stands in one tuple
#: does not import each other either.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("interrupts", "json_text", "processes", "safe_text", "trust", "version"),
    ("errors",),
    ("cache", "ipc", "lang", "memory", "progress"),
    ("plan", "arrival", "sliding"),
    ("device",),
    ("kinds",),
    ("circuit", "cpu", "daemon", "golden"),
    ("cost", "link"),
    ("tuner",),
    ("exports", "output", "files", "result_values"),
    ("tables", "result", "expected_size"),
    ("aggregates", "schema_text"),
    ("oij",),
    ("execution",),
    ("join", "explain", "export"),
    ("gate", "qualify", "statement"),
    ("stream",),
    ("hw",),
    ("sim",),
    ("boards",),
    ("circuit_component",),
    ("spark", "cli"),
)
#: Layers that are imported by name, when they are asked for: devices by the registry, HDL by the commands that write
#: Verilog or bitstreams, or emulate a board. Host software needs neither.
BY_NAME = {("cli", "hw"), ("cli", "sim"), ("cli", "boards")}
#: Modules that import what they like: the package's front, the command, and what has no imports of the project.
FRONT = {"splitjoin", "splitjoin.__main__", "splitjoin.prerequisites"}


@cache
def modules() -> dict[str, Path]:
    """Module name → file."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = (package, *path.relative_to(ROOT / folder).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str) -> Iterator[str]:
    """The modules of the project that module ``name`` imports, anywhere in it."""
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in modules():
                    yield inner
                elif base in modules():
                    yield base


def layer(name: str) -> str:
    """The package or module below `splitjoin` that module ``name`` belongs to."""
    return name.split(".")[1]


def test_every_module_has_a_layer() -> None:
    known = {name for group in LAYERS for name in group}
    assert {layer(name) for name in modules() if name not in FRONT} == known


def test_nothing_imports_upwards() -> None:
    rank = {name: n for n, group in enumerate(LAYERS) for name in group}
    upward = []
    for name in sorted(set(modules()) - FRONT):
        for other in imported(name):
            if other in FRONT:
                upward.append(f"{name} imports {other}")
            elif layer(name) != layer(other) and rank[layer(other)] >= rank[layer(name)]:
                upward += [f"{name} imports {other}"] if (layer(name), layer(other)) not in BY_NAME else []
    assert upward == []


def test_no_circle_of_imports() -> None:
    graph = {name: set(imported(name)) - {name} for name in modules()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " imports ".join((*way[way.index(name):], name))
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*way, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_host_software_imports_no_hdl() -> None:
    for name, path in modules().items():
        if path.is_relative_to(ROOT / "sw"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import)
                     for alias in node.names}
            found |= {str(node.module).split(".")[0] for node in ast.walk(tree)
                      if isinstance(node, ast.ImportFrom) and not node.level}
            assert not found & {"amaranth", "amaranth_boards", "cocotb"}, name


def test_the_language_is_a_fifth_of_the_host_software() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "sw").rglob("*.py")}
    language = sum(n for path, n in lines.items() if path.is_relative_to(ROOT / "sw" / "lang"))
    assert language <= 0.2 * sum(lines.values())
