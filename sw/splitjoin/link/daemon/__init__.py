"""The daemon: a process that owns the devices of a node and leases them to other processes over a Unix socket."""
