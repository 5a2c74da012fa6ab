"""Kafka's stock command-line tools on two brokers at once: the same arguments, and what they print compared.

toolbox.py  runs the tools (Toolbox.java: all in one JVM)
said.py     what a tool printed, field by field, without what is each broker's own
both.py     the two brokers, and `both.same("topics", "--list")`
meant.py    the differences that are meant

TWIN=1 puts a second Kafka in pykafkad's place, which must show no difference: these tests, tested.
"""
