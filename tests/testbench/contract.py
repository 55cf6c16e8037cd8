"""A checker of the stream contract: once ``valid``, an offer remains unchanged until ``ready``."""

from __future__ import annotations


class Contract:
    """Checks one stream port. Independent of simulators: it is given the port's signals before each clock edge."""

    def __init__(self, port: str):
        self._port = port
        self._offer: int | None = None  # payload of an offer that was not accepted yet
        self._since = 0

    def check(self, cycle: int, valid: bool, ready: bool, payload: int) -> None:
        """Check the signals of ``cycle``. Raises `AssertionError`, with port and cycle, if they break the contract."""
        if self._offer is not None:
            assert valid, f"port {self._port}: valid was lowered in cycle {cycle}, but the offer of cycle " \
                          f"{self._since} ({self._offer:#x}) had not been taken"
            assert payload == self._offer, f"port {self._port}: payload changed in cycle {cycle} from " \
                                           f"{self._offer:#x} to {payload:#x}, but the offer of cycle {self._since} " \
                                           f"had not been taken"
        if not valid or ready:
            self._offer = None
        elif self._offer is None:
            self._offer, self._since = payload, cycle
