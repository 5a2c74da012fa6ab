"""Where a command's queries run: --host, and what goes with it."""

from __future__ import annotations

from pykafkad.pipelines.commands.arguments import Arguments, UsageError

HOSTS = ("local", "spark")


def is_spark(given: Arguments, otherwise: str) -> bool:
    """Whether Spark runs the queries, which can then be: else it is a UsageError. `otherwise`: the host where none is
    given."""
    host = given.values.get("--host", otherwise)
    if host not in HOSTS:
        raise UsageError(f"--host {host}: {' or '.join(HOSTS)}")
    if host != "spark":
        if "--master" in given.values:
            raise UsageError("--master goes with --host spark")
        return False
    from pykafkad.pipelines.commands.test import missing_for_spark

    if (missing := missing_for_spark()) is not None:
        raise UsageError(f"{missing}; --host local needs neither Spark nor Java")
    return True
