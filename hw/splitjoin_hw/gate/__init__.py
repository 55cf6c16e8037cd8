"""ScaleGate as a circuit: merges several sources into one stream in arrival order."""
