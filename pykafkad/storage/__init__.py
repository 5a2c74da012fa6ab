"""Partitions on disk: segments, indexes, checkpoints, start-up and shutdown. Knows no API of the wire."""
