"""Real clients, stock tools and Spark against a running broker.

BROKER=pykafkad (the default) or kafka chooses what is started; BOOTSTRAP=HOST:PORT takes one that is up.
What the machine lacks is skipped aloud, and fails under REQUIRE_ALL=1 (conftest.py at the root).
"""
