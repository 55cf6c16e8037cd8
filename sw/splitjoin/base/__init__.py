"""What all rooms use: errors, the cache, memory limits, progress, interrupts, the version."""
