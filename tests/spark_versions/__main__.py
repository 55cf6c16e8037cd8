"""Run `joins` on each version of Spark, with its PySpark in a folder of its own, and `sail` on Sail.

``python -m tests.spark_versions [VERSION …] [--streams N]``; by default all that docs/cluster.md names, and no random
streams of `tests.spark_streams`. A PySpark has some 400 MB and is downloaded once, into ``build/spark``; ``sail`` some
150 MB, with the client of Spark Connect alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

#: The newest release of each line but the one of the development environment, which all other tests run on.
VERSIONS = ("3.5.8", "4.0.5", "4.1.4", "4.2.1")
#: Sail, and the only line of clients that it takes.
_SAIL = ("pysail==0.7.2", "pyspark-client==4.1.3")
_ROOT = Path(__file__).parents[2]


def installed(version: str) -> Path:
    """The folder that has PySpark ``version``, or Sail; everything else comes from the environment."""
    folder = _ROOT / "build" / "spark" / version
    packages = _SAIL if version == "sail" else (f"pyspark=={version}",)
    if not (folder / "pyspark" / "version.py").exists():
        print(f"download {' and '.join(packages)}", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages],
                       check=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=(*VERSIONS, "sail"), metavar="VERSION")
    parser.add_argument("--download", action="store_true", help="run nothing, but have the versions there")
    parser.add_argument("--streams", type=int, default=0, metavar="N", help="compare so many random streams with "
                        "Spark's own join, too (default: none)")
    arguments = parser.parse_args()
    failed = list[str]()
    for version in arguments.versions:
        if arguments.download:
            installed(version)
            continue
        environment = {**os.environ, "PYTHONPATH": f"{installed(version)}:{_ROOT}"}
        environment.pop("SPARK_HOME", None)
        programs = [["tests.spark_versions.sail"] if version == "sail" else ["tests.spark_versions.joins", version]]
        if arguments.streams and version != "sail":
            programs.append(["tests.spark_streams", "--count", str(arguments.streams)])
        runs = [subprocess.run([sys.executable, "-m", *program], env=environment, cwd=_ROOT, check=False)
                for program in programs]
        failed += [version] * any(run.returncode for run in runs)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
