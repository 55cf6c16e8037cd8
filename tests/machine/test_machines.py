"""State machines over sessions, shared streams and epochs, for a moment each; `make machines` runs them for an hour."""

from hypothesis import settings

from tests.support.sampling import examples

from .epoch_machine import EpochMachine
from .session_machine import SessionMachine
from .shared_machine import SharedMachine

TestSession = SessionMachine.TestCase
TestShared = SharedMachine.TestCase
TestEpochs = EpochMachine.TestCase
for case, sequences in (TestSession, 160), (TestShared, 100), (TestEpochs, 80):
    case.settings = settings(max_examples=examples(sequences), stateful_step_count=30, deadline=None)
