"""Group state machines: members, generations, epochs and committed offsets, without I/O, clock or randomness."""
