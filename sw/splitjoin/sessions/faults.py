"""What a session does when its device has left out a core that stood still, or has lost its session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from splitjoin.base.errors import CoreLost, DeviceLost, InputError
from splitjoin.engines.device import Device, Fault
from splitjoin.rows.numbered import NumberedSession

#: Fresh device sessions tried in one call without any progress, when a device loses its session again and again.
ATTEMPTS = 3

#: ``continue``: go on without the core. ``restart``: open the device again; a device: open that one. Both reload the
#: windows, so that no row is missing.
OnFault = Literal["continue", "restart"] | Device


class CoreFaults:
    """The faults of a session's devices, and what the session does after one (``on_fault``)."""

    def __init__(self, on_fault: OnFault = "continue"):
        """Raises `InputError` for any other ``on_fault``."""
        if on_fault not in ("continue", "restart") and not isinstance(on_fault, Device):
            raise InputError(f"on_fault must be 'continue', 'restart', or a device to restart on, not {on_fault!r}")
        self._on_fault = on_fault
        self._seen: list[Fault] = []

    @property
    def seen(self) -> tuple[Fault, ...]:
        """All faults so far, in the order in which they were seen."""
        return tuple(self._seen)

    def begin(self, session: NumberedSession) -> NumberedSession:
        """``session``, which has just begun, with the choice."""
        session.stops_at_faults = self._on_fault != "continue"
        return session

    def note(self, session: NumberedSession) -> None:
        """Note the new faults of ``session``."""
        self._seen += [fault for fault in session.faults if fault not in self._seen]

    def next_device(self, error: Exception, device: Device) -> Device:
        """The device on which to go on after ``error`` on ``device``."""
        return self._on_fault if isinstance(error, CoreLost) and isinstance(self._on_fault, Device) else device


def lost(error: DeviceLost, attempts: int, advice: str) -> DeviceLost:
    """The error to raise after ``error``, the last one of ``attempts`` in a row that came no further; with ``advice``
    that says what is kept.
    """
    if isinstance(error, CoreLost):
        return DeviceLost(f"{error}, but {attempts} times in a row nothing came before it was {error.cores} again; put "
                          f"the device in order, and restart; {advice}")
    return DeviceLost(f"the device must keep its session, but lost {attempts} in a row, as after resets or losses of "
                      f"power, and got no further although its windows were reloaded each time; check its power and "
                      f"its cable; {advice}")


def opened_again(opened: Callable[[], NumberedSession]) -> NumberedSession:
    """The device session that ``opened`` gives, which a device may lose at once, as any other."""
    for _ in range(ATTEMPTS):
        with suppress(DeviceLost):
            return opened()
    return opened()
