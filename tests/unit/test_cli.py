from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pykafkad
from pykafkad import __version__, cli, logs
from pykafkad.config import BrokerConfig
from pykafkad.errors import StartupError


class Server(ModuleType):
    """A fake server that notes how it was run, and whether its data directory existed."""

    def __init__(self) -> None:
        super().__init__("pykafkad.server")
        self.config: BrokerConfig
        self.data_is_default = self.data_was_there = False
        self.behave: Callable[[], int] = lambda: 0

    def run(self, config: BrokerConfig, *, data_is_default: bool) -> int:
        self.config, self.data_is_default = config, data_is_default
        self.data_was_there = os.path.isdir(config.log_dirs[0])
        return self.behave()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    fake = Server()
    monkeypatch.setitem(sys.modules, "pykafkad.server", fake)
    monkeypatch.setattr(pykafkad, "server", fake, raising=False)
    for variable in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    yield fake
    logs.set_level("info")


def raising(problem: BaseException) -> Callable[[], int]:
    def behave() -> int:
        raise problem

    return behave


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.strip()


# --- the data directory


def test_without_arguments_the_data_is_in_a_directory_of_the_users(server: Server, tmp_path: Path) -> None:
    assert cli.main(["start"]) == 0
    assert server.config.log_dirs == [str(tmp_path / "xdg" / "pykafkad")]
    assert server.data_is_default
    assert not server.data_was_there


