from __future__ import annotations

import json
from pathlib import Path

from pykafkad import errors

FACTS = json.loads((Path(__file__).parents[2] / "protocol" / "errors.json").read_text())


def test_every_error_code_of_kafka_has_its_constant() -> None:
    assert {code: name for code, name, *_ in FACTS} == errors.NAMES
    assert all(getattr(errors, name) == code for code, name, *_ in FACTS)
    assert len(errors.NAMES) == 135


def test_messages_belong_to_codes() -> None:
    assert set(errors.MESSAGES) < set(errors.NAMES)
    assert errors.NONE not in errors.MESSAGES


def test_an_error_without_words_of_its_own_says_kafkas() -> None:
    assert errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION).text == (
        "This server does not host this topic-partition."
    )
    assert errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, "gone").text == "gone"
    assert errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, "").text == ""


def test_an_error_shows_its_name() -> None:
    assert str(errors.KafkaError(errors.INVALID_CONFIG, "no")) == "INVALID_CONFIG: no"
    assert str(errors.KafkaError(errors.INVALID_CONFIG)) == "INVALID_CONFIG"
    assert str(errors.KafkaError(9999)) == "9999"
