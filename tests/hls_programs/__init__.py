"""Random programs of `splitjoin.hls`, many at a time: Python, machine code, three simulators and the mapped netlist."""
