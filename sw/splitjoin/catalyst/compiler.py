"""`compile_jar`: compiles the Java sources here against Spark's own jars, by `javac` alone.

Imports nothing of splitjoin, as the build of a wheel loads it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

__all__ = ["CannotCompile", "compile_jar", "scala_of", "sources"]

_JAVA = Path(__file__).parent / "java"
#: The Java whose class files all of Spark 3.5 to 4.3 load.
_RELEASE = "17"


class CannotCompile(Exception):
    """There is no `javac`, or it refuses the sources."""


def sources() -> list[Path]:
    """The Java sources, sorted."""
    return sorted(_JAVA.rglob("*.java"))


def scala_of(jars: Path) -> str | None:
    """The version of Scala, such as "2.13", of the Spark whose jars are in the folder ``jars``; None without Spark."""
    found = [match[1] for path in jars.glob("spark-catalyst_*.jar")
             if (match := re.match(r"spark-catalyst_([\d.]+)-", path.name))]
    return found[0] if found else None


def compile_jar(jars: Path, target: Path) -> None:
    """Write the jar ``target``, compiled against the Spark in ``jars``; its bytes depend on sources and compiler alone.

    Raises `CannotCompile`.
    """
    javac = shutil.which("javac")
    if javac is None:
        raise CannotCompile("there is no javac on PATH (Debian: apt-get install openjdk-17-jdk-headless)")
    with tempfile.TemporaryDirectory(prefix="splitjoin-jar-") as name:
        folder = Path(name)
        run = subprocess.run([javac, "-nowarn", "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none", "-classpath",
                              f"{jars}/*", "-d", str(folder), *map(str, sources())], capture_output=True, text=True,
                             check=False)
        if run.returncode:
            raise CannotCompile(f"javac refuses the sources: {run.stderr.strip()}")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*.class")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes(),
                                 zipfile.ZIP_DEFLATED)
