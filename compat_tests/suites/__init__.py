"""Other projects' test suites, downloaded from their package registries and run against a broker of ours.

    python -m compat_tests.suites kafka-python [-k SELECTION] [--bootstrap HOST:PORT]

launcher       pykafkad, started as a suite does that needs its own broker for each test kafka_python   the integration
tests in kafka-python's source distribution

The tests of a suite that pass are listed beside it (NAME.txt): those, and no others. Tests of features that pykafkad
does not have yet are named in it with the reason. They are run all the same: one that passes must be removed from the
list.
"""
