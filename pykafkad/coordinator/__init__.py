"""Coordinators: run the pure group machines on top of the partitions that hold their state."""
