"""Hypothesis profiles: `ci` gives the same examples on every run and is the default where CI is set. And less work for
compilers, whose output here runs for moments.
"""

import gc
import os

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


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and after the conftest files of folders
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one worker runs all tests of a file, unless they belong to a larger group. They
    share circuits, simulations and kernels, which take longer to make than most tests.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """The tests themselves live to the end: the collector need not look at them again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Extension modules report what is left of them at the end as leaks."""
    gc.unfreeze()
