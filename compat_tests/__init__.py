"""Real clients, stock tools and Spark against a running broker.

BROKER=pykafkad (the default) or kafka chooses which broker is started; BOOTSTRAP=HOST:PORT uses a running one. Tests
for which the machine lacks something are skipped with a message, and fail under REQUIRE_ALL=1 (conftest.py at the
root).
"""
