"""The device ``gpu``: nested loops over keys in the memory of a GPU, in the session of the CPU engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from splitjoin.base.errors import CapacityError, DeviceError, UnsupportedError
from splitjoin.base.memory import size_text
from splitjoin.base.processors import processors
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan

from ..compiled.atoms import AtomLanes
from ..compiled.compiler import has_numba, needs_numba
from ..device import Device, Session, check_inner, check_threads
from .driver import gpu_problem, open_gpu
from .suits import is_expression, why_not
from .tuning import DEFAULTS, GpuTuning


@dataclass(frozen=True, kw_only=True)
class GpuDevice(Device):
    """Runs queries on an NVIDIA GPU: every window and order, and every predicate that compares keys of both streams or
    has code for the GPU. What keys do not decide is verified on the CPU.

    Attributes:
        target: The number of the GPU, from 0 on, as in ``device="gpu:1"``.
        threads: The most threads that share the work of the CPU, 1 to 256; ``"auto"`` for as many as pay.
        tuning: Sizes, which change time and memory, never the answer.
    """

    name: ClassVar[str] = "gpu"
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    target: str = "0"
    threads: int | Literal["auto"] = "auto"
    tuning: GpuTuning = field(default=DEFAULTS, repr=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.target, str) and self.target.isdecimal()):
            raise DeviceError(f"the target of the device 'gpu' must be the number of a GPU, as in 'gpu:0', not "
                              f"{self.target!r}")
        check_threads(self.threads)
        if not isinstance(self.tuning, GpuTuning):
            raise DeviceError(f"tuning must be a GpuTuning, not {self.tuning!r}")

    @classmethod
    def problem(cls) -> str:
        return gpu_problem()

    def check(self, query: Query) -> None:
        """Raise `UnsupportedError` if no GPU runs ``query``; this machine need not have one."""
        if reason := why_not(make_plan(query.predicate)):
            raise UnsupportedError(f"the device 'gpu' {reason}; use device='cpu'")

    def open(self, query: Query) -> Session:
        """Start a session of ``query``.

        Raises `UnsupportedError` if there is no code for the predicate, `ToolError` without numba-cuda, a driver or a
        GPU, and `CapacityError` for windows whose keys the GPU's memory cannot hold.
        """
        check_inner(query)
        self.check(query)
        plan = make_plan(query.predicate)
        if not has_numba():
            raise needs_numba("the device 'gpu'", "use device='cpu'")
        gpu = open_gpu(int(self.target))
        from .session import open_session  # which imports numba

        with gpu:
            _check_windows(query, plan, int(min(gpu.memory[1], 2**62)), self.tuning.places)
        threads = min(256, processors()) if self.threads == "auto" else self.threads
        return open_session(query, plan, gpu, threads, self.tuning)


def _check_windows(query: Query, plan: Plan, memory: int, places: int) -> None:
    """Raise `CapacityError` if windows of a number of rows do not fit into the GPU's ``memory``."""
    from .comparison import plan_layout
    from .expression import expression_layout
    from .ring import ring_bytes

    predicate = query.predicate
    layout = expression_layout(predicate, AtomLanes(predicate)) if is_expression(plan) else plan_layout(plan)
    rows = {side: query.window(side).rows or 0 for side in SIDES}
    need = sum(ring_bytes(rows[side], [kind for _, kind, _ in layout.stored[side]], places) for side in SIDES)
    if need > memory:
        raise CapacityError(f"the keys of windows of {rows['r']:,} rows of R and {rows['s']:,} of S take "
                            f"{size_text(need)} of the GPU's memory, which has {size_text(memory)}; give shorter "
                            f"windows, or use device='cpu'")
