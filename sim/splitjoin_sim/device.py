"""The device ``sim``: the circuit compiled by Verilator, cycle-accurate, in this process."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.driver import DeviceStalled, Transport
from splitjoin.circuit.encode import Words, single_items
from splitjoin.circuit.sources import Sources
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.device import Items, joined_items
from splitjoin_hw.top import padded

from .build import library
from .memory import EXTERNAL, SimulatedMemory
from .simulated import SimulatedDevice, SimulatedTransport
from .waveforms import trace_file

_SENT, _END, _FULL, _STUCK, _PAUSED = range(5)
#: Items received per call of the model.
_ROOM = 1 << 16
#: Cycles between two checks for signals (Ctrl-C) of this process.
_PAUSE = 1 << 21


@dataclass(frozen=True, kw_only=True)
class SimDevice(SimulatedDevice):
    """Cycle-accurate simulation. Parameters as of `SimulatedDevice`, and:

    Attributes:
        progress: True to show a progress bar on a terminal.
        trace: As of `SimulatedDevice`; its model is another one, which runs slower.
    """

    name: ClassVar[str] = "sim"

    progress: bool = False

    def _connect(self, config: Configuration) -> Transport:
        if config.memory == "sdram" and self.external != EXTERNAL:
            raise DeviceError("external must be left out with memory 'sdram', as the device 'sim' has a chip with its "
                              "controller; give memory='axi', or the device 'pysim'")
        model = library(config, None if self.trace is None else Path(self.trace).suffix)
        return ModelTransport(model, config, progress=self.progress, **self._options(config))


class ModelTransport(SimulatedTransport):
    """A compiled model, loaded as a shared library."""

    def __init__(self, path: Path, config: Configuration, *, seed: int, stall_in: float, stall_out: float,
                 patience: int, pace: float | None = None, progress: bool = False,
                 trace: str | os.PathLike[str] | None = None,
                 external: SimulatedMemory = EXTERNAL):
        super().__init__()
        self._config, self._patience, self._progress = config, patience, progress
        self._lib = _load(path, memory=config.memory == "axi")
        self._trace = None if trace is None else trace_file(trace)
        if trace is not None:
            self._lib.sj_trace(os.fsencode(trace))
        share = [int(x * 2**32) for x in (stall_in, stall_out)]
        self._model = ctypes.c_void_p(self._lib.sj_open(seed, *share, pace or 0.0))
        if config.memory == "axi":
            fails = -1 if external.fails is None else external.fails
            self._lib.sj_memory(self._model, external.latency, external.interval, external.reorder,
                                int(external.stall * 2**32), fails % 2**64)
        self._out_words = padded(config.output_record) // 32

    @property
    def _open_model(self) -> ctypes.c_void_p:
        """The model. Raises `DeviceError` once it is closed."""
        if not self._model:
            raise DeviceError("the simulated circuit is closed; push, and read counters, before the session is closed")
        return self._model

    def read(self, address: int) -> int:
        return int(self._lib.sj_read(self._open_model, address))

    def write(self, address: int, word: int) -> None:
        self._lib.sj_write(self._open_model, address, word)

    def transfer_from(self, records: Words, sources: Sources, *, until_end: bool) -> Items:
        n = len(records)
        in_words = padded(self._config.input_record) // 32
        number = np.argsort(sources, kind="stable").astype(np.uint64)  # the records of source after source
        block = np.zeros((n, in_words), np.uint32)
        block[:, :records.shape[1]] = records[number]
        end = np.cumsum(np.bincount(sources, minlength=self._config.sources)).astype(np.uint64)
        begin = np.concatenate([np.zeros(1, np.uint64), end[:-1]])
        behind, start = begin.copy(), self._lib.sj_cycle(self._open_model)
        sent_cycles = np.zeros(n, np.uint64)
        out: list[Items] = []
        with tqdm(total=n, unit=" tuples", desc="simulating", disable=None if self._progress else True,
                  leave=False) as bar:
            while True:
                words = np.empty((_ROOM, self._out_words), np.uint32)
                cycles = np.empty(_ROOM, np.uint64)
                received, before = ctypes.c_uint64(), int(behind.sum())
                why = self._lib.sj_run(
                    self._open_model, _pointer(block), _pointer(number), start, _pointer(end), _pointer(behind),
                    _pointer(sent_cycles), _pointer(words), _ROOM, ctypes.byref(received), _pointer(cycles),
                    int(until_end), _PAUSE, self._patience)
                bar.update(int(behind.sum()) - before)
                items, record = single_items(words[: received.value], self._config)
                out.append(items)
                self._log.received(items, cycles[record])
                if why == _STUCK:
                    sent, cycle = int((behind - begin).sum()), self._lib.sj_cycle(self._open_model)
                    raise DeviceStalled(f"the simulated circuit made no progress for {self._patience} cycles (at "
                                        f"cycle {cycle}, {sent} of {n} records sent); this is a fault of the circuit, "
                                        f"please report it with the query")
                if why in (_SENT, _END):
                    break
        self._log.sent(records, sent_cycles[np.argsort(number)])
        return joined_items(out)

    def close(self) -> None:
        if self._model:
            self._lib.sj_close(self._model)
            self._model = ctypes.c_void_p()
        if self._trace is not None:
            self._trace.close()


def _pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _load(path: Path, *, memory: bool) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    handle, u32, u64, p = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    for name, result, arguments in (
        ("sj_open", handle, (u64, u32, u32, ctypes.c_double)),
        ("sj_close", None, (handle,)),
        ("sj_read", u32, (handle, u32)),
        ("sj_write", None, (handle, u32, u32)),
        ("sj_cycle", u64, (handle,)),
        ("sj_run", ctypes.c_int, (handle, p, p, u64, p, p, p, p, u64, p, p, ctypes.c_int, u64, u64)),
        *([("sj_memory", None, (handle, u64, u64, u64, u32, u64))] if memory else []),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, list(arguments)
    return lib
