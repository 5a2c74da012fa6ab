"""The same work on pykafkad and on Apache Kafka, side by side in one run: `make bench`.

__main__   arguments, the order of things          measures   what is measured on one broker sides      the two brokers
as processes            plan       rounds, interleaved; best or median of them frames     requests built once, as bytes
targets    the rows: unit, reduction, target load       load.c, compiled when first needed      report     table and
JSON clients    confluent-kafka in a process of its own
"""
