"""Hypothesis profiles: `ci` gives the same examples on every run and is the default where CI is set."""

import os

from hypothesis import HealthCheck, settings

# A shared machine makes any deadline a matter of luck.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# The models of tests run for moments: less of the compiler's time is worth more to them.
os.environ.setdefault("SPLITJOIN_OPTIMIZE", "1")
