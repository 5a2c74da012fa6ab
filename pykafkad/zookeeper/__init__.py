"""ZooKeeper as brokers use it: asked on the loop (client.py), its znodes in Kafka 3.9's forms (znodes.py)."""
