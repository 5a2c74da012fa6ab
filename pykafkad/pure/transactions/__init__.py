"""Transactions: what the coordinator knows of each transactional id, and what may be done with it (KIP-98, KIP-890)."""
