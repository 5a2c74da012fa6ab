"""How a follower fetches: what it asks its leader for, and what follows from the answers (KIP-101, 227, 279, 320, 595).

session.py remembers what the leader knows of us, fetcher.py is one connection to one leader. No I/O and no clock.
"""
