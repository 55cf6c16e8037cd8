"""Hatch's hook for wheels: compiles the jars of Spark's extension, one for each Spark that SPLITJOIN_SPARK_JARS names.

The variable has folders of jars with colons between them, as `make release` sets it. Without it a wheel has no jar, and
`splitjoin spark-jar` compiles one where it is needed.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelJars(BuildHookInterface):
    """Adds ``splitjoin/catalyst/jars/`` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = os.environ.get("SPLITJOIN_SPARK_JARS")
        if version == "editable" or not named:
            return
        path = Path(self.root, "sw", "splitjoin", "catalyst", "compiler.py")
        spec = importlib.util.spec_from_file_location("splitjoin_jar_compiler", path)
        assert spec is not None
        assert spec.loader is not None
        compiler = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiler)
        self._folder = tempfile.TemporaryDirectory(prefix="splitjoin-jars-")
        for jars in map(Path, named.split(os.pathsep)):
            scala = compiler.scala_of(jars)
            if scala is None:
                raise SystemExit(f"SPLITJOIN_SPARK_JARS must name folders with Spark's jars, but {jars} has none")
            target = Path(self._folder.name, f"splitjoin_{scala}.jar")
            compiler.compile_jar(jars, target)
            build_data["force_include"][str(target)] = f"splitjoin/catalyst/jars/{target.name}"
