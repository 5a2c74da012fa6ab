"""`pykafkad sql [COMMAND]`: which command it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from pykafkad.pipelines.commands import COMMANDS
from pykafkad.tools import output

USAGE = """\
usage: pykafkad sql [options]
       pykafkad sql run FILE.sql [options]
       pykafkad sql check FILE.sql...
       pykafkad sql explain FILE.sql
       pykafkad sql emit FILE.sql
       pykafkad sql test FILE.sql -i INPUT.json -o OUTPUT.json

Streams and tables over topics in SQL, as ksqlDB says them. Without a command: a shell, whose statements end with
a semicolon; Ctrl-C ends what is shown, `exit` the shell. `pykafkad sql COMMAND --help` explains the commands.

  --bootstrap-server HOST:PORT  the brokers; without it those of KAFKA_BOOTSTRAP_SERVERS, else a broker for the
                    occasion, whose data is gone at the end
  --command-config FILE  configs of a Kafka client
  --host HOST       where queries run: local, in this process (the default), or spark, which begins behind the prompt
  --master URL      of spark: its cluster; without it, all processors of this machine (local[*])
  --execute SQL     obey these statements and end; what they say goes to standard output
"""

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_UNREAD = 1, 2, 130, 141


def main(arguments: Sequence[str]) -> int:
    output.mend_streams()
    try:
        code = _run(list(arguments))
        output.flush()
    except output.Unread:
        output.discard()
        return EXIT_UNREAD
    except output.Unwritable as problem:
        output.discard()
        sys.stderr.write(f"pykafkad: {problem}\n")
        return EXIT_FAILURE
    return code


def _run(arguments: list[str]) -> int:
    from pykafkad.pipelines.commands.arguments import UsageError

    name = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if name is not None and name not in COMMANDS:
        from pykafkad.tools.names import nearest

        output.error(
            f"pykafkad: unknown command sql {name}; see pykafkad sql --help{nearest(name, COMMANDS)}"
        )
        return EXIT_USAGE
    module = import_module(COMMANDS[name] if name else "pykafkad.pipelines.commands.shell")
    own = arguments[1:] if name else arguments
    if {"--help", "-h"} & set(own):
        output.text(module.USAGE if name else USAGE)
        return 0
    try:
        code: int = module.main(own)
        return code
    except UsageError as problem:
        output.error(f"pykafkad: {problem}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except output.Unwritable:
        raise
    except Exception as problem:
        from pykafkad.tools import failures

        output.error(failures.message_of(problem))
        return EXIT_FAILURE
