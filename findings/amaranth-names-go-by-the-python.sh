#!/bin/sh
# Guess:    "a, b = Signal(), Signal()" makes signals named a and b, the same with every Python, and "[Signal(), Signal()]" unnamed ones.
# Seen:     in a module neither of the two has a name ("$signal"), in a function the second one, but with Python 3.13
#           none; the last element of a list has the name of the list. In a function "c = d = Signal()" is "c", and
#           unnamed with 3.13.
# Matters:  the names are in Verilog, waveforms and timing constraints, which so depend on the interpreter; give name= where they count.
# Versions: amaranth 0.5.10, Python 3.11, 3.12 and 3.13.
# Source:   amaranth/_utils and amaranth/hdl/_ast.py: names are read from the bytecode of the caller (tracer.get_var_name).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check amaranth==0.5.10
cat > try.py <<'PYTHON'
import sys

from amaranth.hdl import Signal

a, b = Signal(), Signal()
several = [Signal(), Signal()]
alone = Signal()
seen = [signal.name for signal in (a, b, *several, alone)]
print("Python", sys.version.split()[0], seen)


def inside():
    a, b = Signal(), Signal()
    c = d = Signal()
    return [a.name, b.name, c.name]


print("in a function", inside())
assert seen[0] == "$signal" and seen[2:] == ["$signal", "several", "alone"], "it is no longer so"
assert inside() == (["$signal", "b", "c"] if sys.version_info < (3, 13) else ["$signal"] * 3), "it is no longer so"
PYTHON
venv/bin/python try.py
