"""Components that differ from one FPGA family to the next, each with a generic form that defines its function."""
