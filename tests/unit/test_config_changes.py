"""Altering configs: what is written, when it takes effect, what is refused; and that a restart finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, logs, messages
from pykafkad.cluster.config_changes import Alteration, broker_texts
from pykafkad.cluster.publishing import GROUPS
from pykafkad.errors import KafkaError
from pykafkad.slices import finish
from tests.unit.config_kit import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    alter_all,
    altered,
    handler,
    open_configurable,
    replace,
)
from tests.unit.metadata_fakes import FakeContext, Later, creatable, create

OK = (0, None)


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    made = open_configurable(tmp_path)
    create(made, creatable("orders", 2), creatable("bills"))
    return made


def test_a_topics_partitions_follow_its_configs(broker: Any) -> None:
    assert alter(broker, TOPIC, "orders", ("retention.ms", SET, "7"), ("max.message.bytes", SET, "100")) == OK
    assert broker.image.topics["orders"].configs == {"retention.ms": "7", "max.message.bytes": "100"}
    assert broker.storage.configs["orders"]["max.message.bytes"] == 100
    assert broker.storage.events[-1] == "configure orders"
    assert alter(broker, TOPIC, "orders", ("max.message.bytes", DELETE, None)) == OK
    assert broker.storage.configs["orders"]["max.message.bytes"] == 1048588


def test_what_is_as_it_was_is_not_written(broker: Any) -> None:
    alter(broker, TOPIC, "orders", ("retention.ms", SET, "7"))
    before = broker.image.offset
    assert alter(broker, TOPIC, "orders", ("retention.ms", SET, "7"), ("flush.ms", DELETE, None)) == OK
    assert broker.image.offset == before


def test_a_look_changes_nothing(broker: Any) -> None:
    before = broker.image.offset
    resource = altered(TOPIC, "orders", ("retention.ms", SET, "7"))
    assert alter_all(broker, resource, validate_only=True) == [OK]
    assert broker.image.offset == before and broker.image.topics["orders"].configs == {}


def test_each_resource_is_taken_or_refused_for_itself_and_as_a_whole(broker: Any) -> None:
    results = alter_all(
        broker,
        altered(TOPIC, "orders", ("retention.ms", SET, "7")),
        altered(TOPIC, "bills", ("retention.ms", SET, "7"), ("flush.ms", SET, "x")),
    )
    assert results[0] == OK
    assert results[1] == (
        errors.INVALID_CONFIG,
        "Invalid value x for configuration flush.ms: Not a number of type LONG",
    )
    assert broker.image.topics["orders"].configs == {"retention.ms": "7"}
    assert broker.image.topics["bills"].configs == {}


def test_lists_grow_and_shrink(broker: Any) -> None:
    def policy() -> str:
        return str(broker.image.topics["orders"].configs["cleanup.policy"])

    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, "delete,,", "delete"),
    ):
        assert alter(broker, TOPIC, "orders", ("cleanup.policy", operation, value)) == OK
        assert policy() == expected


def test_changes_under_way_see_each_other(tmp_path: Path) -> None:
    later = Later()
    broker = open_configurable(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    answers = []
    for value in ("compact", "delete"):
        context = FakeContext(1)
        request = messages.IncrementalAlterConfigsRequest(
            resources=[
                altered(TOPIC, "orders", ("cleanup.policy", (SUBTRACT, APPEND)[value == "compact"], value))
            ]
        )
        assert finish(handler("incremental_alter_configs").handle(broker, request, context)) is context
        answers.append(context)
    assert not any(context.answers for context in answers), "answered before it is durable"
    later.all()
    assert [context.answers[0].responses[0].error_code for context in answers] == [0, 0]
    assert broker.image.topics["orders"].configs == {"cleanup.policy": "compact"}


def test_nothing_counts_where_the_disk_fails(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        broker.controller, "commit", lambda records, done: done(KafkaError(errors.KAFKA_STORAGE_ERROR, "no"))
    )
    assert alter(broker, TOPIC, "orders", ("retention.ms", SET, "7")) == (errors.KAFKA_STORAGE_ERROR, "no")
    assert broker.controller.topic_config("orders")["retention.ms"] == 604800000


def test_configs_as_a_whole_drop_what_is_not_named(broker: Any) -> None:
    assert replace(broker, TOPIC, "orders", {"retention.ms": "1", "flush.ms": "2"}) == [OK]
    assert replace(broker, TOPIC, "orders", {"flush.ms": "3"}) == [OK]
    assert broker.image.topics["orders"].configs == {"flush.ms": "3"}
    assert replace(broker, TOPIC, "orders", {}) == [OK]
    assert broker.image.topics["orders"].configs == {}


def test_a_resource_twice_is_refused_twice(broker: Any) -> None:
    refused = (errors.INVALID_REQUEST, "Each resource must appear at most once.")
    assert replace(broker, TOPIC, "orders", {"flush.ms": "1"}, times=2) == [refused, refused]
    twice = [altered(TOPIC, "orders", ("flush.ms", SET, value)) for value in ("1", "2")]
    other = altered(TOPIC, "bills", ("flush.ms", SET, "3"))
    assert alter_all(broker, twice[0], other, twice[1]) == [refused, OK, refused]
    assert broker.image.topics["orders"].configs == {}


NO_TOPIC = "The topic 'nosuch' does not exist."


@pytest.mark.parametrize(
    ("resource", "code", "why"),
    [
        ((TOPIC, ""), errors.INVALID_REQUEST, "Default topic resources are not allowed."),
        ((TOPIC, "nosuch"), errors.UNKNOWN_TOPIC_OR_PARTITION, NO_TOPIC),
        ((TOPIC, "a b"), errors.INVALID_TOPIC_EXCEPTION, None),
        ((3, "x"), errors.INVALID_REQUEST, "Unknown resource type 3"),
        ((BROKER, "2"), errors.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
    ],
)
def test_what_has_no_configs_is_refused_whichever_way_they_are_altered(
    broker: Any, resource: tuple[int, str], code: int, why: str | None
) -> None:
    before = broker.image.offset
    (replaced,) = replace(broker, *resource, {"flush.ms": "1"})
    changed = alter(broker, *resource, ("flush.ms", SET, "1"))
    assert replaced == changed and changed[0] == code and broker.image.offset == before
    assert why is None or changed[1] == why


def test_a_key_is_altered_once_in_a_request(broker: Any) -> None:
    twice = ("flush.ms", SET, "1"), ("flush.ms", DELETE, None)
    assert alter(broker, TOPIC, "orders", *twice) == (
        errors.INVALID_REQUEST,
        "Error due to duplicate config keys",
    )
    nulls = (("flush.ms", SET, None), ("retention.ms", DELETE, None), ("cleanup.policy", APPEND, None))
    why = "Null value not supported for : flush.ms, cleanup.policy"
    assert alter(broker, TOPIC, "orders", *nulls) == (errors.INVALID_REQUEST, why)
    assert broker.image.topics["orders"].configs == {}


def test_loggers_are_a_brokers_own_and_have_no_whole(broker: Any) -> None:
    why = "Unexpected node id. Expected 1, but received 2"
    assert alter(broker, BROKER_LOGGER, "2", ("root", SET, "INFO")) == (errors.INVALID_REQUEST, why)
    refused = (errors.INVALID_REQUEST, "Unknown resource type 8")
    assert replace(broker, BROKER_LOGGER, "1", {"root": "INFO"}) == [refused]


@pytest.mark.parametrize(
    ("operation", "word"), [(APPEND, "Can't APPEND to key"), (SUBTRACT, "Can't SUBTRACT to key")]
)
@pytest.mark.parametrize("key", ["retention.ms", "nosuch"])
def test_only_lists_grow_and_shrink(broker: Any, key: str, operation: int, word: str) -> None:
    said = f"{word} {key} because its type is not LIST."
    assert alter(broker, TOPIC, "orders", (key, operation, "1")) == (errors.INVALID_CONFIG, said)


@pytest.mark.parametrize(
    ("present", "operation", "value", "expected"),
    [
        (None, APPEND, "a,b", "org.apache.kafka.common.metrics.JmxReporter,a,b"),
        ("", APPEND, "a", "a"),
        ("a,b", APPEND, "b,c,a", "a,b,c"),
        ("a", APPEND, "", "a,"),  # as Java's split says
        ("a", APPEND, ",", "a"),
        ("a,b,a", SUBTRACT, "a", "b,a"),
        ("a,b", SUBTRACT, "c,b,,", "a"),
        ("a", SUBTRACT, "a", ""),
        ("x", SET, "a", "a"),
        ("x", DELETE, None, None),
    ],
)
def test_a_layer_as_the_broker_looks_at_it(
    present: str | None, operation: int, value: str | None, expected: str | None
) -> None:
    key = "metric.reporters"
    stored = {} if present is None else {key: present}
    found = finish(broker_texts({**stored, "other": "1"}, [(key, operation, value)]))
    assert found == ({"other": "1"} if expected is None else {key: expected, "other": "1"})


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        (("x", APPEND, "1"), errors.INVALID_CONFIG, "Unknown config name: x"),
        (
            ("num.io.threads", APPEND, "1"),
            errors.INVALID_CONFIG,
            "Config value append is not allowed for config key: num.io.threads",
        ),
        (
            ("num.io.threads", SUBTRACT, "1"),
            errors.INVALID_CONFIG,
            "Config value subtract is not allowed for config key: num.io.threads",
        ),
        (("num.io.threads", 4, "1"), errors.INVALID_REQUEST, "Unknown operations type 4"),
    ],
)
def test_what_a_broker_does_to_its_layer_only_it_may_refuse(
    broker: Any, change: Any, code: int, why: str
) -> None:
    assert alter(broker, BROKER, "1", change) == (code, why)


def test_on_zookeeper_refusals_are_those_of_3_9(tmp_path: Path) -> None:
    """It is looked first whether the topic exists, and there are no groups' configs."""
    broker = open_configurable(tmp_path, zookeeper_connect="localhost:1", broker_id="1")
    create(broker, creatable("orders"))
    refused = errors.INVALID_REQUEST
    metrics = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
    assert alter(broker, CLIENT_METRICS, "m", ("interval.ms", SET, "1000")) == (refused, metrics)
    assert alter(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == (
        refused,
        "Unknown resource type 32",
    )
    assert alter(broker, TOPIC, "orders", ("retention.ms", SET, "7")) == OK
    absent = alter(broker, TOPIC, "nosuch", ("flush.ms", SET, "x"))
    assert absent == (errors.UNKNOWN_TOPIC_OR_PARTITION, NO_TOPIC)
    assert alter(broker, TOPIC, "a b", ("flush.ms", SET, "1"))[0] == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(broker, TOPIC, "orders", ("flush.ms", SET, "x")) == (
        errors.INVALID_CONFIG,
        "Invalid config value for resource ConfigResource(type=TOPIC, name='orders'):"
        " Invalid value x for configuration flush.ms: Not a number of type LONG",
    )
    unknown = alter(broker, TOPIC, "orders", ("nosuch", SET, "x"))
    assert unknown == (errors.INVALID_CONFIG, "Unknown topic config name: nosuch")
    for operation, word in ((APPEND, "append"), (SUBTRACT, "subtract")):
        said = f"Config value {word} is not allowed for config key: flush.ms"
        assert alter(broker, TOPIC, "orders", ("flush.ms", operation, "1")) == (errors.INVALID_CONFIG, said)
    assert broker.image.topics["orders"].configs == {"retention.ms": "7"}


def test_an_error_that_nobody_thought_of_is_told(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def broken(wanted: Any, *arguments: Any) -> Any:
        yield
        raise RuntimeError("our mistake")

    with monkeypatch.context() as patch:
        patch.setattr(broker.config_changes, "look", broken)
        broker.config_changes.alter([Alteration(TOPIC, "orders", is_legacy=False)], False, told.append)
    assert [type(each) for each in told] == [RuntimeError]
    assert alter(broker, TOPIC, "orders", ("flush.ms", SET, "1")) == OK, "the next one has its turn"


def test_an_operation_that_does_not_exist_fails_the_request(broker: Any) -> None:
    good, bad = (
        altered(TOPIC, "orders", ("flush.ms", SET, "1")),
        altered(TOPIC, "bills", ("flush.ms", 9, "1")),
    )
    assert alter_all(broker, good, bad) == [(errors.UNKNOWN_SERVER_ERROR, None)] * 2
    assert broker.image.topics["orders"].configs == {}


def test_a_topic_on_its_way_out_gets_no_configs(tmp_path: Path) -> None:
    later = Later()
    broker = open_configurable(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    broker.controller.delete_topics([broker.image.topics["orders"].id], lambda error: None)
    assert alter(broker, TOPIC, "orders", ("flush.ms", SET, "1"))[0] == errors.UNKNOWN_TOPIC_OR_PARTITION
    later.all()
    create(broker, creatable("orders"))
    later.all()
    assert broker.image.topics["orders"].configs == {}


def test_min_insync_replicas_makes_eligibility_be_found_anew(broker: Any) -> None:
    broker.image.topics["orders"].partitions[0].eligible_leader_replicas = [1]
    assert alter(broker, TOPIC, "orders", ("min.insync.replicas", SET, "2")) == OK
    assert broker.image.topics["orders"].partitions[0].eligible_leader_replicas == []


@pytest.mark.parametrize(("resource", "word"), [("", "Cluster"), ("1", "Broker")])
def test_min_insync_replicas_cannot_be_unset_for_all_nor_be_a_brokers(
    broker: Any, resource: str, word: str
) -> None:
    code, message = alter(broker, BROKER, resource, ("min.insync.replicas", DELETE, None))
    assert code == errors.INVALID_CONFIG and message is not None and message.startswith(f"{word}-level")


def test_more_records_than_a_batch_may_have_are_refused(broker: Any) -> None:
    operations = [(f"custom.{number}", SET, "x") for number in range(10_001)]
    code, message = alter(broker, BROKER, "", *operations)
    assert (code, message) == (
        errors.POLICY_VIOLATION,
        "Unable to perform excessively large batch operation.",
    )
    assert broker.image.broker_configs("") == {"min.insync.replicas": "1"}


def test_more_bytes_than_a_batch_may_have_are_refused(broker: Any) -> None:
    big = [(f"custom.{number}", SET, "x" * 32_000) for number in range(300)]
    assert alter(broker, BROKER, "", *big) == (errors.UNKNOWN_SERVER_ERROR, None)
    assert alter(broker, BROKER, "", *big[:200]) == OK
    assert len(broker.image.broker_configs("")) == 201


def test_changes_that_are_too_much_together_go_one_after_the_other(tmp_path: Path) -> None:
    later = Later()
    broker = open_configurable(tmp_path, later)
    contexts = [FakeContext(1) for _ in range(4)]
    for turn, context in enumerate(contexts):
        big = [(f"custom.{turn}.{number}", SET, "x" * 32_000) for number in range(120)]
        request = messages.IncrementalAlterConfigsRequest(resources=[altered(BROKER, "", *big)])
        finish(handler("incremental_alter_configs").handle(broker, request, context))
    later.all()
    assert [context.answers[0].responses[0].error_code for context in contexts] == [0] * 4
    assert len(broker.image.broker_configs("")) == 481


def test_groups_and_subscriptions_are_kept_over_a_restart(broker: Any, tmp_path: Path) -> None:
    assert alter(broker, GROUP, "readers", ("consumer.session.timeout.ms", SET, "50000")) == OK
    assert alter(broker, CLIENT_METRICS, "fast", ("interval.ms", SET, "1000")) == OK
    assert alter(broker, TOPIC, "orders", ("flush.ms", SET, "1")) == OK
    assert alter(broker, BROKER, "1", ("log.segment.bytes", SET, "2000000")) == OK
    assert broker.telemetry.subscriptions["fast"].interval_ms == 1000
    broker.controller.stop()
    again = open_configurable(tmp_path)
    assert again.image.configs[GROUP, "readers"] == {"consumer.session.timeout.ms": "50000"}
    assert again.telemetry.subscriptions["fast"].interval_ms == 1000
    assert again.controller.topic_config("orders")["flush.ms"] == 1
    assert again.controller.topic_config("orders")["segment.bytes"] == 2000000
    assert again.config["log.segment.bytes"] == 2000000


# -- the broker's own


def test_a_brokers_config_counts_at_once_for_it_and_its_topics(broker: Any) -> None:
    told: list[set[str]] = []
    broker.controller.publishers.add(GROUPS, lambda delta: told.append(delta.broker_keys))
    alter(broker, TOPIC, "bills", ("max.message.bytes", SET, "5"))
    assert alter(broker, BROKER, "", ("message.max.bytes", SET, "100"), ("max.connections", SET, "7")) == OK
    assert told == [set(), {"message.max.bytes", "max.connections"}]
    assert (broker.config["message.max.bytes"], broker.config["max.connections"]) == (100, 7)
    assert broker.storage.configs["orders"]["max.message.bytes"] == 100
    assert broker.storage.configs["bills"]["max.message.bytes"] == 5
    assert alter(broker, BROKER, "1", ("message.max.bytes", SET, "200")) == OK
    assert broker.storage.configs["orders"]["max.message.bytes"] == 200
    assert alter(broker, BROKER, "1", ("message.max.bytes", DELETE, None)) == OK
    assert broker.storage.configs["orders"]["max.message.bytes"] == 100
    assert alter(broker, BROKER, "", ("message.max.bytes", DELETE, None)) == OK
    assert broker.storage.configs["orders"]["max.message.bytes"] == 1048588


def test_topics_are_left_alone_by_what_does_not_concern_them(broker: Any) -> None:
    before = list(broker.storage.events)
    assert alter(broker, BROKER, "", ("max.connections", SET, "7")) == OK
    assert broker.storage.events == [*before, "reconfigure"], "which goes by the broker's config"


def test_a_topic_goes_by_the_last_of_its_configs(broker: Any) -> None:
    for value in ("7", "8"):
        assert alter(broker, TOPIC, "orders", ("retention.ms", SET, value)) == OK
        assert broker.storage.configs["orders"]["retention.ms"] == int(value)


def test_new_topics_are_checked_against_what_counts_now(broker: Any) -> None:
    assert alter(broker, BROKER, "1", ("log.cleaner.max.compaction.lag.ms", SET, "5")) == OK
    (planned,) = create(broker, creatable("late", min_compaction_lag_ms="6"))
    assert planned.error is not None and planned.error.code == errors.INVALID_CONFIG


@pytest.mark.parametrize(
    ("resource", "key", "value", "why"),
    [
        ("1", "node.id", "2", "Cannot update these configs dynamically: [node.id]"),
        (
            "1",
            "ssl.keystore.location",
            "/x",
            "These security configs can be dynamically updated only per-listener using the listener prefix:"
            " [ssl.keystore.location]",
        ),
        (
            "",
            "listeners",
            "PLAINTEXT://:1",
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            "1",
            "log.retention.ms",
            "0",
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            "1",
            "num.io.threads",
            "17",
            "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation"
            " failed for num.io.threads=17, value should not be greater than double the current value 8 for"
            " configuration Invalid dynamic configuration",
        ),
        (
            "1",
            "max.connections.per.ip.overrides",
            "abc",
            "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 3",
        ),
        (
            "1",
            "principal.builder.class",
            "x",
            "Invalid value x for configuration principal.builder.class: Class x could not be found.",
        ),
    ],
)
def test_what_a_broker_cannot_be_is_refused_and_changes_nothing(
    broker: Any, resource: str, key: str, value: str, why: str
) -> None:
    before = broker.image.offset
    assert alter(broker, BROKER, resource, (key, SET, value)) == (errors.INVALID_REQUEST, why)
    assert broker.image.offset == before and broker.config.dynamic == {"min.insync.replicas": "1"}


def test_a_pool_may_at_most_double_from_where_it_is_now(broker: Any) -> None:
    assert alter(broker, BROKER, "1", ("num.io.threads", SET, "16")) == OK
    assert alter(broker, BROKER, "1", ("num.io.threads", SET, "32")) == OK
    assert alter(broker, BROKER, "1", ("num.io.threads", SET, "8"))[0] == errors.INVALID_REQUEST


def test_what_another_broker_stored_and_cannot_count_is_ignored(broker: Any, tmp_path: Path) -> None:
    from pykafkad.cluster.metadata_records import config_record

    bad = {"log.retention.ms": "x", "node.id": "7", "ssl.key.password": "x", "message.max.bytes": "100"}
    records = [(config_record(BROKER, "1", key, value), 0) for key, value in bad.items()]
    broker.controller.commit(records, lambda error: None)
    broker.controller.stop()
    again = open_configurable(tmp_path)
    assert again.controller.dynamic.of_this == {"message.max.bytes": "100"}
    assert again.config["message.max.bytes"] == 100 and again.config["node.id"] == 1
    assert alter(again, BROKER, "1", ("log.retention.ms", SET, "5")) == OK
    assert again.config["log.retention.ms"] == 5


# -- loggers


def test_a_loggers_level_counts_at_once_and_is_not_stored(broker: Any) -> None:
    logger = logs.logger("net")
    before = broker.image.offset
    try:
        assert alter(broker, BROKER_LOGGER, "1", ("net", SET, "TRACE"), ("root", SET, "ERROR")) == OK
        assert logger.debugs and logs.levels()["net"] == "TRACE" and logs.levels()["root"] == "ERROR"
        assert logs.logger("made-now").level == logs.ERROR
        assert alter(broker, BROKER_LOGGER, "1", ("net", DELETE, None)) == OK
        assert logs.levels()["net"] == "ERROR"
        assert broker.image.offset == before
    finally:
        logs.set_level("info")
    assert logs.levels()["net"] == "INFO"


def test_a_look_at_a_loggers_level_changes_nothing(broker: Any) -> None:
    resource = altered(BROKER_LOGGER, "1", ("root", SET, "ERROR"))
    assert alter_all(broker, resource, validate_only=True) == [OK]
    assert logs.levels()["root"] == "INFO"


def test_secrets_are_not_logged(broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    name = "listener.name.plaintext.ssl.keystore.password"
    assert alter(broker, BROKER, "1", (name, SET, "secret-1"), ("custom.key", SET, "secret-2")) == OK
    said = capsys.readouterr().err
    assert name in said and "secret" not in said


def test_keys_that_change_nothing_are_taken_and_named(
    broker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = (("num.io.threads", SET, "9"), ("log.retention.ms", SET, "9"), ("custom.key", SET, "9"))
    assert alter(broker, BROKER, "", *keys) == OK
    assert (
        alter(broker, TOPIC, "orders", ("remote.log.copy.disable", SET, "true"), ("flush.ms", SET, "9")) == OK
    )
    assert [
        line.partition("WARN ")[2] for line in capsys.readouterr().err.splitlines() if "WARN" in line
    ] == [
        "[config] These configurations '[num.io.threads]' are known, but change nothing here.",
        "[config] These configurations '[remote.log.copy.disable]' are known, but change nothing here.",
    ]
    assert alter(broker, BROKER, "", ("num.io.threads", DELETE, None)) == OK
    assert "WARN" not in capsys.readouterr().err


def test_custom_keys_are_kept_and_shown_and_looked_at_by_nobody(broker: Any) -> None:
    assert alter(broker, BROKER, "1", ("custom.key", SET, "x"), ("message.max.bytes", SET, "100")) == OK
    dynamic = broker.controller.dynamic
    assert (dynamic.of_this, dynamic.custom_of_this) == ({"message.max.bytes": "100"}, {"custom.key": "x"})


def test_a_line_on_very_many_keys_names_some(broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert alter(broker, BROKER, "1", *((f"custom.{number}", SET, "x") for number in range(250))) == OK
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "Updating node 1" in line)
    assert line.count("custom.") == 100 and line.endswith(" and 150 more")
