"""The import graph: a room imports only the rooms that stand beside it here, and no module imports itself in a circle.

A room is a folder of `sw/splitjoin/`, or the package in `hw/`, `sim/` or `boards/`. Imports inside functions count as
well, and those by importlib; docs/architecture.md draws the rooms.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("sw", "hw", "sim", "boards")

#: Room → the rooms that it may import, all of them above it in this table.
MAY_IMPORT = {
    "base": "",
    "lang": "base",
    "plan": "base lang",
    "engines": "base lang plan",
    "hls": "base lang",
    "circuit": "base lang plan engines hls",
    "link": "base lang engines circuit",
    "hw": "base lang hls circuit link",
    "sim": "base lang engines hls circuit link hw",
    "boards": "base circuit link hw sim",
    "tables": "base lang",
    "rows": "base lang engines circuit tables",
    "joins": "base lang plan engines circuit hw tables rows",
    "intervals": "base lang tables joins",
    "clock": "base",
    "frames": "base lang tables rows joins",
    "sessions": "base lang plan engines tables rows joins",
    "server": "base lang tables sessions",
    "qualify": "base lang plan",
    "catalyst": "base lang engines rows",
    "spark": "base lang plan engines circuit link tables rows joins sessions catalyst",
    "cli": "base lang engines circuit link hw sim boards tables rows joins server qualify catalyst",
}
#: The front of the package, the command ``python -m splitjoin``, and names that users know.
FRONT = {"splitjoin", "splitjoin.__main__", "splitjoin.cpu"}


def _components() -> Iterable[str]:
    from splitjoin.circuit.architectures import ARCHITECTURES
    return (one.component[0] for one in ARCHITECTURES.values())


def _architectures() -> Iterable[str]:
    from splitjoin.circuit.architectures import ARCHITECTURES
    return (type(one).__module__ for one in ARCHITECTURES.values())


def _table(module: str, name: str) -> Callable[[], Iterable[str]]:
    """The modules in the table ``name`` of ``module``: its values, or their attribute ``module``."""
    def named() -> Iterable[str]:
        return (str(getattr(value, "module", value))
                for value in vars(importlib.import_module(module))[name].values())

    return named


#: Module → the modules that it imports by names in variables. A table holds these names, for what one room must reach
#: in another without depending on it; so they need not keep the order of rooms, but may make no circle either. The one
#: exception: configurations need the declaration of an architecture, and its cost and speed are made of configurations.
BY_NAME: dict[str, Callable[[], Iterable[str]]] = {
    "splitjoin": _table("splitjoin", "_MODULES"),
    "splitjoin.circuit.architectures": _architectures,
    "splitjoin.circuit.architectures.architecture": tuple,  # the exception
    "splitjoin.engines.gpu.driver": tuple,  # packages of others
    "splitjoin.engines.registry": _table("splitjoin.engines.registry", "DEVICES"),
    "splitjoin.hls": lambda: ("splitjoin.lang.fold",),
    "splitjoin.hls.api": lambda: ("splitjoin_hw.hls.component",),
    "splitjoin.lang.query": _table("splitjoin.lang.front_ends", "FRONT_ENDS"),
    "splitjoin.rows.exports": tuple,  # packages of others
    "splitjoin.spark": lambda: {*_table("splitjoin.spark", "_MODULES")(), "splitjoin.spark.versions"},
    "splitjoin_hw.circuit": _components,
    "splitjoin_sim": lambda: ("splitjoin_sim.device", "splitjoin_sim.pysim"),
    "splitjoin_sim.build": _components,
}


@cache
def modules() -> dict[str, Path]:
    """Module name → file."""
    found = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(name: str) -> ast.Module:
    """The syntax of module ``name``."""
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def importlibs(name: str) -> Iterator[str | None]:
    """The modules that module ``name`` imports by importlib; None where the name is no constant."""
    for node in nodes(name):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called.lstrip("_") in ("import_module", "import__"):
                given = node.args[0]
                yield str(given.value) if isinstance(given, ast.Constant) else None


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """The imports, calls, classes and functions of module ``name``, of one walk, as that is what takes long."""
    return tuple(node for node in ast.walk(tree(name)) if isinstance(
        node, ast.Import | ast.ImportFrom | ast.Call | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def imported(name: str) -> tuple[str, ...]:
    """The modules of the project that module ``name`` imports, anywhere in it, but for those of `BY_NAME`."""
    return tuple(_imported(name))


def _imported(name: str) -> Iterator[str]:
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    yield from (other for other in importlibs(name) if other in modules())
    for node in nodes(name):
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


def room(name: str) -> str:
    """The room of module ``name``."""
    package, _, inner = name.partition(".")
    return inner.partition(".")[0] if package == "splitjoin" else package.removeprefix("splitjoin_")


def test_every_module_has_a_room() -> None:
    assert {room(name) for name in modules() if name not in FRONT} == set(MAY_IMPORT)


def test_names_in_variables_are_known() -> None:
    assert {name for name in modules() if None in importlibs(name)} == set(BY_NAME)
    assert all(other in modules() for named in BY_NAME.values() for other in named())


def test_importlib_is_seen() -> None:
    assert set(importlibs("splitjoin_hw.circuit")) == {None}
    assert "pandas" in importlibs("splitjoin.frames.of_pandas")


def test_the_table_has_no_circle() -> None:
    order = list(MAY_IMPORT)
    assert all(set(others.split()) <= set(order[:n]) for n, others in enumerate(MAY_IMPORT.values()))


def test_rooms_import_what_the_table_says() -> None:
    """All that it allows is used, too: a line that nobody needs would allow what nobody has thought about."""
    found: dict[str, set[str]] = {name: set() for name in MAY_IMPORT}
    for name in sorted(set(modules()) - FRONT):
        for other in imported(name):
            # The loader looks whether a worker of Spark has any splitjoin.
            assert other not in FRONT or name == "splitjoin.spark.loader", f"{name} imports {other}"
            if other not in FRONT and room(other) != room(name):
                assert room(other) in MAY_IMPORT[room(name)].split(), f"{name} imports {other}"
                found[room(name)].add(room(other))
    assert found == {name: set(others.split()) for name, others in MAY_IMPORT.items()}


def test_no_circle_of_imports() -> None:
    graph = {name: {*imported(name), *BY_NAME.get(name, tuple)()} - {name} for name in modules()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " imports ".join((*way[way.index(name):], name))
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*way, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_nothing_imports_the_baselines() -> None:
    """They are reached by the name in an architecture's declaration, and only where it says that it is a baseline."""
    fenced = "splitjoin_hw.baseline"
    for name in modules():
        assert name.startswith(fenced) or not any(other.startswith(fenced) for other in imported(name)), name
    from splitjoin.circuit.architectures import ARCHITECTURES
    assert all(one.baseline == one.component[0].startswith(fenced) for one in ARCHITECTURES.values())


