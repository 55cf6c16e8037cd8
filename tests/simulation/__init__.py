"""Threads and processes that talk, under a scheduler, a clock, a network and a disk of their own: seeds choose all."""
