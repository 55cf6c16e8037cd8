"""Files under faults: schedules of failing calls, kills and power cuts over a simulated disk."""
