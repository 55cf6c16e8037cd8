import json

import numpy as np
import pytest

from splitjoin_boards.flow.ecp5_placer.netlist import read_netlist
from splitjoin_boards.flow.ecp5_placer.routes import read_routed_delays
from splitjoin_boards.flow.ecp5_placer.timing import TimingAnalysis, critical_path_ends


def test_clock_and_critical_path_are_those_of_nextpnrs_report(routed_folder, routed_module):
    netlist = read_netlist(routed_module)
    timing = TimingAnalysis(netlist, 5.0)
    report = json.loads((routed_folder / "report.json").read_text())
    mhz = timing.analyse(read_routed_delays((routed_folder / "delays.sdf").read_text(), netlist))
    assert mhz == pytest.approx(min(clock["achieved"] for clock in report["fmax"].values()), rel=1e-5)
    path = next(path["path"] for path in report["critical_paths"] if path["from"] == path["to"])
    assert critical_path_ends(netlist, timing) == (path[0]["from"]["cell"], path[-1]["to"]["cell"])


def test_annotated_delay_holds_while_driver_and_sink_keep_their_offset(annealer):
    timing, c = annealer.timing, annealer.netlist
    arc = np.flatnonzero(~c.in_slice & c.movable[c.sink] & (c.driver[c.net] != c.sink))[0]
    timing.analyse()
    estimate = timing.arc_delay[arc]
    arcs = np.arange(len(c.net)) == arc
    timing.annotate(arcs, np.full(len(c.net), 7.5))
    timing.analyse()
    assert timing.arc_delay[arc] == 7.5
    c.x[c.sink[arc]] += 1
    timing.analyse()
    assert timing.arc_delay[arc] < 7.5
    c.x[c.sink[arc]] -= 1
    annotation = timing.annotation
    timing.annotate(arcs, np.full(len(c.net), estimate))
    timing.analyse()
    assert timing.arc_delay[arc] == estimate
    timing.annotation = annotation
    timing.analyse()
    assert timing.arc_delay[arc] == 7.5
