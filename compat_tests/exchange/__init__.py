"""One data directory that pykafkad and Apache Kafka use in turns: each serves what the other one wrote."""
