"""Answers as whoever asked reads them: the header before the body, and what is no answer to the question."""

from __future__ import annotations

import pytest

from pykafkad import errors, messages
from pykafkad.net.answers import WrongAnswer, read_answer, response_type

HEARTBEAT = messages.HeartbeatResponse  # flexible since 4


def answer(correlation_id: int, body: bytes, tags: bytes = b"") -> bytes:
    return correlation_id.to_bytes(4, "big", signed=True) + tags + body


def body(version: int, code: int = errors.REBALANCE_IN_PROGRESS) -> bytes:
    return bytes(HEARTBEAT(error_code=code).encode(version))


@pytest.mark.parametrize("correlation_id", [0, 7, -1, (1 << 31) - 1])
def test_the_body_is_behind_the_number_of_the_request(correlation_id: int) -> None:
    told = read_answer(HEARTBEAT, 3, correlation_id, answer(correlation_id, body(3)))
    assert told.error_code == errors.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    "tags",
    [
        b"\0",
        b"\1" + b"\5" + b"\2ab",
        b"\2" + b"\0\0" + b"\x7f\1x",
        b"\1" + b"\x80\1" + b"\x80\1" + b"x" * 128,
        b"\1" + b"\0" + b"\xac\2" + b"y" * 300,
        b"\x82\0" + b"\0\1z" * 2,
    ],
)
def test_tagged_fields_of_the_header_are_passed_over(tags: bytes) -> None:
    told = read_answer(HEARTBEAT, 4, 7, answer(7, body(4), tags))
    assert told.error_code == errors.REBALANCE_IN_PROGRESS


def test_it_may_lie_within_other_bytes() -> None:
    frame = b"before" + answer(7, body(4), b"\0") + b"behind"
    assert read_answer(HEARTBEAT, 4, 7, frame, 6, len(frame) - 6).error_code == errors.REBALANCE_IN_PROGRESS


def test_an_answer_to_another_request_is_told() -> None:
    with pytest.raises(WrongAnswer, match="the answer to 8 came for request 7"):
        read_answer(HEARTBEAT, 3, 7, answer(8, body(3)))


def test_which_versions_there_are_is_told_without_tags_and_a_refusal_in_version_0() -> None:
    kind = messages.ApiVersionsResponse
    rows = [kind.ApiVersion(api_key=3, min_version=1, max_version=9)]
    told = read_answer(kind, 4, 1, answer(1, bytes(kind(api_keys=rows).encode(4))))
    assert [(row.api_key, row.max_version) for row in told.api_keys] == [(3, 9)]
    refused = kind(error_code=errors.UNSUPPORTED_VERSION, api_keys=rows)
    told = read_answer(kind, 4, 1, answer(1, bytes(refused.encode(0))))
    assert told.error_code == errors.UNSUPPORTED_VERSION and len(told.api_keys) == 1


def test_an_error_that_looks_alike_is_read_in_its_own_version() -> None:
    told = read_answer(HEARTBEAT, 4, 7, answer(7, body(4, errors.UNSUPPORTED_VERSION), b"\0"))
    assert told.error_code == errors.UNSUPPORTED_VERSION


def test_the_type_of_an_answer_is_that_of_its_request() -> None:
    assert response_type(messages.HeartbeatRequest()) is HEARTBEAT
