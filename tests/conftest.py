"""Hypothesis profiles: `ci` gives the same examples on every run and is the default where CI is set. And less work for
compilers, whose output here runs for moments.
"""

import gc
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# A shared machine makes any deadline a matter of luck.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# The models and kernels of tests run for moments: less of the compiler's time is worth more to them. `make test-long`
# has kernels compiled as they are for users.
os.environ.setdefault("SPLITJOIN_OPTIMIZE", "0")
os.environ.setdefault("NUMBA_OPT", "1")

# Tests compile what they need before the first result; those of tiers say otherwise.
os.environ.setdefault("SPLITJOIN_COMPILE", "first")

# Compilers and Hypothesis allocate many objects that live on: collecting ten times as seldom saves a tenth of the time.
gc.set_threshold(10_000, 20, 20)


#: Groups with which workers begin, in this order: those that take longest. xdist would begin with those of many tests,
#: and end with one of a single test that takes a minute, while the other workers wait.
LONGEST = ("spark", "kernels", "tests/chaos/test_kills.py", "tests/sim/test_random.py", "tests/sim/test_cascade.py",
           "tests/sim/test_random_conditions.py", "tests/sim/test_folding.py", "tests/sim/test_low_latency.py",
           "tests/sim/test_folding_links.py", "tests/sim/test_benches.py", "tests/hw/test_top.py",
           "tests/formal/test_proofs.py", "tests/hw/tech/test_order.py", "tests/hw/core/test_region.py",
           "tests/sim/test_celljoin.py", "tests/sim/test_kang.py", "tests/sw/link/test_xdma.py",
           "tests/sw/circuit/export/test_litex.py", "tests/sw/circuit/tuner/test_tune.py",
           "tests/hw/hls/test_matcher.py", "tests/sim/test_chain.py", "tests/sim/test_tables.py",
           "tests/sw/spark/streaming/test_group.py", "tests/sw/spark/streaming/test_decisions.py")


def pytest_configure(config: pytest.Config) -> None:
    """The order below is that of the groups."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and after the conftest files of folders
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one worker runs all tests of a file, unless they belong to a larger group. They
    share circuits, simulations and kernels, which take longer to make than most tests.
    """
    for item in items:
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
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Extension modules report what is left of them at the end as leaks."""
    gc.unfreeze()