def test_a_relative_xdg_directory_does_not_count(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert cli.default_data_directory() == str(tmp_path / "home" / ".local" / "share" / "pykafkad")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cli.default_data_directory().endswith("home/Library/Application Support/pykafkad")


def test_ephemeral_data_is_gone_at_exit(server: Server, tmp_path: Path) -> None:
    for behave in (lambda: 0, raising(StartupError("taken")), raising(ValueError("a bug"))):
        server.behave = behave
        cli.main(["start", "--ephemeral", "--log-level", "off"])
        assert server.data_was_there
        assert server.config.log_dirs[0].startswith(str(tmp_path))
        assert not os.path.exists(server.config.log_dirs[0])


def test_a_named_directory_is_made_absolute(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["start", "--data", "here"]) == 0
    assert server.config.log_dirs == [str(tmp_path / "here")]
    assert not server.data_is_default


def test_a_named_directory_takes_the_files_directories_along(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/a,/b\nmetadata.log.dir=/m\n")
    assert cli.main(["start", str(file)]) == 0
    assert (server.config.log_dirs, server.config.metadata_log_dir) == (["/a", "/b"], "/m")
    assert cli.main(["start", str(file), "--data", "/d"]) == 0
    assert (server.config.log_dirs, server.config.metadata_log_dir) == (["/d"], "/d")


# --- sources


def test_file_environment_and_overrides_in_that_order(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nmessage.max.bytes=2000\nlog.dir=/x\n")
    monkeypatch.setenv("KAFKA_MESSAGE_MAX_BYTES", "3000")
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "3")
    assert cli.main(["start", "--override", "num.partitions=4", "--port=0", str(file)]) == 0
    assert (server.config["num.partitions"], server.config["message.max.bytes"]) == (4, 3000)
    assert server.config.log_dirs == ["/x"]
    assert not server.data_is_default
    assert server.config.listeners[0].port == 0


def test_an_override_may_have_equals_signs_in_its_value(server: Server) -> None:
    assert cli.main(["start", "--override=sasl.jaas.config=a=b"]) == 0
    assert server.config["sasl.jaas.config"] == "a=b"


def test_host_and_port(server: Server) -> None:
    assert cli.main(["start", "--host", "[::1]", "--port", "1234"]) == 0
    assert [str(endpoint) for endpoint in server.config.listeners] == ["PLAINTEXT://[::1]:1234"]


def test_unknown_and_unhonoured_keys_are_said_at_start(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", "--override", "no.such.key=1", "--override", "num.io.threads=3"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines] == ["WARN", "WARN"]
    assert "[no.such.key]" in lines[0]
    assert "[num.io.threads]" in lines[1]


def test_the_log_format_is_one_of_two(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert cli.main(["start", "--override", "no.such.key=1", "--log-format", "kafka"]) == 0
        assert capsys.readouterr().err.endswith("(pykafkad.config)\n")
    finally:
        logs.set_format("pykafkad")
    assert cli.main(["start", "--log-format", "java"]) == 2
    assert "--log-format java: one of pykafkad, kafka is allowed" in one_line(capsys)


def test_the_log_level_is_set_before_anything_is_said(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", "--override", "no.such.key=1", "--log-level", "ERROR"]) == 0
    assert capsys.readouterr().err == ""


# --- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "--port 99999: a number from 0 (any free port) to 65535"),
        (["--port", "x"], "--port x"),
        (["--port"], "--port needs a value"),
        (["--host", "a/b"], "--host a/b"),
        (["--nope"], "unknown option --nope"),
        (["-x"], "unknown option -x"),
        (["--ephemeral=yes"], "unknown option --ephemeral"),
        (["a", "b"], "one properties file only: a or b?"),
        (["--override", "novalue"], "--override novalue: key=value"),
        (["--log-level", "loud"], "--log-level loud: one of trace, debug, info, warn, error, off"),
        (["--remove-at-eof", "/x"], "goes with --until-eof"),
        (["--until-eof", "--remove-at-eof="], "needs a directory"),
        (["--ephemeral", "--data", "x"], "--ephemeral keeps nothing"),
        (["--ephemeral", "--override", "log.dirs=/x"], "--ephemeral keeps nothing"),
        (["--data", "a,b"], "a comma separates directories"),
        (["--data", ""], "--data needs a directory"),
        (["no/such/file"], "cannot read no/such/file: No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    arguments: list[str], said: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", *arguments]) == 2
    assert said in one_line(capsys)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("log.segment.bytes=abc", ["log.segment.bytes", "abc", "a whole number of 1048576 or more"]),
        ("num.partitions=0", ["num.partitions", "0", "at least 1"]),
        ("compression.type=lzo", ["compression.type", "lzo", "zstd, lz4, snappy, gzip, producer"]),
        ("broker.id=-3", ["broker.id", "-3", "at least 0"]),
        ("log.roll.ms=0", ["log.roll.ms=0", "1 or more"]),
        ("listeners=SSL://:1", ["listeners", "SSL://:1", "PLAINTEXT"]),
        ("listeners=nonsense", ["listeners", "nonsense", "NAME://HOST:PORT"]),
        ("log.dirs=", ["log.dirs", "not be empty"]),
        ("delete.topic.enable=maybe\nyes", ["delete.topic.enable", "maybe\\nyes", "true or false"]),
    ],
)
def test_a_wrong_config_names_key_value_and_what_is_allowed(
    override: str, words: list[str], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", "--override", override]) == 2
    line = one_line(capsys)
    assert [word for word in words if word not in line] == []


def test_a_malformed_file_names_its_line(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("\n\na=\\u00zz\n")
    assert cli.main(["start", str(file)]) == 2
    assert one_line(capsys) == f"pykafkad: {file}: line 3: Malformed \\uxxxx encoding."


def test_a_broker_that_cannot_start_is_one_line_and_exit_1(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behave = raising(StartupError("port 9092 is taken"))
    assert cli.main(["start"]) == 1
    assert one_line(capsys) == "pykafkad: port 9092 is taken"


def test_a_bug_is_one_line_and_exit_1(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = raising(ZeroDivisionError("by zero"))
    assert cli.main(["start"]) == 1
    assert "ERROR [server] the broker stopped: ZeroDivisionError: by zero" in one_line(capsys)


def test_an_interrupt_at_start_is_quiet(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave = raising(KeyboardInterrupt())
    assert cli.main(["start"]) == 130
    assert capsys.readouterr().err == ""


def test_the_servers_exit_code_is_the_programs(server: Server) -> None:
    server.behave = lambda: 5
    assert cli.main(["start"]) == 5


# --- the other commands


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"], ["start", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == cli.USAGE + cli.tools_usage()


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == f"pykafkad {__version__}\n"


def test_nothing_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert cli.USAGE in err


def test_the_program_reads_the_process_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pykafkad", "--version"])
    assert cli.main() == 0
    said: Any = capsys.readouterr().out
    assert said.startswith("pykafkad ")


def test_a_misspelt_option_is_told_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["start", "--prot", "1"]) == 2
    said = "pykafkad: unknown option --prot; see pykafkad help; did you mean --port?\n"
    assert capsys.readouterr().err == said


def test_help_can_be_written_in_any_encoding() -> None:
    assert (cli.USAGE + cli.tools_usage()).isascii()


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "open"]) == 0 and "--read-only" in capsys.readouterr().out
    assert cli.main(["help", "opn"]) == 2 and "did you mean open?" in capsys.readouterr().err