def test_engines_of_papers_are_reached_by_one_choice() -> None:
    fenced = "splitjoin.rows.interval_joins.baseline"
    importing = {name for name in modules() if any(other.startswith(fenced) for other in imported(name))}
    assert {name for name in importing if not name.startswith(fenced)} == {"splitjoin.rows.interval_joins.choice"}


def test_nobody_names_the_cpu_engine() -> None:
    """Others ask any device, and the host by its role (`registry.host`). GPUs share parts of the engine."""
    named = [name for name in set(modules()) - FRONT if not name.startswith("splitjoin.engines") and any(
        other.startswith("splitjoin.engines.cpu") for other in imported(name))]
    assert not named


def test_host_software_imports_no_hdl() -> None:
    for name, path in modules().items():
        if path.is_relative_to(ROOT / "sw"):
            found = {alias.name.split(".")[0] for node in nodes(name) if isinstance(node, ast.Import)
                     for alias in node.names}
            found |= {str(node.module).split(".")[0] for node in nodes(name)
                      if isinstance(node, ast.ImportFrom) and not node.level}
            assert not found & {"amaranth", "amaranth_boards", "cocotb"}, name


def test_other_packages_are_imported_by_name_only() -> None:
    """Host software runs without `hw/`, `sim/` and `boards/`: it imports them inside functions, or for types alone."""
    for name, path in modules().items():
        if path.is_relative_to(ROOT / "sw"):
            top = tree(name).body
            roots = {alias.name.split(".")[0] for node in top if isinstance(node, ast.Import) for alias in node.names}
            roots |= {str(node.module).split(".")[0] for node in top if isinstance(node, ast.ImportFrom)}
            assert not roots & {"splitjoin_hw", "splitjoin_sim", "splitjoin_boards"}, name


def test_the_language_is_a_fifth_of_the_host_software() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "sw").rglob("*.py")}
    language = sum(n for path, n in lines.items() if path.is_relative_to(ROOT / "sw" / "splitjoin" / "lang"))
    assert language <= 0.2 * sum(lines.values())


def test_a_class_has_its_name_alone() -> None:
    """Within its room always. Across rooms, twelve names stand for one concept in two layers, as ScaleGate does."""
    rooms: dict[str, list[str]] = {}
    for name, path in modules().items():
        room = "/".join(path.relative_to(ROOT).parts[:3])
        for node in nodes(name):
            if isinstance(node, ast.ClassDef):
                rooms.setdefault(node.name, []).append(room)
    assert {name: found for name, found in rooms.items() if len(found) > len(set(found))} == {}
    assert len([name for name, found in rooms.items() if len(found) > 1]) <= 12


def test_few_functions_have_many_parameters() -> None:
    """Those that stay are what users call, each parameter by its name, and what has the same ones as these."""
    found = []
    for name in modules():
        for node in nodes(name):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                if sum(one is not None and one.arg not in ("self", "cls") for one in parameters) > 10:
                    found.append(f"{name}.{node.name}")
    assert len(found) <= 25, found


def test_modules_say_by_underscores_what_is_private() -> None:
    """A list of names stands only where it gives names of other modules. Beside an own one it would say twice what an
    underscore says, and hide names that nobody uses any more from those who look for them.
    """
    for name, path in modules().items():
        lists = [node for node in tree(name).body if isinstance(node, ast.Assign)
                 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"]
        own = {node.name for node in tree(name).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert path.name == "__init__.py" or not lists or not set(ast.literal_eval(lists[0].value)) <= own, name
