"""`compile_jar`: compiles the Java sources here against Spark's own jars, by Java's own compiler alone.

Imports nothing of splitjoin, as the build of a wheel loads it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

_JAVA = Path(__file__).parent / "java"
#: The Java whose class files all of Spark 3.5 to 4.3 load.
_RELEASE = "17"


class CannotCompile(Exception):
    """There is no Java with a compiler, or it refuses the sources."""


def sources() -> list[Path]:
    """The Java sources, sorted."""
    return sorted(_JAVA.rglob("*.java"))


def scala_of(jars: Path) -> str | None:
    """The version of Scala, such as "2.13", of the Spark whose jars are in the folder ``jars``; None without Spark."""
    found = [match[1] for path in jars.glob("spark-catalyst_*.jar")
             if (match := re.match(r"spark-catalyst_([\d.]+)-", path.name))]
    return found[0] if found else None


def _compiler() -> list[str] | None:
    """The command of a Java compiler: of JAVA_HOME, as Spark takes its Java from there, else of PATH.

    Debian's and Ubuntu's runtimes without a JDK have the compiler's module, but no command ``javac``.
    """
    home = os.environ.get("JAVA_HOME")
    for folder in ([str(Path(home, "bin"))] if home else []) + [os.environ.get("PATH", os.defpath)]:
        if (javac := shutil.which("javac", path=folder)) is not None:
            return [javac]
        if (java := shutil.which("java", path=folder)) is not None:
            command = [java, "--module", "jdk.compiler/com.sun.tools.javac.Main"]
            if subprocess.run([*command, "-version"], capture_output=True, check=False).returncode == 0:
                return command
    return None


def compile_jar(jars: Path, target: Path) -> None:
    """Write the jar ``target``, compiled against the Spark in ``jars``; its bytes depend on sources and compiler alone.

    Raises `CannotCompile`.
    """
    compiler = _compiler()
    if compiler is None:
        raise CannotCompile("neither JAVA_HOME nor PATH has a Java with a compiler (Debian: apt-get install "
                            "openjdk-17-jdk-headless)")
    with tempfile.TemporaryDirectory(prefix="splitjoin-jar-") as name:
        folder = Path(name)
        classes = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
        run = subprocess.run([*compiler, "-nowarn", "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none",
                              "-classpath", classes, "-d", str(folder), *map(str, sources())], capture_output=True,
                             text=True, check=False)
        if run.returncode:
            raise CannotCompile(f"{compiler[0]} refuses the sources: {run.stderr.strip()}")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*.class")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes(),
                                 zipfile.ZIP_DEFLATED)
