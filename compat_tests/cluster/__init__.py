"""Clusters on ZooKeeper: of pykafkad brokers, of real Kafka 3.9.2 brokers, and of both."""
