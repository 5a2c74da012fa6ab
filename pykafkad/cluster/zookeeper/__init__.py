"""A broker of a cluster on ZooKeeper, in Apache Kafka 3.9's znodes and requests. Imported where zookeeper.connect is set,
and nowhere else.

parts.py says what there is; what a controller asks of a broker is in fencing.py, roles.py and metadata.py.
"""
