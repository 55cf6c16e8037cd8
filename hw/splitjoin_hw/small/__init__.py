"""The small circuit: one join core that processes a tuple at a time, for small FPGAs."""
