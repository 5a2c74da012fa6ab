"""What we write into ZooKeeper is obeyed by Kafka 3.9.2, and what it writes is read by us; see test_beside_kafka.py."""
