"""One data directory that pykafkad and Apache Kafka take turns on: what one wrote the other serves."""
