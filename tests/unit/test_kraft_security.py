"""Beside controllers: who answers what is asked about ACLs, users and tokens, and what is refused here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster.image import Image
from pykafkad.handlers import APIS as OF_A_SINGLE_NODE
from pykafkad.handlers import (
    describe_acls,
    describe_user_scram_credentials,
    forwarded,
    kraft_apis,
    kraft_configs,
    kraft_security,
)
from pykafkad.pure.authorization import Principal
from pykafkad.slices import finish

ACL_CHANGES, USER_CHANGES, TOKENS = (30, 31), (51,), (38, 39, 40, 41)


def answer(request: Any, version: int) -> Any:
    context = SimpleNamespace(version=version, principal=Principal("User", "ann"))
    return kraft_security.handle(cast("Any", None), request, cast("Any", context))


def test_what_a_single_node_does_not_serve_is_served_at_kafkas_versions() -> None:
    added = kraft_apis.APIS.keys() - OF_A_SINGLE_NODE.keys()
    assert added == {*USER_CHANGES, *TOKENS}
    for key in added:
        api = kraft_apis.APIS[key]
        request = getattr(messages, f"{api.name}Request")
        assert (request.api_key, api.is_advertised) == (key, True)
        assert api.versions == (request.min_version, request.max_version)


def test_changes_are_forwarded_and_the_rest_is_answered_here() -> None:
    assert {kraft_apis.APIS[key].load() for key in (19, 57, *ACL_CHANGES, *USER_CHANGES)} == {forwarded}
    assert {kraft_apis.APIS[key].load() for key in (33, 44)} == {kraft_configs}
    assert {kraft_apis.APIS[key].load() for key in TOKENS} == {kraft_security}
    assert kraft_apis.APIS[29].load() is describe_acls


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_is_refused_with_whom_it_would_be_for(version: int) -> None:
    asked = messages.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    found = answer(asked, version)
    assert found.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (found.principal_type, found.principal_name, found.max_timestamp_ms) == ("User", "ann", -1)
    if version >= 3:
        asked.owner_principal_type, asked.owner_principal_name = "User", "bob"
        found = answer(asked, version)
        assert (found.principal_name, found.token_requester_principal_name) == ("bob", "ann")
    assert type(found).decode(bytes(found.encode(version)), version) == found


@pytest.mark.parametrize("name", ["Renew", "Expire", "Describe"])
def test_tokens_cannot_be_told_of_or_prolonged(name: str) -> None:
    found = answer(getattr(messages, f"{name}DelegationTokenRequest")(), 1)
    assert type(found).__name__ == f"{name}DelegationTokenResponse"
    assert found.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert getattr(found, "expiry_timestamp_ms", -1) == -1


def test_users_that_are_there_are_told_with_an_empty_text() -> None:
    """As Kafka does."""
    image = Image()
    image.apply(messages.UserScramCredentialRecord(name="ann", mechanism=2, iterations=4096))
    asked = messages.DescribeUserScramCredentialsRequest(users=None)
    work = describe_user_scram_credentials.handle(
        cast("Any", SimpleNamespace(image=image)), asked, cast("Any", None)
    )
    (found,) = finish(work).results
    assert (found.user, found.error_code, found.error_message) == ("ann", errors.NONE, "")
