"""The command line of `pykafkad run`."""

from __future__ import annotations

import pytest

from pykafkad import cli, running


def test_options_come_before_the_command() -> None:
    arguments = ["--topic", "a:3", "--topic=b", "--port", "9", "--override", "x.y=1=2", "--log-level=off"]
    options = running.parse([*arguments, "--", "pytest", "--", "--topic", "c"])
    assert options.topics == {"a": 3, "b": 1}
    assert (options.port, options.overrides, options.log_level) == (9, {"x.y": "1=2"}, "off")
    assert options.command == ["pytest", "--", "--topic", "c"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which command? pykafkad run -- COMMAND"),
        (["--"], "which command?"),
        (["pytest"], "the command comes after --: pykafkad run -- pytest"),
        (["--nope", "--", "x"], "unknown option --nope; the command comes after --\n"),
        (["--topic", "--", "x"], "--topic needs a value"),
        (["--topic", "a:0", "--", "x"], "--topic a:0: NAME or NAME:PARTITIONS is allowed"),
        (["--topic", ":1", "--", "x"], "--topic :1"),
        (["--port", "65536", "--", "x"], "--port 65536: a number from 0"),
        (["--override", "novalue", "--", "x"], "--override novalue: key=value is allowed"),
        (["--log-level", "loud", "--", "x"], "--log-level loud: one of "),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *arguments]) == 2
    found = capsys.readouterr()
    assert said in found.err and len(found.err.splitlines()) == 1 and not found.out


def test_help_goes_to_standard_output_unless_it_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: pykafkad run [options] -- COMMAND")
    assert running.parse(["--", "x", "--help"]).command == ["x", "--help"]
