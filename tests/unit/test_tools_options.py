"""The tools' command lines are read as Kafka's tools read them."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--nope"]])
def test_the_options_are_explained_on_standard_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert options.run(KNOWN, arguments, "About.", lambda found: 0) == 1
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.splitlines()[0] == (
        "nope is not a recognized option" if "--nope" in arguments else "About."
    )
    assert (
        "--count <Integer: n>" in shown.err
        and "(default: 3)" in shown.err
        and "--state [String]" in shown.err
    )
    assert all(len(line) <= 80 for line in shown.err.splitlines())


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
