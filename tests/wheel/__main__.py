"""Tests of what users install: wheel and sdist go into fresh environments where no compiler is found, which run the
examples and commands of README and docs/, the scripts of examples/ and the notebooks, all outside the repository.

``make wheel-test`` runs all; ``python -m tests.wheel NAME…`` only some pages (docs/sql.md) and pieces ("scripts",
"circuits", "spark", "flights", "notebooks", "sdist").
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .account import COMPILES, PAGES, Run, accounted, run_of
from .environments import CommandError, Environment, run, without_compilers
from .pages import ROOT, blocks

#: What is installed where: splitjoin's extras, and what users have beside it.
_INSTALLED = {
    "plain": ("", ("pandas", "polars", "duckdb", "nbclient", "ipykernel")),
    "circuits": ("[emulator]", ("nbclient", "ipykernel", "cocotb==2.1.0")),
    "recipes": ("", ("pandas==3.1.1", "dpkt==1.9.8", "databento-dbn==0.72.0", "pyais==3.3.1", "asammdf==8.8.28",
                     "mcap==1.6.0", "pyubx2==1.4.0", "obspy==1.5.1", "pybigtools==0.3.0", "pyvcd==0.5.1")),
    "spark": ("[spark,connect]", ("nbclient", "ipykernel", "deltalake==1.6.6", "pyiceberg[sql-sqlite]==0.12.0")),
    "sdist": ("", ()),
}
#: Notebook → the environment in which its kernel runs.
NOTEBOOKS = {"analyst": "plain", "architectures": "circuits", "features": "plain", "circuit": "circuits",
             "spark": "spark"}
#: Pieces of work that go side by side.
_JOBS = 2


def main(names: Sequence[str]) -> None:
    """Run the pieces ``names``, or all. Exits with 1 if one fails, after the others."""
    start = time.perf_counter()
    if (not names or "docs/axi.md" in names) and shutil.which("iverilog") is None:
        raise SystemExit("the examples of docs/axi.md need iverilog, which is not on the PATH; install it (Debian: "
                         "apt-get install iverilog), or name the pages and pieces to run instead, such as README.md")
    # Processes that compile loops beside an example may still write bytecode.
    with tempfile.TemporaryDirectory(prefix="splitjoin-wheel-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], folder,
            {"PATH": os.environ["PATH"]})
        rebuilt(folder)
        (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
        tools = without_compilers(folder / "tools")
        wanted = [(piece, environment, work) for piece, environment, work in pieces() if not names or piece in names]
        if unknown := set(names) - {piece for piece, _, _ in wanted}:
            raise SystemExit(f"nothing is called {', '.join(sorted(unknown))}; there are "
                             f"{', '.join(sorted({piece for piece, _, _ in pieces()}))}")

        def made(environment: str) -> Environment:
            return Environment(folder / environment, tools, sdist if environment == "sdist" else wheel,
                               *_INSTALLED[environment])

        with ThreadPoolExecutor(_JOBS) as pool:
            needed = [name for name in _INSTALLED if any(name == environment for _, environment, _ in wanted)]
            environments = dict(zip(needed, pool.map(made, needed), strict=True))
            failed = [piece for piece in pool.map(lambda one: attempt(one[0], one[2], environments[one[1]]), wanted)
                      if piece]
    print(summary())
    used = os.times()
    print(f"{time.perf_counter() - start:6.1f} s, {used.children_user + used.children_system:.0f} s of CPU: "
          f"{wheel.name} and {sdist.name}, "
          + (f"{', '.join(failed)} failed" if failed else "all of it runs"))
    if failed:
        raise SystemExit(1)


def rebuilt(folder: Path) -> None:
    """Build again, from the sdist in ``folder``/dist, with other dates and modes. Raises `CommandError` unless the
    wheel has the same bytes, and the sdist too once it is built from one.
    """
    made = []
    for turn, umask in enumerate((0o022, 0o077)):
        source = folder / f"source{turn}"
        run(["sh", "-c", f"umask {umask:03o} && mkdir {source} && tar xzf {folder}/dist/*.tar.gz --touch -C {source} "
             f"--strip-components=1 && {sys.executable} -m build --outdir {folder}/dist{turn} {source}"], folder,
            {"PATH": os.environ["PATH"]})
        made.append({path.name: path.read_bytes() for path in (folder / f"dist{turn}").iterdir()})
    wheels = {path.name: path.read_bytes() for path in (folder / "dist").glob("*.whl")}
    if made[0] != made[1] or {**made[0], **wheels} != made[0]:
        raise CommandError("wheel and sdist are not the same when they are built again")


def pieces() -> list[tuple[str, str, Callable[[Environment], None]]]:
    """Name, environment and work of each piece."""
    found: list[tuple[str, str, Callable[[Environment], None]]] = []
    for page, runs in PAGES.items():
        found += [(page, one.environment, page_work(page, one)) for one in runs]
    return [*found, ("circuits", "circuits", circuits), ("spark", "spark", spark), ("scripts", "plain", scripts),
            ("flights", "spark", flights),
            *(("notebooks", environment, notebook(name)) for name, environment in NOTEBOOKS.items()),
            ("sdist", "sdist", from_source)]


def attempt(piece: str, work: Callable[[Environment], None], environment: Environment) -> str | None:
    """Do the work; the name of the piece if it fails."""
    try:
        work(environment)
    except CommandError:
        pass  # what it printed is shown already
    except Exception:
        traceback.print_exc()
    else:
        return None
    print(f"FAILED    {piece}", flush=True)
    return piece


def page_work(page: str, one: Run) -> Callable[[Environment], None]:
    """Runs the blocks of ``page`` that are for ``one``."""
    def work(environment: Environment) -> None:
        folder = environment.work(f"{page.removesuffix('.md').replace('/', '-')}-{PAGES[page].index(one)}")
        paths = {needed: environment.path(folder, compilers=needed) for needed in (False, True)}
        steps = []

        def step(place: str, language: str, code: str, prints: str | None = None) -> None:
            if code:
                steps.append({"place": place, "language": language, "code": code, "prints": prints,
                              "path": paths[bool(COMPILES.search(code))]})

        step(f"before {page}", "python", one.before)
        for block in blocks(page):
            if run_of(block) != one:
                continue
            if block.language == "python":
                step(block.place, "python", block.code, block.prints)
                continue
            run_as = accounted(block)
            as_it_stands = all(command.text == command.shown for command in run_as)
            step(block.place, "sh", "".join(
                f"PATH={shlex.quote(paths[bool(COMPILES.search(command.text))])}\n{command.text}"
                for command in run_as if command.text is not None), block.prints if as_it_stands else None)
        step(f"after {page}", "python", one.after)
        if any(found["language"] == "sh" or found["code"] not in (one.before, one.after) for found in steps):
            copied = environment.folder / "run_steps.py"
            shutil.copy(ROOT / "tests" / "wheel" / "run_steps.py", copied)
            (folder / "steps.json").write_text(json.dumps(steps))
            printed = environment.run([str(environment.bin / "python"), str(copied), "steps.json"], folder)
            print(f"{page} ({one.environment})\n{printed}", end="", flush=True)

    return work


def scripts(environment: Environment) -> None:
    """The command, and the scripts of examples/ for tables."""
    work = environment.work("command")
    environment.run(["splitjoin", "--version"], work)
    environment.run(["splitjoin", "devices"], work)
    assert "3," in environment.example("trades_and_quotes.py", "--rows", "300")
    environment.example("nearest_readings.py", "--rows", "500")
    assert "are equal" in environment.example("feature_store.py", "--rows", "1500")


def circuits(environment: Environment) -> None:
    """The scripts of examples/ for circuits."""
    environment.example("own_condition.py", compilers=True)
    assert "2 of 2" in environment.example("cocotb_bench/run.py", compilers=True)
    assert "lines of Verilog" in environment.example("two_joins.py", "--samples", "20", "--output", "two_joins.v")


def spark(environment: Environment) -> None:
    """The job for spark-submit."""
    work = environment.work("spark_job")
    shutil.copy(ROOT / "examples" / "spark_job.py", work)
    printed = environment.run(["spark-submit", "--master", "local[2]", "spark_job.py", "orders", "offers", "pairs",
                               "--demo", "2000"], work)
    assert "pairs" in printed


def flights(environment: Environment) -> None:
    """The examples that need the extra ``flights``."""
    work = environment.work("flights")
    environment.run(["pip", "install", "--quiet", "splitjoin[flights]"], work)
    shutil.copytree(ROOT / "examples", work / "examples")
    printed = environment.run(["python", "-m", "examples.flights.batch", "--quick"], work, compilers=True)
    assert "equal: " in printed
    environment.run(["python", "-m", "examples.flights.stream"], work)


def notebook(name: str) -> Callable[[Environment], None]:
    """Runs a notebook in a kernel of Jupyter's."""
    def work(environment: Environment) -> None:
        folder = environment.work(f"notebook-{name}")
        shutil.copy(ROOT / "examples" / "notebooks" / f"{name}.ipynb", folder)
        environment.run([str(environment.bin / "python"), "-c", "from nbclient.cli import main; main()", "--output",
                         "written.ipynb", f"{name}.ipynb"], folder)
        assert '"outputs": [\n' in (folder / "written.ipynb").read_text(encoding="utf-8"), name

    return work


def from_source(environment: Environment) -> None:
    """A join by the package that was installed from the sdist."""
    work = environment.work("join")
    (work / "R.csv").write_text("x\n10\n20\n30\n")
    (work / "S.csv").write_text("a\n12\n70\n31\n")
    environment.run(["splitjoin", "join", "R.csv", "S.csv", "--on", "abs(r.x - s.a) <= 5", "-o", "out.csv"], work)
    assert len((work / "out.csv").read_text().splitlines()) == 3


def summary() -> str:
    """A line that counts the blocks and commands of all pages, by the way in which they are run."""
    python, how = 0, Counter[str]()
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python":
                python += 1
            elif block.language == "sh":
                how.update("left out" if command.text is None else "changed" if command.text != command.shown else
                           "as it stands" for command in accounted(block))
    return (f"{len(PAGES)} pages: {python} Python blocks; of {how.total()} commands {how['as it stands']} as they "
            f"stand, {how['changed']} with a stand-in, {how['left out']} left out (tests/wheel/account.py says why)")


if __name__ == "__main__":
    main(sys.argv[1:])
