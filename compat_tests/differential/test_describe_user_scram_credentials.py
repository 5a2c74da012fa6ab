"""DescribeUserScramCredentials when no user has any."""

from __future__ import annotations

from compat_tests.differential.pair import Pair
from pykafkad import errors
from pykafkad.messages import DescribeUserScramCredentialsRequest

UserName = DescribeUserScramCredentialsRequest.UserName


def asked(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


def test_all_users(pair: Pair) -> None:
    assert not pair.same(DescribeUserScramCredentialsRequest(users=None), 0).results
    assert not pair.same(asked(), 0).results


def test_users_without_credentials(pair: Pair) -> None:
    answer = pair.same(asked("alice", "bob"), 0)
    assert {result.error_code for result in answer.results} == {errors.RESOURCE_NOT_FOUND}


def test_a_user_asked_for_twice(pair: Pair) -> None:
    answer = pair.same(asked("alice", "bob", "alice", ""), 0)
    assert errors.DUPLICATE_RESOURCE in {result.error_code for result in answer.results}


def test_a_text_that_no_answer_can_carry(pair: Pair) -> None:
    pair.same(asked("u" * 32_760, "bob"), 0)
