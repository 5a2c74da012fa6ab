"""Compaction of logs: which is due, the run over one, swapping in what it made."""
