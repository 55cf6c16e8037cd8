"""Tests of what users install: wheel and sdist go into fresh environments where no compiler is found, which run
README's examples, the scripts of examples/ and the notebooks, all outside the repository. Run: make wheel-test
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Programs that compile, and what they are called by.
_COMPILERS = re.compile(r"(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cpp|c89|c99|as|ld|tcc)(-[\d.]+)?")


def main(parts: Sequence[str]) -> None:
    """The ``parts``: "plain" or "everything", all by default. Raises `subprocess.CalledProcessError` at a failure."""
    with tempfile.TemporaryDirectory(prefix="splitjoin-wheel-") as name:
        folder = Path(name)
        tools = without_compilers(folder / "tools")
        run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], folder, os.environ["PATH"])
        (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
        if "plain" in parts:
            plain = Environment(folder / "plain", tools)
            plain.install(str(wheel), "pandas")
            tables(plain)
        if "everything" in parts:
            everything = Environment(folder / "everything", tools)
            everything.install(f"{sdist}[spark,sim,boards]", "nbclient", "ipykernel", "cocotb==2.1.0")
            circuits(everything, os.environ["PATH"])  # the device sim compiles; all else does not
            spark(everything)
            notebooks(everything)
        print(f"{', '.join(parts)}: {wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name} run")


class Environment:
    """A fresh virtual environment, and a folder to work in."""

    def __init__(self, folder: Path, tools: Path):
        venv.create(folder, with_pip=True)
        self.bin, self.work, self._tools = folder / "bin", folder / "work", tools
        self.work.mkdir()
        (self.work / "R.csv").write_text("x\n10\n20\n30\n")
        (self.work / "S.csv").write_text("a\n12\n70\n31\n")

    def install(self, *what: str) -> None:
        """Install from the package index, with no compiler to be found."""
        self.run([str(self.bin / "python"), "-m", "pip", "install", "--quiet", *what])

    def run(self, command: list[str], path: str | None = None) -> str:
        """The output of ``command``, with the environment's programs first in the path."""
        return run(command, self.work, f"{self.bin}{os.pathsep}{path or self._tools}")

    def python(self, code: str) -> str:
        """The output of ``code``."""
        return self.run([str(self.bin / "python"), "-c", code])

    def example(self, name: str, *arguments: str, path: str | None = None) -> str:
        """The output of a script of examples/; it is copied, so that nothing else of the repository is beside it."""
        copied = self.work / Path(name).parent.name
        shutil.copytree((ROOT / "examples" / name).parent, copied, dirs_exist_ok=True)
        return self.run([str(self.bin / "python"), str(copied / Path(name).name), *arguments], path)


def tables(environment: Environment) -> None:
    """Joins on the CPU, from Python and on the command line."""
    (code,) = (block for block in readme("python") if "splitjoin.spark" not in block)
    environment.python(code + "assert len(result) == 2, result")
    environment.run(["splitjoin", "--version"])
    environment.run(["splitjoin", "devices"])
    for line in commands():
        if line[1] in ("sql", "explain", "doctor"):
            environment.run(line)
    assert "3," in environment.example("trades_and_quotes.py", "--rows", "300")
    environment.example("nearest_readings.py", "--rows", "500")


def circuits(environment: Environment, compilers: str) -> None:
    """Verilog without a compiler, then models that need one."""
    for line in commands():
        if line[1] == "verilog":
            environment.run(line)
    for line in commands():
        if line[1] == "join":
            environment.run(line, compilers)
    environment.example("own_condition.py", path=compilers)
    assert "2 of 2" in environment.example("cocotb_bench/run.py", path=compilers)
    environment.run(["splitjoin", "tune", "--board", "orangecrab_25f", "--schema-r", "x:int32", "--schema-s", "a:int32",
                     "--on", "abs(r.x - s.a) <= 10", "--window", "ROWS 256"])


def spark(environment: Environment) -> None:
    """README's streaming join, and the job for spark-submit."""
    (code,) = (block for block in readme("python") if "splitjoin.spark" in block)
    before = """
from splitjoin.spark import local_session
spark = local_session("wheel", cores=2)
ticks = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
left, right = ticks.selectExpr("timestamp AS ts", "value AS x"), ticks.selectExpr("timestamp AS ts", "value AS a")
"""
    after = """
(query,) = spark.streams.active
assert not query.awaitTermination(20)  # raises what the query raised
query.stop()
"""
    environment.python(before + code + after)
    job = environment.work / "spark_job.py"
    shutil.copy(ROOT / "examples" / "spark_job.py", job)
    printed = environment.run(["spark-submit", "--master", "local[2]", str(job), "orders", "offers", "pairs", "--demo",
                               "2000"])
    assert "pairs" in printed


def notebooks(environment: Environment) -> None:
    """The notebooks, in kernels of Jupyter's."""
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        written = environment.work / path.name
        environment.run([str(environment.bin / "python"), "-c", "from nbclient.cli import main; main()", "--output",
                         str(written), str(path)])
        assert '"outputs": [\n' in written.read_text(encoding="utf-8"), path


def readme(language: str) -> list[str]:
    """README's code blocks."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def commands() -> Iterator[list[str]]:
    """README's commands, as words."""
    for block in readme("sh"):
        for line in block.splitlines():
            if line.startswith("splitjoin "):
                yield shlex.split(line, comments=True)


def without_compilers(folder: Path) -> Path:
    """A folder with links to all programs but compilers and assemblers."""
    folder.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if not _COMPILERS.fullmatch(program.name) and not link.exists() and not link.is_symlink():
                link.symlink_to(program.resolve())
    return folder


def run(command: list[str], folder: Path, path: str) -> str:
    """The output of ``command``; its errors are shown if it fails."""
    start = time.perf_counter()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env={**kept, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
                          capture_output=True, text=True, check=False)
    shown = " ".join(command).replace("\n", "; ")[:110]
    print(f"{time.perf_counter() - start:6.1f} s  {shown}", flush=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n")
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:] or ("plain", "everything"))
