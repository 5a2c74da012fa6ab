"""The command line tools: `pykafkad topics`, `pykafkad consume` and the others.

Owns the list of them and how one is run. Each does what Kafka 4.3.1's tool of the same purpose does: the same options,
the same lines in the same order on standard output, the same exit codes. Standard error has the same messages, without
the stack traces. A tool is a module with `main(arguments)`, which returns the exit code; it is imported when it is
called, and talks to brokers through net/client.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# the name on the command line -> the module, and what it does
TOOLS: dict[str, tuple[str, str]] = {
    "topics": ("topics", "create, alter, list, describe and delete topics (kafka-topics)"),
    "configs": ("configs", "show and change configs of topics, brokers, groups, users, ... (kafka-configs)"),
    "groups": ("groups", "list, describe, reset and delete groups (kafka-consumer-groups, kafka-groups)"),
    "transactions": ("transactions", "transactional ids, hanging transactions (kafka-transactions)"),
    "offsets": ("offsets", "first, last and timed offsets of partitions (kafka-get-offsets)"),
    "produce": ("produce", "records from the lines of standard input (kafka-console-producer)"),
    "consume": ("consume", "records to standard output (kafka-console-consumer)"),
    "dump-log": ("dump_log", "what is in log, index and snapshot files (kafka-dump-log)"),
    "check": ("check", "whether a data directory is whole, and what a start would do with it"),
    "log-dirs": ("log_dirs", "sizes of the partitions in each log directory (kafka-log-dirs)"),
    "status": ("status", "what a running broker has and does: topics, groups, connections, who waits"),
    "trace": ("trace", "the requests of a running broker, as they are answered"),
    "explain": ("explain", "why no records arrive: what a running broker knows of a group or topic"),
    "perf-produce": ("perf_produce", "how fast producing is (kafka-producer-perf-test)"),
    "perf-consume": ("perf_consume", "how fast consuming is (kafka-consumer-perf-test)"),
}
EXIT_FAILURE = 1
EXIT_INTERRUPTED = 130
EXIT_UNREAD = 141  # as a shell reports a program that died of SIGPIPE: nobody reads the output any more


def main(name: str, arguments: Sequence[str]) -> int:
    """Run one of TOOLS; the exit code."""
    from pykafkad.tools import output

    output.mend_streams()
    try:
        code = _run(name, list(arguments))
        output.flush()
    except output.Unread:
        output.discard()
        return EXIT_UNREAD
    except output.Unwritable as problem:
        output.discard()
        output.error(str(problem))
        return EXIT_FAILURE
    return code


def _run(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    from pykafkad.tools import output

    try:
        tool = import_module(f"pykafkad.tools.{TOOLS[name][0]}")
        code: int = tool.main(arguments)
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except output.Unwritable:
        raise
    except Exception as problem:
        output.error(_said(problem))
        return EXIT_FAILURE


def _said(problem: Exception) -> str:
    """One line for the user, in Kafka's words if there are any."""
    from pykafkad.tools import failures

    return failures.message_of(problem)
