"""Other people's test suites, brought through their package registries and run against a broker of ours.

    python -m compat_tests.suites kafka-python [-k SELECTION] [--bootstrap HOST:PORT]

launcher       pykafkad as a suite starts it that wants a broker of its own for each test
kafka_python   the integration tests in kafka-python's source distribution

A suite's tests that need what comes with a later issue are named in it, with the issue they wait for. They are run all
the same: one that passes must be taken off the list.
"""
