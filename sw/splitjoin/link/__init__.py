"""The link between a host and a circuit on a board: frames over a byte channel, the host's endpoint, and devices."""
