"""topics, groups, offsets and configs: their output, rules and exit codes, with a small fake broker."""

from __future__ import annotations

import pytest

from pykafkad import cli, errors, tools
from pykafkad.net import client
from pykafkad.tools import configs_quotas, configs_resources, groups, groups_reset, offsets, settings, topics
from pykafkad.tools.topic_filter import TopicFilter
from tests.unit.tools_kit import HANG_UP, FakeBroker, install


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker()
    install(monkeypatch, broker)
    return broker


def run(capsys: pytest.CaptureFixture[str], tool: str, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tools.main(tool, ["--bootstrap-server", "127.0.0.1:9092", *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


# -- running a tool


def test_the_program_knows_its_tools(capsys: pytest.CaptureFixture[str]) -> None:
    for name in tools.TOOLS:
        assert cli.main([name, "--help"]) == 0
        printed = capsys.readouterr()
        assert "--help" in printed.out or name == "check"
        assert not printed.err
    assert cli.main(["help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in tools.TOOLS)


def test_nobody_who_reads_is_no_fault(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    from pykafkad.tools import output

    broken = []

    def write(data: bytes) -> None:
        broken.append(data)
        raise output.Unread

    monkeypatch.setattr(output, "write", write)
    monkeypatch.setattr(output, "discard", lambda: None)
    assert tools.main("topics", ["--bootstrap-server", "127.0.0.1:9092", "--list"]) == tools.EXIT_UNREAD
    assert broken


# -- topics


def test_topics(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--create", "--topic", "made", "--partitions", "2", "--config", "retention.ms=5"]
    assert run(capsys, "topics", *how) == (0, "Created topic made.\n", "")
    code, out, _ = run(capsys, "topics", *how)
    assert (code, out) == (1, "Error while executing topic command : Topic 'made' already exists.\n")
    assert run(capsys, "topics", *how, "--if-not-exists") == (0, "", "")
    broker.create("__consumer_offsets")
    assert run(capsys, "topics", "--list")[1] == "__consumer_offsets\nmade\n"
    assert run(capsys, "topics", "--list", "--exclude-internal")[1] == "made\n"
    assert run(capsys, "topics", "--list", "--topic", "no.*")[1] == "\n"


def test_what_is_wrong_with_a_new_topic_is_told_before_it_is_asked_for(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, said in (
        (["--partitions", "0"], "The partitions must be greater than 0"),
        (["--replication-factor", "32768"], "The replication factor must be between 1 and 32767 inclusive"),
        (
            ["--config", "retention.ms=x"],
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (["--config", "nope=1"], "Unknown topic config name: nope"),
        (["--replica-assignment", "1:1"], "Partition replica lists may not contain duplicate entries: 1"),
        (["--replica-assignment", "1:2,3"], "Partition 1 has different replication factor: [3]"),
        (["--partitions", "many"], "Cannot parse argument 'many' of option partitions"),
    ):
        code, out, _ = run(capsys, "topics", "--create", "--topic", "t", *arguments)
        assert (code, out) == (1, f"Error while executing topic command : {said}\n")
    assert not broker.topics


def test_a_misspelt_config_is_told_with_the_nearest_one(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "topics", "--create", "--topic", "t", "--config", "retention.mss=1")
    assert (code, err) == (1, "WARN no such name: retention.mss; did you mean retention.ms?\n")


def test_assignments() -> None:
    assert topics.parse_assignment("1:2, 2:3 ,3:1") == {0: [1, 2], 1: [2, 3], 2: [3, 1]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--list", "--create"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[topic]"'),
        (["--list", "--partitions", "1"], 'Option "[partitions]" can\'t be used with option "[list]"'),
        (["--alter", "--topic", "t"], 'Missing required argument "[partitions]"'),
        (
            ["--describe", "--topics-with-overrides", "--under-replicated-partitions"],
            'Option "[under-replicated-partitions]" can\'t be used with option "[topics-with-overrides]"',
        ),
    ],
)
def test_topics_command_lines_that_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, "topics", *arguments)
    assert (code, out) == (1, "") and err.startswith(said)


@pytest.mark.parametrize(
    ("expression", "names"),
    [("a", ["a"]), ("a,b", ["a", "b"]), ("'a|b'", ["a", "b"]), (" .b ", ["ab"]), ("", [])],
)
def test_topic_filters(expression: str, names: list[str]) -> None:
    assert [name for name in ("a", "b", "ab") if TopicFilter(expression).allows(name)] == names
    with pytest.raises(ValueError, match=r"\[ is an invalid regex"):
        TopicFilter("[")


# -- retries


@pytest.mark.parametrize(
    ("given", "environment", "configs", "found"),
    [
        ("a:1", "b:2", {"bootstrap.servers": "c:3"}, "a:1"),
        (None, "b:2", {"bootstrap.servers": "c:3"}, "c:3"),
        (None, "b:2", {}, "b:2"),
        (None, "", {}, "localhost:9092"),
        (None, None, {}, "localhost:9092"),
        ("", "b:2", {}, ""),
    ],
)
def test_where_a_tool_starts(
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    environment: str | None,
    configs: dict[str, str],
    found: str,
) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    if environment is not None:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", environment)
    assert settings.bootstrap(given, configs) == found


def test_a_variable_that_is_no_address_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "localhost")
    for arguments in (
        ["topics", "--list"],
        ["groups", "--list"],
        ["configs", "--describe", "--topic", "t"],
        ["offsets"],
    ):
        assert tools.main(arguments[0], arguments[1:]) == 1
        assert (
            "KAFKA_BOOTSTRAP_SERVERS=localhost: Invalid url in bootstrap.servers" in capsys.readouterr().err
        )


def test_addresses_of_brokers() -> None:
    assert client.addresses("h:1, PLAINTEXT://g:2,[::1]:3") == [("h", 1), ("g", 2), ("::1", 3)]
    for text in ("h", "h:", ":1", "h:x", "http://h/x:1", "h:99999", ""):
        with pytest.raises(client.ClientError):
            client.addresses(text)


def test_a_broker_that_hangs_up_is_asked_again(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create("t")
    broker.fail("Metadata", HANG_UP, HANG_UP)
    assert run(capsys, "topics", "--list")[1] == "t\n"


def test_the_time_for_a_call_ends() -> None:
    cluster = client.Cluster("127.0.0.1:1", api_timeout_ms=0)
    with pytest.raises(client.CallTimeout, match="Timed out waiting for a node assignment"):
        cluster.attempt("listTopics", fails)


def fails() -> None:
    raise ConnectionError("no")


def test_apis_that_a_broker_has_not(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "topics", "--delete", "--topic", "t", "--if-exists")
    assert (code, out) == (0, "")
    broker.create("t")
    code, out, _ = run(capsys, "topics", "--delete", "--topic", "t")
    assert (code, out) == (
        1,
        "Error while executing topic command : The node does not support DELETE_TOPICS\n",
    )


@pytest.mark.parametrize("text", ["", ",", "host", "host:x", "host:70000", ":1"])
def test_bootstrap_addresses_that_are_none(text: str) -> None:
    with pytest.raises(client.ClientError):
        client.addresses(text)


def test_bootstrap_addresses() -> None:
    assert client.addresses("a:1, [::1]:2,") == [("a", 1), ("::1", 2)]


# -- offsets


def test_offsets(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.create("t", 2)
    broker.append("t", 1, (None, b"x"), (None, b"y"))
    broker.create("u")
    assert run(capsys, "offsets") == (0, "t:0:0\nt:1:2\nu:0:0\n", "")
    assert run(capsys, "offsets", "--time", "earliest", "--topic-partitions", "t:1-,x")[1] == "t:1:0\n"
    broker.fail("ListOffsets", 0, errors.TOPIC_AUTHORIZATION_FAILED)
    code, out, err = run(capsys, "offsets")
    assert (code, out) == (0, "t:0:0\nu:0:0\n") and err.startswith(
        "Skip getting offsets for topic-partition t-1"
    )
    code, _, err = run(capsys, "offsets", "--topic", "no")
    assert (code, err) == (
        1,
        "Error occurred: Could not match any topic-partitions with the specified filters\n",
    )


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ("t", [0, 1, 2, 3]),
        ("t:1", [1]),
        ("t:1-3", [1, 2]),
        ("t:2-", [2, 3]),
        ("t:-2", [0, 1]),
        (":3", [3]),
        ("other:1", []),
        ("", [0, 1, 2, 3]),
    ],
)
def test_partition_rules(rule: str, allowed: list[int]) -> None:
    allows = offsets.parse_rule(rule)
    assert [index for index in range(4) if allows("t", index)] == allowed


def test_times() -> None:
    assert [offsets.parse_time(text) for text in ("latest", "-3", "earliest-local", "17")] == [-1, -3, -4, 17]
    with pytest.raises(offsets.Terse, match="Malformed time argument soon"):
        offsets.parse_time("soon")


# -- groups


def test_groups(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.create("t", 2)
    broker.append("t", 0, (None, b"x"), (None, b"y"))
    broker.groups["g"] = ("Empty", "consumer")
    broker.groups["c"] = ("Stable", "connect")
    broker.committed["g"] = {("t", 0): 1, ("t", 1): 0}
    assert run(capsys, "groups", "--list")[1] == "c\ng\n" or run(capsys, "groups", "--list")[1] == "g\n"
    code, out, err = run(capsys, "groups", "--describe", "--group", "g")
    rows = [line.split() for line in out.splitlines() if line]
    assert rows[1:] == [
        ["g", "t", "0", "1", "2", "1", "-", "-", "-"],
        ["g", "t", "1", "0", "0", "0", "-", "-", "-"],
    ]
    assert code == 0 and err == "\nConsumer group 'g' has no active members.\n"
    assert run(capsys, "groups", "--describe", "--group", "no") == (
        0,
        "\nError: Executing consumer group command failed due to "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: Group no not found.\n",
        "",
    )


def test_the_listing_of_all_kinds_of_groups(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.groups |= {"g": ("Empty", "consumer"), "c": ("Stable", "connect")}
    _, out, _ = run(capsys, "groups", "--list", "--all-types")
    assert [line.split() for line in out.splitlines()] == [
        ["GROUP", "TYPE", "PROTOCOL"],
        ["c", "Classic", "connect"],
        ["g", "Classic", "consumer"],
    ]
    assert run(capsys, "groups", "--list", "--consumer")[1].split()[3::3] == ["g"]
    assert run(capsys, "groups", "--list", "--protocol", "connect")[1].split()[3::3] == ["c"]


@pytest.mark.parametrize(
    ("scenario", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 3),
        (["--to-offset", "2"], 2),
        (["--to-offset", "99"], 3),
        (["--shift-by", "-1"], 0),
        (["--shift-by", "1"], 2),
        (["--to-current"], 1),
    ],
)
def test_resets(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], scenario: list[str], offset: int
) -> None:
    broker.create("t")
    broker.append("t", 0, (None, b"x"), (None, b"y"), (None, b"z"))
    broker.committed["g"] = {("t", 0): 1}
    broker.groups["g"] = ("Empty", "consumer")
    how = ["--reset-offsets", "--group", "g", "--topic", "t", *scenario]
    _, out, _ = run(capsys, "groups", *how, "--dry-run")
    assert out.split()[4:] == ["g", "t", "0", str(offset)] and broker.committed["g"] == {("t", 0): 1}
    _, out, _ = run(capsys, "groups", *how, "--execute", "--export")
    assert out == f"t,0,{offset}\n\n" and broker.committed["g"] == {("t", 0): offset}


def test_a_plan_from_a_file(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker.create("t", 2)
    plan = tmp_path_factory.mktemp("plans") / "plan.csv"
    plan.write_text('"t",0,0\nt,1,0\n')
    run(capsys, "groups", "--reset-offsets", "--group", "g", "--from-file", str(plan), "--execute")
    assert broker.committed["g"] == {("t", 0): 0, ("t", 1): 0}
    plan.write_text("other,t,0,0\n")
    _, out, _ = run(
        capsys, "groups", "--reset-offsets", "--group", "g", "--from-file", str(plan), "--dry-run"
    )
    assert "No reset plan for group g found" in out


def test_active_groups_are_not_reset(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.groups["g"] = ("Stable", "consumer")
    _, out, _ = run(
        capsys, "groups", "--reset-offsets", "--group", "g", "--to-latest", "--all-topics", "--dry-run"
    )
    assert (
        "Error: Assignments can only be reset if the group 'g' is inactive, but the current state is Stable."
        in out
    )


def test_groups_that_are_deleted(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.groups["g"] = ("Empty", "consumer")
    _, out, _ = run(capsys, "groups", "--delete", "--group", "g")
    assert out == "Deletion of requested consumer groups ('g') was successful.\n"
    _, out, _ = run(capsys, "groups", "--delete", "--group", "g")
    assert (
        "* Group 'g' could not be deleted due to: org.apache.kafka.common.errors.GroupIdNotFoundException:"
        in out
    )


def test_csv_is_quoted_as_kafkas_tool_does() -> None:
    texts = ["short-name_1.2", "", 'a"b', "with space", "a,b", "x" * 24, "x" * 25]
    assert [groups_reset.quoted(text) for text in texts] == [
        "short-name_1.2",
        '""',
        '"a""b"',
        '"with space"',
        '"a,b"',
        "x" * 24,
        f'"{"x" * 25}"',
    ]


def test_states_and_types() -> None:
    assert groups.parse_states("stable, EMPTY") == ["Stable", "Empty"]
    assert groups.parse_types("Classic,consumer") == ["Classic", "Consumer"]
    with pytest.raises(ValueError, match="Invalid state list 'gone'"):
        groups.parse_states("gone")
    with pytest.raises(ValueError, match="Invalid types list 'share'"):
        groups.parse_types("share")


@pytest.mark.parametrize(("expression", "said"), [("a.*", "is valid."), ("(", "is invalid: ")])
def test_regular_expressions_are_checked_without_a_broker(
    capsys: pytest.CaptureFixture[str], expression: str, said: str
) -> None:
    assert tools.main("groups", ["--validate-regex", expression]) == 0
    assert capsys.readouterr().out.startswith(f"The regular expression `{expression}` {said}")


# -- configs


def test_pairs_of_configs_with_brackets() -> None:
    split = configs_resources.split_outside_brackets
    assert split("a=1,b=[x,y],c=3", ",") == ["a=1", "b=[x,y]", "c=3"]
    assert split("a=[1,2]", ",") == ["a=[1,2]"]
    assert split("k=[a=b]", "=") == ["k", "[a=b]"]
    assert split("a,", ",") == ["a"]


def test_scram_credentials() -> None:
    parse = configs_quotas.parse_credential
    assert parse("SCRAM-SHA-256", "iterations=8192,password=a,b") == (8192, "a,b")
    assert parse("SCRAM-SHA-512", "password=x") == (4096, "x")
    with pytest.raises(
        ValueError, match="Iterations 1 is less than the minimum 4096 required for SCRAM-SHA-256"
    ):
        parse("SCRAM-SHA-256", "iterations=1,password=x")
    with pytest.raises(ValueError, match="Invalid credential property SCRAM_SHA_256=nope"):
        parse("SCRAM-SHA-256", "nope")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--describe"], "At least one entity type must be specified"),
        (
            ["--describe", "--entity-type", "foo"],
            "Invalid entity type foo, the entity type must be one of topics, ",
        ),
        (
            ["--describe", "--topic", "t", "--entity-name", "x"],
            "--entity-{type,name,default} should not be used",
        ),
        (["--describe", "--topic", "t", "--group", "g"], "Only 'users' and 'clients' entity types may be"),
        (["--alter", "--topic", "t"], "At least one of --add-config, --add-config-file, or --delete-config"),
        (
            ["--alter", "--entity-type", "topics", "--add-config", "a=1"],
            "An entity name must be specified with --alter",
        ),
        (
            ["--alter", "--broker", "x", "--add-config", "a=1"],
            "The entity name for brokers must be a valid integer",
        ),
        (["--alter", "--topic", "t", "--add-config", "a"], "requirement failed: Invalid entity config"),
        (["--alter", "--topic", "t", "--add-config", "a b=1"], "Invalid character found for config key: a b"),
        (
            ["--alter", "--user", "u", "--add-config", "x=1"],
            "Only quota and SCRAM credential configs can be added",
        ),
        (
            ["--alter", "--client", "c", "--delete-config", "x"],
            "Only quota configs can be deleted for 'clients'",
        ),
    ],
)
def test_configs_command_lines_that_are_refused(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, "configs", *arguments)
    assert (code, out) == (1, "") and err.startswith(said)
