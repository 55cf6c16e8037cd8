"""The speed of circuits whose windows lie in external memory, by a formula; `bench.memory` simulates them beside it."""

from __future__ import annotations

from math import exp

from ..memory import heads_a_line, heads_have_records, step_latency
from ..wire import Configuration

#: Memory → the latency of a line and the cycles it takes: DDR4 behind a Zynq's port as it is assumed, and 16 bits of
#: SDRAM at 100 MHz as they are simulated (`bench.memory`).
TIMES = {"axi": (45.0, 1.0), "sdram": (12.0, 6.1)}

#: Lines that a store takes: the head of its bucket, the record, and the head again.
_STORE_LINES = 3
#: Cycles of a step from an answer of memory to the next read, beside those of the datapath.
_STEP = 5
#: Cycles of a tuple in every one of several cores, which count them all; and the exponent with which these and those of
#: memory add up, as a burst for one core holds up all: fitted to 2.85 cycles with a share of 2.07, and 2.26 with 1.5.
_COUNTED, _BURSTS = 2.0, 2.2
#: How much longer than its own steps take a context is held, as contexts are freed in turn and a look-up that waits for
#: a store holds up the reads behind it: fitted to 16.4 cycles with a latency of 45, K = 16 and windows of 2^11.
_HELD = 1.9


def memory_cycles(config: Configuration, candidates: float, latency: float, interval: float) -> float:
    """Cycles a tuple under full load, where a line takes memory ``interval`` cycles, and comes ``latency`` cycles after
    it was asked for. The length of the window has no part in it.

    A tuple is stored, and is a probe that reads lines of heads and ``candidates`` one after the other. Where heads have
    records, one line brings a bucket's head and its youngest candidate, or shows that it is empty, as one in e^m is
    with m tuples each at random. Either all lines need more time, or the steps of the probes, K at once in each of both
    regions. Several cores share the work evenly, if no key has a large part of the tuples; the one with the most of it
    decides otherwise.
    """
    heads, cores = _heads(config), config.cores
    reads = candidates + heads * (exp(-candidates / heads) if heads_have_records(config) else 1)
    cycles: float = max(interval * (_STORE_LINES + reads),
                        _HELD * (latency + step_latency(config) + _STEP) * reads / (2 * config.contexts)) / cores
    return float((cycles**_BURSTS + _COUNTED**_BURSTS) ** (1 / _BURSTS)) if config.routed else cycles


def memory_formula(config: Configuration) -> str:
    """The formula of `memory_cycles` as text, with L for the latency, I for the interval, and c candidates."""
    heads, step = _heads(config), step_latency(config) + _STEP
    empty = f"{heads:g} e^(-c/{heads:g})" if heads_have_records(config) else f"{heads:g}"
    text = f"max(I × ({_STORE_LINES} + c + {empty}), {_HELD:g} × (L + {step}) × (c + {empty}) / {2 * config.contexts})"
    return f"(({text} / {config.cores})^{_BURSTS:g} + {_COUNTED:g}^{_BURSTS:g})^(1/{_BURSTS:g})" if (
        config.routed) else text


def _heads(config: Configuration) -> float:
    """Lines of heads that a probe reads: of n heads a line, neighbours share one n - 1 times out of n."""
    return 1.0 if config.kind.lookups(config) == 1 else (1 + 1 / heads_a_line(config)) * 2 ** (len(config.index) - 1)
