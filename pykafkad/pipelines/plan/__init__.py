"""A query as operators that a host runs: the same objects in a plain loop and in Spark.

rows.py is what flows, topology.py how operators hang together, the other files are the operators. An operator is a
picklable value: what it remembers is in the state that its host hands it, a mapping that only it writes. Its meaning is
that of Kafka Streams' processor of the same purpose: what it emits, in which order and with which timestamp.
"""
