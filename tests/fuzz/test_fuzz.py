"""A short run of `make fuzz`, and faults that it must find."""

from ..support.sampling import examples
from .comparisons import COMPARISONS
from .inputs import INPUTS
from .run import Finding, run


def test_damaged_inputs_are_errors_of_splitjoin() -> None:
    assert run([one.name for one in INPUTS], examples(60), seed=1) == []


def test_random_joins_of_the_cpu_are_golden() -> None:
    assert run([one.name for one in COMPARISONS], examples(14), seed=1) == []


def test_readers_that_end_the_process_or_raise_other_errors_are_found() -> None:
    crash, *others, different, _ = run(["ends", "fails", "differs"], 2, seed=0)[1:]
    assert (crash.input, crash.case) == ("ends", 1)
    assert crash.problem.startswith("the process ended: -11 ")
    assert others == [Finding("fails", case, "KeyError: \"'x'\"") for case in (0, 1)]
    assert different.problem.startswith("Difference: an engine with a fault gives 1 rows, golden 2; row 0 is ")
