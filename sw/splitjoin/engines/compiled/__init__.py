"""Loops that are compiled at run time, and threads that run them: for the CPU engine, GPUs, and folds of the host."""
