"""Refining a placement of nextpnr's on ECP5: cells, carry chains and memories move until late paths are on time."""
