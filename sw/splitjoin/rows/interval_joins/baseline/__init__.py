"""Engines of papers, which exist to be compared with ours; `choice` beside this folder reaches them by their names."""
