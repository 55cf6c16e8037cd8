"""What is built differently from one FPGA family to the next, each with a generic form that defines what it does."""
