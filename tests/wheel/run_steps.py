"""Runs the examples of a page: ``python run_steps.py steps.json``, by the Python of the installed wheel.

The standard library is all that it needs, as it is copied out of the repository. The file lists the steps in order,
each with ``place``, ``language`` ("python" or "sh"), ``code``, ``prints`` (None: anything) and ``path``, where it finds
programs. Python steps share their names.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import linecache
import os
import re
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any


def main(path: str) -> None:
    """Run the steps of the file ``path``, in the folder that is the current one."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module  # so that classes of examples have the module that those of a script have
    for step in json.loads(Path(path).read_text(encoding="utf-8")):
        os.environ["PATH"] = step["path"]
        start = time.perf_counter()
        printed = _python(step, module) if step["language"] == "python" else _shell(step)
        if step["prints"] is not None and printed != step["prints"]:
            shown = difflib.unified_diff(step["prints"].splitlines(), printed.splitlines(), "the page", "printed",
                                         lineterm="")
            raise SystemExit(f"{step['place']} must print what stands below it:\n" + "\n".join(shown))
        print(f"  {time.perf_counter() - start:6.1f} s  {step['place']}", flush=True)


def _python(step: dict[str, Any], module: types.ModuleType) -> str:
    # Classes of user-defined aggregates are compiled from their source.
    lines = step["code"].splitlines(keepends=True)
    linecache.cache[step["place"]] = len(step["code"]), None, lines, step["place"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(step["code"], step["place"], "exec", dont_inherit=True), module.__dict__)
    return out.getvalue()


def _shell(step: dict[str, Any]) -> str:
    # A file, as what runs on in the background would keep a pipe open.
    with open("printed", "w+", encoding="utf-8") as file:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", step["code"]], stdin=subprocess.DEVNULL, stdout=file,
                              check=False)
    printed = Path("printed").read_text(encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"{step['place']} ended with {done.returncode}:\n{step['code']}\n{printed[-3000:]}")
    for promised in re.findall(r"#.*\bprints (\w+)$", step["code"], re.MULTILINE):
        if promised not in printed:
            raise SystemExit(f"{step['place']} must print {promised}, but prints\n{printed[-3000:]}")
    return printed


if __name__ == "__main__":
    main(sys.argv[1])
