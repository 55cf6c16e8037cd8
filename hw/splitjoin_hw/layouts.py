"""Payload layouts of the streams inside the circuit, derived from the wire contract."""

from __future__ import annotations

from amaranth.hdl import Cat, Value, unsigned
from amaranth.lib import data

from splitjoin.circuit.wire import ROW_BITS, Configuration, Record

#: The ``stream`` bit of an input record.
STREAM_R, STREAM_S = 0, 1


def struct(record: Record) -> data.StructLayout:
    """The layout of a wire record."""
    return data.StructLayout({name: unsigned(width) for name, width in record.fields})


def taken(record: Record, part: Record, bits: Value) -> Value:
    """The fields of ``part`` in ``bits``, which are those of ``record``, side by side."""
    runs: list[list[int]] = []
    for name, width in part.fields:
        at = record.offsets()[name][0]
        if runs and runs[-1][1] == at:
            runs[-1][1] += width
        else:
            runs.append([at, at + width])
    return bits[slice(*runs[0])] if len(runs) == 1 else Cat(bits[slice(*run)] for run in runs)


def input_layout(config: Configuration) -> data.StructLayout:
    """The record that the distribution tree broadcasts and that a region accepts as its next operation."""
    return struct(config.input_record)


def result_layout() -> data.StructLayout:
    """A result from a region through the mergers: ``kind`` as `ItemKind`, and row ids in their streams."""
    return data.StructLayout({"kind": unsigned(2), "probe": unsigned(ROW_BITS), "stored": unsigned(ROW_BITS)})


def folded_layout(config: Configuration) -> data.StructLayout:
    """The folded ``state`` of a probe, from a region through the tree of states; ``end``: no probe, but an END."""
    return data.StructLayout({"end": unsigned(1), "state": struct(config.state)})


def window_layout(config: Configuration) -> data.StructLayout:
    """Run-time settings of one region: its window, and its punctuation.

    ``rows``: the window's length in row ids, all ones for no limit. ``timed``: 1 if ``range`` limits the window.
    ``precision``: probes between stars, 0 for no stars. ``slice``: tuples between the inner stars of a probe, 0 for
    none.
    """
    return data.StructLayout({"rows": unsigned(ROW_BITS), "range": unsigned(config.time_bits), "timed": unsigned(1),
                              "precision": unsigned(32), "slice": unsigned(config.capacity.bit_length())})


def settings_layout(config: Configuration) -> data.StructLayout:
    """Run-time settings of the device.

    ``sorted``: each probe's results leave in the order of the stored tuples' age, oldest first. ``total``: and the
    results of both streams' probes in the order of the probes' arrival.
    """
    return data.StructLayout({"sorted": unsigned(1), "total": unsigned(1), "r": window_layout(config),
                              "s": window_layout(config)})
