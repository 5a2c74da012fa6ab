"""Kafka's stock command-line tools on two brokers at once: the same arguments, and their outputs compared.

toolbox.py  runs the tools (Toolbox.java: all in one JVM) said.py     a tool's output, field by field, without what
differs between any two brokers both.py     the two brokers, and `both.same("topics", "--list")` meant.py    the
differences that are meant

TWIN=1 puts a second Kafka in pykafkad's place, which must show no difference; this tests the tests.
"""
