"""The tools' command lines are read as Kafka's tools read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import options, output
from pykafkad.tools.options import INTEGER, LONG, OptionError, Options, Usage, flag, optional, value

KNOWN = (
    flag("list", "List."),
    value("topic", "name", "The topic."),
    value("count", "n", "How many.", kind=INTEGER, default="3"),
    value("keys", "", "Keys.", separator=","),
    optional("state", "", "States.", available_with=("list",)),
    optional("wait", "ms", "Wait.", kind=LONG, default="10"),
)


def read(*arguments: str) -> Options:
    return Options(KNOWN, arguments)


@pytest.mark.parametrize(
    "arguments", [["--topic", "t"], ["--topic=t"], ["-topic", "t"], ["-topic=t"], ["x", "--topic", "t", "y"]]
)
def test_ways_to_give_a_value(arguments: list[str]) -> None:
    assert read(*arguments).value("topic") == "t"


def test_a_value_may_begin_with_dashes_and_hold_equals_signs() -> None:
    assert read("--topic", "--list").value("topic") == "--list"
    assert read("--topic=a=b").value("topic") == "a=b"


def test_two_dashes_end_the_options() -> None:
    assert not read("--", "--list").has("list")


def test_several_values_and_the_only_one() -> None:
    found = read("--topic", "a", "--topic", "b")
    assert found.values("topic") == ["a", "b"]
    with pytest.raises(
        OptionError, match="Found multiple arguments for option topic, but you asked for only one"
    ):
        found.value("topic")


def test_values_with_a_separator() -> None:
    assert read("--keys", "a,b", "--keys", "c").values("keys") == ["a", "b", "c"]


def test_numbers_and_defaults() -> None:
    assert read().integer("count") == 3
    assert read("--count", "-7").integer("count") == -7
    for wrong in ("x", "1.5", "2147483648", ""):
        with pytest.raises(OptionError, match="Cannot parse argument"):
            read("--count", wrong).integer("count")


def test_an_optional_argument_takes_what_does_not_look_like_an_option() -> None:
    assert read("--list", "--state", "a,b").value("state") == "a,b"
    assert read("--list", "--state", "--topic", "t").value("state") is None
    assert read("--state", "--list").has("state")
    assert read("--wait", "-5").value("wait") == "-5"
    assert read("--wait", "later").value("wait") == "10"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nope"], "nope is not a recognized option"),
        (["-xyz"], "x is not a recognized option"),
        (["--top", "t"], "top is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--state"], r"Option\(s\) \[state\] are unavailable given other options on the command line"),
    ],
)
def test_mistakes(arguments: list[str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read(*arguments)


def test_rules_between_options() -> None:
    found = read("--list", "--topic", "t")
    with pytest.raises(Usage, match='Missing required argument "\\[count\\]"'):
        found.require("list", "count")
    with pytest.raises(Usage, match='Option "\\[list\\]" can\'t be used with option "\\[topic\\]"'):
        found.exclude("list", ("count", "topic"))
    with pytest.raises(
        Usage, match="Exactly one of the following arguments is required: \\[list\\], \\[topic\\]"
    ):
        found.one_of("list", "topic")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--list", "--help"]])
def test_who_asks_is_told_the_options_and_who_says_nothing_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = options.run(KNOWN, arguments, "About.", lambda found: 0)
    output.flush()
    printed = capsys.readouterr()
    shown, other = (printed.out, printed.err) if arguments else (printed.err, printed.out)
    assert (code, other) == (0 if arguments else 1, "")
    assert shown.splitlines()[0] == "About."
    assert "--count <Integer: n>" in shown and "(default: 3)" in shown and "--state [String]" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_mistake_is_told_in_two_lines_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert options.run(KNOWN, ["--topc", "t"], "About.", lambda found: 0) == 1
    said = "topc is not a recognized option; did you mean --topic?\n--help explains the options.\n"
    assert capsys.readouterr() == ("", said)


def test_an_argument_that_is_no_option_is_ignored_but_not_in_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert options.run(KNOWN, ["list", "--list"], "About.", lambda found: 0) == 0
    assert capsys.readouterr().err == "WARN ignored, as it is no option: list; did you mean --list?\n"


def test_an_option_of_many_values_takes_all_up_to_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    found = Options((*KNOWN, options.many("set", "k=v", "Set.")), ["--set", "a=1", "b=2", "--list", "x"])
    assert found.values("set") == ["a=1", "b=2"] and found.has("list") and found.ignored == ["x"]


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    output.flush()
    return json.loads(capsys.readouterr().out)


def test_json_is_all_that_is_printed_and_so_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    known = (*KNOWN, options.json_flag("list"))

    def run(*arguments: str, fault: Exception | None = None) -> tuple[int, Any]:
        def shown(found: Options) -> object:
            if fault is not None:
                raise fault
            return {"topics": []}

        code = options.run(known, arguments, "About.", lambda found: 1, as_json=shown)
        return code, printed_json(capsys)

    assert run("--list", "--json") == (0, {"topics": []})
    unavailable = "Option(s) [json] are unavailable given other options on the command line"
    assert run("--json") == (1, {"error": {"name": "USAGE", "message": unavailable}})
    missing = errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, "no t")
    name = "UNKNOWN_TOPIC_OR_PARTITION"
    assert run("--list", "--json", fault=missing) == (1, {"error": {"name": name, "message": "no t"}})
    assert run("--list", "--json", fault=Unreachable("gone"))[1]["error"]["name"] == "UNREACHABLE"
    assert run("--list", "--json", fault=ValueError("bad")) == (
        1,
        {"error": {"name": "FAILED", "message": "bad"}},
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert options.run(KNOWN, ["--version"], "About.", lambda found: 1) == 0
    output.flush()
    assert capsys.readouterr().out == "4.3.1\n"


@pytest.mark.parametrize("text", ["h:1", "h:1,g:2", "[::1]:9092"])
def test_addresses(text: str) -> None:
    options.check_address(text)


@pytest.mark.parametrize("text", [None, "", " ", "host", "host:", ":1", "host:x", "h:1,g"])
def test_addresses_that_are_none(text: str | None) -> None:
    with pytest.raises(Usage):
        options.check_address(text)
