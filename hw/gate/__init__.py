"""ScaleGate as a circuit: several sources become one stream in arrival order."""
