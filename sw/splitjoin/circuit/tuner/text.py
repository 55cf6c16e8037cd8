"""The tuner's results in words."""

from __future__ import annotations

from splitjoin.base.errors import plural

from .search import FULL, DesignPoint, Requirements

__all__ = ["binding_text", "quantity", "requirements_text", "shares_text"]

_NAMES = {"lut": "LUT4", "ff": "flip-flops", "block_ram": "block RAMs", "dsp": "DSPs"}


def quantity(value: float, unit: str) -> str:
    """``value`` with three digits and a prefix: 12.3 M tuples/s, 4.5 µs."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
        if value >= factor or factor == 1e-9:
            return f"{value / factor:.3g} {prefix}{unit}"
    raise AssertionError


def shares_text(design: DesignPoint) -> str:
    """The shares of the FPGA that the design takes."""
    total = design.cost.total
    used = [f"{getattr(total, name) / getattr(design.fpga, name):.0%} of the {_NAMES[name]}"
            for name in ("lut", "ff", "block_ram")]
    return f"{', '.join(used)}; up to {FULL['lut']:.0%} of LUT4 and flip-flops have been routed"


def requirements_text(requirements: Requirements) -> str:
    """``requirements`` in words."""
    said = [] if requirements.rate is None else [quantity(requirements.rate, "tuples/s")]
    said += [] if requirements.latency is None else [f"latency {quantity(requirements.latency, 's')}"]
    fixed = {name: getattr(requirements, name) for name in ("cores", "lanes", "probes")}
    said += [f"{name} {value}" for name, value in fixed.items() if value is not None]
    said += [] if requirements.queue is None else [f"queues of {requirements.queue}"]
    said += [] if requirements.tables is None else ["with tables" if requirements.tables else "without tables"]
    return ", ".join(said)


def binding_text(wanted: DesignPoint | None, requirements: Requirements, best: DesignPoint | None = None) -> str:
    """The limit in words: for ``wanted``, the smallest design that meets the requirements, the resource that it exceeds
    most; without such a design, the clock or the input of the nearest design ``best``.
    """
    if wanted is not None:
        name = max(wanted.shares, key=wanted.shares.__getitem__)
        needs, has = getattr(wanted.cost.total, name), getattr(wanted.fpga, name)
        config = wanted.config
        what = f"of kind {config.core}"
        if not config.kind.has_index:
            what = f"with lanes {config.lanes}, probes {config.probes}"
        return (f"{_NAMES[name]}: {config.cores} {plural(config.cores, 'core')} {what} would need {needs:,}, "
                f"and {int(FULL[name] * has):,} of the FPGA's {has:,} can be used")
    if best is None:
        return "memory: a core holds 65,536 tuples of a stream, and there are 1,024 cores at most"
    if requirements.rate is not None and requirements.rate > best.input_rate:
        return (f"clock: whatever is compared, a circuit of {best.clock.mhz:.0f} MHz takes no more than "
                f"{quantity(best.input_rate, 'tuples/s')}")
    return (f"clock: at {best.clock.mhz:.0f} MHz no number of cores, lanes and probes that can be built has it "
            f"({quantity(best.rate, 'tuples/s')} and {quantity(best.latency(busy=True), 's')} come nearest)")
