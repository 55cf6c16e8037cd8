"""The interface of an architecture: what it can do, the parameters that it takes, and where its parts are."""

from __future__ import annotations

import importlib
from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from splitjoin.base.errors import OrderError, UnsupportedError, check
from splitjoin.lang.order import Order

from ..registers import COUNTERS

#: The parameters of a circuit, or a whole configuration. They are declared with the names of the architectures, so that
#: this module can import the classes of neither.
Parameters = Any
#: Parameter → the values that it may have, and these in words, with the reason.
Only = Mapping[str, tuple[tuple[object, ...], str]]


class Architecture(ABC):
    """An architecture.

    Attributes:
        name: Its name among the parameters.
        title: The name in sentences.
        component: The module and the class of its circuit in `hw/`, a `splitjoin_hw.top.Top`.
        cores: The number of cores if none is given.
        sequential: True if it processes a tuple at a time, with a comparison a cycle.
        folds: True if cores that scan can fold what they find (parameter ``fold``).
        counters: The counters that it has; all others read 0.
        orders: The kinds of order that it keeps (`splitjoin.lang.order.Order.kind`).
        expires, mergers: The values of the parameters ``expire`` and ``merger``.
        only: Further parameters of which it has not all values.
        moves: True if tuples move between cores, so that no core has tuples of its own to be masked.
        stages: True if it takes the parameter ``stage_counters``.
        isolates: True if it can leave out a core that stands still (parameter ``fault_timeout``).
        blocks: True if it takes the parameters ``block`` and ``threshold``.
        flow: The way of tuples: through ``trees`` to all cores; along a ``chain`` of them; R and S ``passing`` each
            other there; or probes to all cores while stored tuples are ``shifting`` from core to core.
        later_probes: True if the later tuple of a pair is the one that finds the other; an item's field ``side`` then
            follows from the answer.
        settles: True if it can tell that the results of all tuples so far are complete, and go on.
        baseline: True if it exists to be compared with. Only simulations and Verilog take it.
    """

    name: str
    title: str
    component: tuple[str, str]
    cores: int
    sequential: bool
    folds: bool
    counters: tuple[str, ...] = COUNTERS
    orders: tuple[str, ...] = ("none", "outer", "inner", "total")
    expires: tuple[str, ...] = ("opposite",)
    mergers: tuple[str, ...] = ("ready",)
    only: ClassVar[Only] = {}
    baseline: bool = False
    moves: bool = False
    later_probes: bool = True
    settles: bool = True
    blocks: bool = False
    stages: bool = False
    isolates: bool = False
    flow: str = "trees"

    def check_parameters(self, parameters: Parameters) -> None:
        """Raise `UnsupportedError` for parameters that it does not support."""
        check(f"expire of {self.title}", parameters.expire, parameters.expire in self.expires,
              " or ".join(self.expires))
        for name in ("block", "threshold"):
            check(f"{name} of {self.title}", getattr(parameters, name), self.blocks or getattr(parameters, name) == 1,
                  "1, as tuples go one at a time")
        check(f"stage_counters of {self.title}", parameters.stage_counters,
              self.stages or not parameters.stage_counters, "False, as its probes have other stages")
        for name, must in (("probes", 1), ("root_width", 1), ("region_counters", False)):
            value = getattr(parameters, name)
            check(f"{name} with stage_counters", value, value == must or not parameters.stage_counters, str(must))
        check(f"merger of {self.title}", parameters.merger, parameters.merger in self.mergers,
              " or ".join(self.mergers))
        for name, (values, words) in self.only.items():
            value = getattr(parameters, name)
            check(f"{name} of {self.title}", value, value in values, words)
        if parameters.fault_timeout:
            check(f"fault_timeout of {self.title}", parameters.fault_timeout, self.isolates,
                  "0, as it has no cores that the others can do without")
            check("cores with fault_timeout", parameters.cores, parameters.cores >= 2, "2 or more, so that one is left")
            for name, needed in (("root_width", 1), ("sources", 1), ("merger", "ready"), ("stage_counters", False)):
                value = getattr(parameters, name)
                check(f"{name} with fault_timeout", value, value == needed, repr(needed))

    def check_order(self, order: Order, parameters: Parameters) -> None:
        """Raise `OrderError` for an order that it does not keep with these parameters.

        Mergers in a fixed order do not sort by age. And they pass on results of one input only after the star of the
        one before: without a star for each probe, the queues between would have to hold any number of results.
        """
        if order.kind not in self.orders:
            raise OrderError(f"{self.title} keeps the order {' or '.join(self.orders)}, not {order}")
        starred = order.kind == "inner" or str(order) == "outer(1)"
        if parameters.merger == "fixed" and parameters.cores > 1 and not starred:
            raise OrderError(f"{self.title} with merger='fixed' keeps the order outer(1) or inner(n), which have a "
                             f"star for each probe and do not sort, not {order}")

    def check_used(self, use: str) -> None:
        """Raise `UnsupportedError` if it is a baseline, and ``use``, such as "a component", is neither simulation nor
        Verilog.
        """
        if self.baseline:
            raise UnsupportedError(f"{self.title} is a baseline, which exists to be compared with, for simulations and "
                                   f"Verilog alone, and {use} is neither; use device='sim', device='pysim' or "
                                   f"`splitjoin verilog`")

    def datapaths(self, config: Parameters) -> tuple[str, ...]:
        """The streams for whose stored tuples a core has a datapath."""
        return ("r", "s")

    @property
    def predictions(self) -> Any:
        """The module ``predictions`` of its folder: ``parts`` (`splitjoin.circuit.cost`), ``cycles_a_tuple`` and
        ``latency_cycles`` (`splitjoin.circuit.tuner.speed`) of configurations, which need its declaration first.
        """
        return importlib.import_module(f"{type(self).__module__}.predictions")


#: Of architectures whose cores scan, and have neither tables nor counters of regions.
_SCANS: Only = {"core": (("auto", "scan"), "auto or scan"), "tables": ((False,), "False, as it has none"),
                "region_counters": ((False,), "False, as it has none")}


class MovingArchitecture(Architecture):
    """A baseline in which tuples move between cores that scan: none has tuples of its own to be masked with it."""

    sequential, folds = False, False
    baseline, moves = True, True
    flow = "passing"
    only: ClassVar[Only] = {**_SCANS, "queue": ((0,), "0"), "root_width": ((1,), "1"), "row_bits": ((32,), "32")}


class SequentialArchitecture(Architecture):
    """An architecture that processes a tuple at a time: one core that scans, with one lane and one probe."""

    cores, sequential, folds = 1, True, False
    only: ClassVar[Only] = {
        **dict.fromkeys(("cores", "lanes", "probes", "sources"), ((1,), "1")), **_SCANS,
        "queue": ((0,), "0, as it processes a tuple at a time"),
        "root_width": ((1,), "1, as it compares one pair a cycle")}
