"""Synthesis, placement and routing with open tools, and the figures in their reports."""
