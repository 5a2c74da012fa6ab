"""Completion knows every command and every option, and its scripts are whole."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pykafkad import cli, completion, completion_shells, logs, opening, running, tools
from pykafkad.completion import Command
from pykafkad.completion_shells import kind_of
from pykafkad.net import client
from pykafkad.tools import admin, admin_groups, options
from pykafkad.tools.options import Option


def found(command: str) -> dict[str, Option]:
    (one,) = (known for known in completion.commands() if known.name == command)
    return {option.name: option for option in one.options}


def test_every_command_is_there() -> None:
    names = [command.name for command in completion.commands()]
    assert {"start", "open", "run", "completion", "help", *tools.TOOLS} <= set(names)
    assert len(set(names)) == len(names)
    assert names[0] == "start" and all(command.about for command in completion.commands())


@pytest.mark.parametrize(("command", "module"), [("start", cli), ("open", opening), ("run", running)])
def test_every_option_of_a_command_without_a_table_is_explained(command: str, module: ModuleType) -> None:
    """What completion and docs/tools.md have of these commands is what their usage says."""
    explained = {f"--{name}" for name in found(command)}
    assert explained >= module.SETTERS.keys() | ({"--ephemeral"} if module is cli else set())
    assert all(option.help for option in found(command).values())


def test_the_lines_of_a_usage_text() -> None:
    usage = """\
usage: pykafkad x

                        --none of an option
  --host HOST           listen there; also what clients
                        are told
                    by everybody
                   and this is another paragraph
  --ephemeral           keep nothing
  --no-words
  --log-level LEVEL     debug or off

Configs come from elsewhere, --host too.
"""
    host, ephemeral, wordless, level, help = completion.options_in(usage)
    told = "listen there; also what clients are told by everybody"
    assert (host.name, host.shown, host.help) == ("host", "HOST", told)
    assert (wordless.name, wordless.argument, wordless.help) == ("no-words", options.NONE, "")
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
    for asked in ("--help", "-h"):
        assert cli.main(["completion", asked]) == 0 and "eval" in capsys.readouterr().out
    assert cli.main(["completion"]) == cli.main(["completion", "tcsh"]) == 2
    shown = capsys.readouterr()
    assert not shown.out and "usage: pykafkad completion" in shown.err
    assert cli.main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == completion_shells.zsh(completion.commands())


# -- how the scripts are written

COMMANDS = [
    Command("start", "serve Kafka's protocol", [options.flag("ephemeral", "keep nothing")], None),
    Command(
        "groups",
        "groups; and more",
        [
            options.value("group", "id", "Its name. More."),
            options.value("topic", "name", "A topic"),
            options.value("to", "when", "Where to", choices=("first", "last")),
            options.value("from-file", "path", "A file"),
            options.value("timeout", "ms", "So long"),
        ],
        SimpleNamespace(COMMANDS=("list", "describe")),  # type: ignore[arg-type]
    ),
    Command("help", "explain", (), None),
    Command("completion", "a script", (), None),
]


def lines_of(shell: str) -> set[str]:
    return {line.strip() for line in completion_shells.SCRIPTS[shell](COMMANDS).splitlines()}


def test_bash_knows_the_words_and_values_of_each_command() -> None:
    assert lines_of("bash") >= {
        "start) echo --ephemeral ;;",
        "groups) echo list describe --group --topic --to --from-file --timeout ;;",
        "help) echo  ;;",
        "completion) echo bash zsh fish ;;",
        '"groups --group") echo "groups" ;;',
        '"groups --topic") echo "topics" ;;',
        '"groups --to") echo "words first last" ;;',
        '"groups --from-file") echo "files" ;;',
        'kind="words start groups help completion"',
    }


def test_bash_has_one_case_for_all_options_with_values_of_a_kind() -> None:
    more = Command("topics", "", [options.value("topic", "name", "")], None)
    assert '"groups --topic"|"topics --topic") echo "topics" ;;' in completion_shells.bash([*COMMANDS, more])


def test_zsh_knows_the_words_and_values_of_each_command() -> None:
    script = completion_shells.zsh(COMMANDS)
    assert {line.rstrip(" \\") for line in lines_of("zsh")} >= {
        "'start:serve Kafkas protocol'",
        "'groups:groups'",
        "_arguments '--ephemeral[keep nothing]' '*:file:_files' ;;",
        "_arguments '1:word:(list describe)'",
        "'*--group=[Its name]:group:_pykafkad_names groups'",
        "'*--topic=[A topic]:topic:_pykafkad_names topics'",
        "'*--to=[Where to]:to:(first last)'",
        "'*--from-file=[A file]:from-file:_files'",
        "'*--timeout=[So long]:timeout: ' ;;",
        "_arguments '1:word:(bash zsh fish)' ;;",
    }
    assert "        help)" not in script, "nothing follows it"


def test_fish_knows_the_words_and_values_of_each_command() -> None:
    here = "complete -c pykafkad -n '__pykafkad_is"
    lines = lines_of("fish")
    assert lines >= {
        "complete -c pykafkad -n __pykafkad_is_first -a start -d 'serve Kafkas protocol'",
        f"{here} start' -F",
        f"{here} start' -l ephemeral -d 'keep nothing'",
        f"{here} groups' -a 'list describe'",
        f"{here} groups' -l group -x -a '(__pykafkad_names groups)' -d 'Its name'",
        f"{here} groups' -l topic -x -a '(__pykafkad_names topics)' -d 'A topic'",
        f"{here} groups' -l to -x -a 'first last' -d 'Where to'",
        f"{here} groups' -l from-file -r -F -d 'A file'",
        f"{here} groups' -l timeout -x -d 'So long'",
        f"{here} completion' -a 'bash zsh fish'",
    }
    assert not any("is help'" in line or line == f"{here} groups' -F" for line in lines)


# -- names of a broker


class Running:
    """A cluster whose broker answers, or does not."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.closed = bootstrap, False

    def any_broker(self) -> None:
        if self.bootstrap == "nobody:1":
            raise ConnectionRefusedError

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    def listed(kind: str, *names: str) -> Any:
        return lambda cluster: [SimpleNamespace(**{kind: name}) for name in names]

    asked: list[Running] = []

    def reached(bootstrap: str, *, api_timeout_ms: int, request_timeout_ms: int) -> Running:
        assert max(api_timeout_ms, request_timeout_ms) <= 5000, "somebody is typing"
        asked.append(Running(bootstrap))
        return asked[-1]

    monkeypatch.setattr(client, "Cluster", reached)
    monkeypatch.setattr(admin, "list_topics", listed("name", "orders", "a\nb", "bills"))
    monkeypatch.setattr(admin_groups, "list_groups", listed("group_id", "team"))
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "usual:1")
    return asked


def test_names_are_told_in_order_but_for_what_no_line_can_hold(
    cluster: list[Running], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", "topics"]) == 0
    assert capsys.readouterr().out == "bills\norders\n"
    assert cli.main(["completion", "groups", "--bootstrap-server", "there:1"]) == 0
    assert capsys.readouterr().out == "team\n"
    assert cli.main(["completion", "groups", "--bootstrap-server"]) == 0, "it is being typed"
    assert cli.main(["completion", "groups", "--other", "there:1"]) == 0
    assert [each.bootstrap for each in cluster] == ["usual:1", "there:1", "usual:1", "usual:1"]
    assert all(each.closed for each in cluster)


def test_a_broker_that_is_not_there_is_not_complained_of(
    cluster: list[Running], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", "topics", "--bootstrap-server", "nobody:1"]) == 0
    assert capsys.readouterr() == ("", "") and cluster[0].closed
