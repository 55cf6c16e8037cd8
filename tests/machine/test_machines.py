"""State machines over sessions, shared streams, chains and epochs, a moment each; `make machines` runs them longer."""

from hypothesis import settings

from tests.support.sampling import examples

from .__main__ import MACHINES

#: Sequences of each machine, of which CI runs half.
_SEQUENCES = {"session": 320, "order": 60, "shared": 100, "epochs": 80, "shared-epochs": 60, "chain": 80}
for _name, _machine in MACHINES.items():
    _case = _machine.TestCase
    _case.settings = settings(max_examples=examples(_SEQUENCES[_name]), stateful_step_count=30, deadline=None)
    globals()[f"Test{_name.title().replace('-', '')}"] = _case
del _case, _machine
