"""Statements against a cluster: what `pykafkad sql` runs them with.

broker.py asks the cluster, reading.py reads topics in the order of their records' times. engine.py keeps queries going in
a plain loop, spark_engine.py in Spark; hosting.py says what either is to the others. runner.py obeys statements one after
another, selecting.py answers SELECT, inserting.py makes the records of INSERT.
"""
