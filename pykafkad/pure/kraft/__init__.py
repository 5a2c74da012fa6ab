"""What a broker beside controllers of Apache Kafka does, without I/O and clock: observing their quorum (observer.py),
and being registered with it (lifecycle.py)."""
