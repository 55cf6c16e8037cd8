"""A short run of `make fuzz`, and faults that it must find."""

from ..support.sampling import examples
from .run import Finding, names, run


def test_damaged_inputs_are_errors_of_splitjoin() -> None:
    assert run(names(), examples(60), seed=1) == []


def test_readers_that_end_the_process_or_raise_other_errors_are_found() -> None:
    crash, *others = run(["ends", "fails"], 2, seed=0)[1:]
    assert (crash.input, crash.case) == ("ends", 1)
    assert crash.problem.startswith("the process ended: -11 ")
    assert others == [Finding("fails", case, "KeyError: \"'x'\"") for case in (0, 1)]
