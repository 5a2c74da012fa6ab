"""Bringing logs up at a start, and looking for damage later."""
