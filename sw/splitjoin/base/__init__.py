"""The ground of all rooms: errors, the cache, memory limits, progress, interrupts, the version."""
