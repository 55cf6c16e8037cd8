"""State machines over sessions, shared streams, chains and epochs, a moment each; `make machines` runs them longer."""

import sys

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support.sampling import examples

from . import __main__ as runs

#: Sequences of each machine, of which CI runs half.
_SEQUENCES = {"session": 320, "order": 60, "shared": 100, "epochs": 80, "shared-epochs": 60, "chain": 80}
for _name, _machine in runs.MACHINES.items():
    _case = _machine.TestCase
    _case.settings = settings(max_examples=examples(_SEQUENCES[_name]), stateful_step_count=30, deadline=None)
    globals()[f"Test{_name.title().replace('-', '')}"] = _case
del _case, _machine


class _Failing(RuleBasedStateMachine):
    @rule()
    def fail(self) -> None:
        raise AssertionError("as planted")


def test_a_failure_is_told_with_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch,
                                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(runs.MACHINES, "failing", _Failing)
    monkeypatch.setattr(sys, "argv", ["tests.machine", "--seconds", "0", "--seed", "7", "--machine", "failing"])
    with pytest.raises(AssertionError, match="as planted") as failure:
        runs.main()
    assert "state.fail()" in "\n".join(failure.value.__notes__)
    assert capsys.readouterr().err == "python -m tests.machine --machine failing --seed 7 --seconds 0\n"
