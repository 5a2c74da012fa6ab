"""One partition's log: its segments, what is made from its batches, how it follows a leader."""
