"""Partitions on their way to another log directory."""
