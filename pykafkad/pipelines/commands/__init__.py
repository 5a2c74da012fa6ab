"""`pykafkad sql`: the shell, and the commands beside it. Each is a module with `main(arguments)` and USAGE."""

COMMANDS: dict[str, str] = {
    "run": "pykafkad.pipelines.commands.run",
    "check": "pykafkad.pipelines.commands.check",
    "explain": "pykafkad.pipelines.commands.explain",
    "emit": "pykafkad.pipelines.commands.emit",
    "test": "pykafkad.pipelines.commands.test",
}
"""What may stand behind `sql`; without it, the shell begins."""
