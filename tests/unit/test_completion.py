"""Completion knows every command and every option, and its scripts are whole."""

from __future__ import annotations

from types import ModuleType

import pytest

from pykafkad import cli, completion, completion_shells, logs, opening, running, tools
from pykafkad.completion_shells import kind_of
from pykafkad.tools import options
from pykafkad.tools.options import Option


def found(command: str) -> dict[str, Option]:
    (one,) = (known for known in completion.commands() if known.name == command)
    return {option.name: option for option in one.options}


def test_every_command_is_there() -> None:
    names = [command.name for command in completion.commands()]
    assert {"start", "open", "run", "completion", "help", *tools.TOOLS} <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("command", "module"), [("start", cli), ("open", opening), ("run", running)])
def test_every_option_of_a_command_without_a_table_is_explained(command: str, module: ModuleType) -> None:
    """What completion and docs/tools.md have of these commands is what their usage says."""
    explained = {f"--{name}" for name in found(command)}
    assert explained >= module.SETTERS.keys() | ({"--ephemeral"} if module is cli else set())
    assert all(option.help for option in found(command).values())


def test_the_lines_of_a_usage_text() -> None:
    usage = """\
usage: pykafkad x

  --host HOST           listen there; also what clients
                        are told
  --ephemeral           keep nothing
  --log-level LEVEL     debug or off

Configs come from elsewhere, --host too.
"""
    host, ephemeral, level, help = completion.options_in(usage)
    assert (host.name, host.shown, host.help) == ("host", "HOST", "listen there; also what clients are told")
    assert (ephemeral.argument, level.choices) == (options.NONE, tuple(logs.LEVELS))
    assert help.name == "help"


@pytest.mark.parametrize(
    ("command", "option", "kind"),
    [
        ("consume", "topic", "topics"),
        ("groups", "group", "groups"),
        ("topics", "command-config", "files"),
        ("groups", "from-file", "files"),
        ("start", "data", "files"),
        ("produce", "compression-codec", "choices"),
        ("produce", "sync", ""),
        ("topics", "partitions", "other"),
    ],
)
def test_what_a_value_may_be(command: str, option: str, kind: str) -> None:
    assert kind_of(found(command)[option]) == kind


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_whole(shell: str) -> None:
    script = completion_shells.SCRIPTS[shell](completion.commands())
    assert script.isascii(), "it can be printed in any encoding"
    for command in completion.commands():
        assert command.name in script
        for option in command.options:
            assert (f"-l {option.name} " if shell == "fish" else f"--{option.name}") in script
    for line in script.splitlines():
        assert line.count("'") % 2 == 0 and line.count('"') % 2 == 0, line
    assert "%(" not in script and "%%" not in script.replace("%%=", "")
    if shell != "fish":
        assert script.count("case ") == script.count("esac\n")


def test_words_that_shells_would_take_for_syntax_are_left_out() -> None:
    assert (
        completion_shells.plain("It's `what` [one] $HOME says: all. And more.")
        == "Its what one HOME says all"
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [("topcs", "did you mean topics?"), ("qqq", "unknown command qqq; see pykafkad help\n")],
)
def test_a_command_that_is_none(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([typed]) == cli.EXIT_USAGE
    shown = capsys.readouterr()
    assert not shown.out and said in shown.err and shown.err.count("\n") == 1


def test_the_command_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "--help"]) == 0 and "eval" in capsys.readouterr().out
    assert cli.main(["completion"]) == cli.main(["completion", "tcsh"]) == 2
    assert not capsys.readouterr().out
