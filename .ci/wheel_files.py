"""Hatch's hook: adds the libraries of compiled loops to wheels, and jars of Spark's extension.

The libraries are for this machine, or for the platform that SPLITJOIN_PLATFORM names, as `make release` sets it. An
editable install gets them in their places. SPLITJOIN_SPARK_JARS has folders of jars with colons between them, one for
each Spark. Without it a wheel has no jar, and `splitjoin spark-jar` compiles one where it is needed.
"""

from __future__ import annotations

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelFiles(BuildHookInterface):
    """Adds ``loops-….so`` of the compiled loops and of the threads, and ``splitjoin/catalyst/jars/`` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        builder = self._module("engines", "loops", "build.py")
        folders = [Path(self.root, "sw", "splitjoin", "engines", name) for name in ("loops", "threads")]
        if version == "editable":
            for folder in folders:
                builder.built(folder)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="splitjoin-wheel-")
        wheel = os.environ.get("SPLITJOIN_PLATFORM")
        if wheel is not None and wheel not in builder.PLATFORMS:
            raise SystemExit(f"SPLITJOIN_PLATFORM must be {', '.join(builder.PLATFORMS)}, not {wheel!r}")
        for folder in folders:
            library = Path(self._folder.name, builder.library_name(folder))
            builder.build(library, wheel, folder=folder)
            build_data["force_include"][str(library)] = f"splitjoin/engines/{folder.name}/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel or sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if named := os.environ.get("SPLITJOIN_SPARK_JARS"):
            self._add_jars(named, build_data)

    def _add_jars(self, named: str, build_data: dict[str, Any]) -> None:
        compiler = self._module("catalyst", "compiler.py")
        for jars in map(Path, named.split(os.pathsep)):
            scala = compiler.scala_of(jars)
            if scala is None:
                raise SystemExit(f"SPLITJOIN_SPARK_JARS must name folders with Spark's jars, but {jars} has none")
            target = Path(self._folder.name, f"splitjoin_{scala}.jar")
            compiler.compile_jar(jars, target)
            build_data["force_include"][str(target)] = f"splitjoin/catalyst/jars/{target.name}"

    def _module(self, *names: str) -> ModuleType:
        """A module of splitjoin, which is not installed yet, by its path below the package."""
        path = Path(self.root, "sw", "splitjoin", *names)
        spec = importlib.util.spec_from_file_location(f"splitjoin_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
