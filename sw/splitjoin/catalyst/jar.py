"""`spark_jar`: the jar with ``splitjoin.SplitJoinExtensions`` for the Spark that is installed here."""

from __future__ import annotations

import hashlib
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

from splitjoin.base.cache import find, note_entry, place, publish
from splitjoin.base.errors import ToolError

from .compiler import CannotCompile, compile_jar, scala_of, sources

#: The jars in a wheel, one for each version of Scala.
_PACKED = Path(__file__).parent / "jars"


def spark_jar(jars: Path | None = None) -> Path:
    """The path of the jar with ``splitjoin.SplitJoinExtensions``, which runs joins of plain ``spark.sql`` in splitjoin.

    Give the path to ``spark.jars``, and the class to ``spark.sql.extensions``. A released wheel has a jar for each
    version of Scala. Other installations compile one, once, with the Java of JAVA_HOME or PATH, and keep it in the
    cache.

    Args:
        jars: The folder with the jars of the Spark that loads this one: by default that of $SPARK_HOME, else of the
            Python package pyspark.

    Raises `ToolError` if there is no Spark, or neither a jar nor a compiler.
    """
    found = _installed() if jars is None else jars
    scala = scala_of(found) if found is not None else None
    if found is None or scala is None:
        raise ToolError(f"the jar is for a version of Spark, but {found or 'this Python'} has none; pip install "
                        f"'splitjoin[spark]', or set SPARK_HOME")
    packed = _PACKED / f"splitjoin_{scala}.jar"
    if packed.exists():
        return packed
    digest = hashlib.sha256(scala.encode())
    for path in sources():
        digest.update(path.read_bytes())
    name = f"spark-{digest.hexdigest()[:24]}.jar"
    kept = find(name)
    return kept if kept is not None else _compiled(found, name)


def _installed() -> Path | None:
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    return Path(spec.submodule_search_locations[0]) / "jars" if spec and spec.submodule_search_locations else None


def _compiled(jars: Path, name: str) -> Path:
    target = place(name)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="jar-") as folder:
        part = Path(folder) / name
        try:
            compile_jar(jars, part)
        except CannotCompile as error:
            raise ToolError(f"this installation of splitjoin has no jar for the Spark in {jars}, and cannot make one: "
                            f"{error}; install a JDK, or a wheel that has the jar") from None
        publish(part, target)
    note_entry()
    return target
