"""Synthesis, placement and routing with open tools, and what their reports say."""
