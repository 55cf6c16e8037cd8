# amaranth: UnusedElaboratable=no
# A component may be made for its latency or its report alone.
"""A typed function as a component, as Verilog, and what it costs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from splitjoin.base.errors import ToolError

from .design import design_of
from .reports import Report, report_of

#: The module of components, which needs Amaranth.
COMPONENT = "splitjoin_hw.hls.component"


def component(fn: Any, *, clock: float | None = None, interval: int | None = None,
              family: str = "ecp5") -> Any:
    """The circuit of ``fn`` as a component for an Amaranth design, with streams ``i`` of operands and ``o`` of results.

    Args:
        fn: A Python function whose parameters are annotated with widths (`splitjoin.hls.unsigned`, ``signed``,
            ``fixed``, or tuples of one of them), or a class under `splitjoin.hls.kernel`.
        clock: In MHz: pipeline registers are placed so that logic between two of them fits it on the slowest ECP5.
            None: one cycle.
        interval: Cycles from one transfer of operands to the next. With more than one, multiplications take turns on
            fewer multipliers. None: the least one that the function's state allows, 1 without a state.
        family: The FPGA family whose resources the report counts, "ecp5" or "ultrascale".

    The component, a `splitjoin_hw.hls.component.KernelComponent`, has the attributes ``latency``, ``interval`` and
    ``report``, which is as from `report`.

    Raises `ToolError` if Amaranth is not installed, `PredicateError` that points at the line which is not compiled,
    `UnsupportedError` for a clock or an interval that an operation does not allow, and `InputError` for arguments that
    are none of these.
    """
    return _hardware().KernelComponent(design_of(fn, clock, interval, family))


def verilog(fn: Any, *, clock: float | None = None, interval: int | None = None, family: str = "ecp5",
            name: str | None = None) -> str:
    """The component of ``fn`` as Verilog-2001, with ports ``clk``, ``rst`` and those of the streams: ``i__payload``,
    ``i__valid``, ``i__ready`` and the same for ``o``. ``name``: of the top module, by default that of ``fn``.

    Further arguments and errors: as for `component`.
    """
    design = design_of(fn, clock, interval, family)
    text: str = _hardware().kernel_verilog(design, design.kernel.name if name is None else name)
    return text


def report(fn: Any, *, clock: float | None = None, interval: int | None = None, family: str = "ecp5") -> Report:
    """The schedule, the resources and the critical path of ``fn`` by cycles and lines of its source, as predicted.

    Arguments and errors: as for `component`; needs no Amaranth.
    """
    return report_of(design_of(fn, clock, interval, family))


def _hardware() -> Any:
    try:
        return import_module(COMPONENT)
    except ModuleNotFoundError as error:
        raise ToolError(f"a component needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[hw]'") from error
