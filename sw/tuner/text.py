"""What the tuner says, in words."""

from __future__ import annotations

from .search import FULL, Design, Wishes

__all__ = ["binding_text", "quantity", "shares_text", "wishes_text"]

_NAMES = {"lut": "LUT4", "ff": "flip-flops", "block_ram": "block RAMs", "dsp": "DSPs"}


def quantity(value: float, unit: str) -> str:
    """``value`` with three digits and a prefix: 12.3 M tuples/s, 4.5 µs."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
        if value >= factor or factor == 1e-9:
            return f"{value / factor:.3g} {prefix}{unit}"
    raise AssertionError


def shares_text(design: Design) -> str:
    """How much of the device the design takes."""
    total = design.cost.total
    used = [f"{getattr(total, name) / getattr(design.device, name):.0%} of the {_NAMES[name]}"
            for name in ("lut", "ff", "block_ram")]
    return f"{', '.join(used)}; up to {FULL['lut']:.0%} of LUT4 and flip-flops have been routed"


def wishes_text(wishes: Wishes) -> str:
    """What was asked for."""
    said = [] if wishes.rate is None else [quantity(wishes.rate, "tuples/s")]
    said += [] if wishes.latency is None else [f"latency {quantity(wishes.latency, 's')}"]
    said += [f"{name} {value}" for name in ("cores", "lanes", "probes") if (value := getattr(wishes, name)) is not None]
    said += [] if wishes.tables is None else ["with tables" if wishes.tables else "without tables"]
    return ", ".join(said)


def binding_text(wanted: Design | None, wishes: Wishes, best: Design | None = None) -> str:
    """What stands in the way: of ``wanted``, the design that meets the wishes and needs least, the resource that is
    exceeded most; where there is none, the clock or the input, of the nearest design ``best``.
    """
    if wanted is not None:
        name = max(wanted.shares, key=wanted.shares.__getitem__)
        needs, has = getattr(wanted.cost.total, name), getattr(wanted.device, name)
        config = wanted.config
        what = f"of kind {config.core}"
        if config.core == "scan":
            what = f"with lanes {config.lanes}, probes {config.probes}"
        cores = "1 core" if config.cores == 1 else f"{config.cores} cores"
        return (f"{_NAMES[name]}: {cores} {what} would need {needs:,}, "
                f"and {int(FULL[name] * has):,} of the device's {has:,} can be used")
    if best is None:
        return "memory: a core holds 65,536 tuples of a stream, and there are 1,024 cores at most"
    if wishes.rate is not None and wishes.rate > best.input_rate:
        return (f"clock: whatever is compared, a circuit of {best.clock.mhz:.0f} MHz takes no more than "
                f"{quantity(best.input_rate, 'tuples/s')}")
    return (f"clock: at {best.clock.mhz:.0f} MHz no number of cores, lanes and probes that can be built has it "
            f"({quantity(best.rate, 'tuples/s')} and {quantity(best.latency(busy=True), 's')} come nearest)")
