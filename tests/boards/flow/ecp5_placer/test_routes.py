import numpy as np

from splitjoin_boards.flow.ecp5_placer.routes import keep_arcs, read_routes, routing_attributes, with_shared_inputs


def test_arcs_to_a_shared_enable_are_kept_or_removed_together(placed, annealer):
    c = annealer.netlist
    enables = [arc for arc, port in enumerate(c.sink_port) if port == "CE"]
    for arc in enables[::10]:
        arcs = np.zeros(len(c.net), np.bool_)
        arcs[arc] = True
        kept = with_shared_inputs(c, arcs)
        assert {c.net[other] for other in np.flatnonzero(kept)} == {c.net[arc]}
        assert all(kept[other] for other in enables if c.net[other] == c.net[arc])


def test_removing_all_arcs_leaves_clocks_and_wires_inside_slices(placed, annealer):
    module = placed["modules"]["top"]
    reduced = keep_arcs(module, annealer.netlist, np.zeros(len(annealer.netlist.net), np.bool_))
    assert reduced["cells"].keys() == module["cells"].keys()
    left = {"TRELLIS_FF": {"CLK", "DI"}, "TRELLIS_COMB": {"WCK", "FCI", "WD", "WAD0", "WAD1", "WAD2", "WAD3"}}
    for name, cell in reduced["cells"].items():
        if cell["type"] in left:
            inputs = {port for port, bits in cell["connections"].items()
                      if bits and cell["port_directions"][port] == "input"}
            assert inputs <= left[cell["type"]], name


def test_wires_to_shared_inputs_are_not_fixed():
    wires = {"X5/Y5/Q0_SLICE": "", "X5/Y5/Q0": "X5/Y5/0_0_Q0_SLICE->0_0_Q0", "X5/Y6/V01S": "X5/Y5/0_0_Q0->0_1_V01S",
             "X5/Y6/CE1": "X5/Y6/0_0_V01S->0_0_CE1", "X5/Y6/CE1_SLICE": "X5/Y6/0_0_CE1->0_0_CE1_SLICE",
             "X5/Y5/A3_SLICE": "X5/Y5/0_0_Q0->0_0_A3_SLICE"}
    attributes = routing_attributes({"n": wires, "m": wires}, {"n"})
    fields = attributes["n"].split(";")
    strength = dict(zip(fields[0::3], fields[2::3], strict=True))
    assert strength == {"X5/Y5/Q0_SLICE": "4", "X5/Y5/Q0": "4", "X5/Y6/V01S": "1", "X5/Y6/CE1": "1",
                        "X5/Y6/CE1_SLICE": "1", "X5/Y5/A3_SLICE": "4"}
    assert set(attributes["m"].split(";")[2::3]) == {"1"}


def test_routes_are_read_except_global_ones_and_those_of_pads():
    def net(routing):
        return {"bits": [2], "attributes": {"ROUTING": routing} if routing else {}}

    module = {"netnames": {
        "none": net(""), "global": net("X1/Y1/Q0_SLICE;;5;X2/Y2/G;X2/Y2/0_0_A->0_0_G;5"),
        "pad": net("X126/Y11/JPADDIA_PIO;;1"), "ram": net("X1/Y1/JDOA3_EBR;;1"),
        "slice": net("X2/Y3/F4_SLICE;;1;X2/Y3/F4;X2/Y3/0_0_F4_SLICE->0_0_F4;1")}}
    assert read_routes(module) == {"ram": {"X1/Y1/JDOA3_EBR": ""},
                                   "slice": {"X2/Y3/F4_SLICE": "", "X2/Y3/F4": "X2/Y3/0_0_F4_SLICE->0_0_F4"}}
