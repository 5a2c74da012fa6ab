"""kafka-acls: add, list, remove, what each refuses; and what the other tools say to those who are denied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.tools.both import Both
from compat_tests.tools.conftest import made
from compat_tests.tools.toolbox import Toolbox
from pykafkad.config_authorizer import STANDARD

# What is nobody's is everybody's, so that the brokers may do their work: all of them are User:ANONYMOUS.
CONFIG = {
    "authorizer.class.name": STANDARD,
    "super.users": "User:nobody",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def guarded(toolbox: Toolbox) -> Iterator[Both]:
    with made(toolbox, CONFIG) as both:
        yield both


def test_acls_are_added_listed_and_removed(guarded: Both) -> None:
    name = guarded.name("made")
    what = ("--topic", name, "--allow-principal", "User:bob", "--operation", "Read")
    guarded.same("acls", "--add", *what, has="operation=READ")
    guarded.same("acls", "--add", *what)
    guarded.same("acls", "--list", "--topic", name, has="User:bob")
    guarded.same("acls", "--list", has="User:bob")
    guarded.same("acls", "--remove", "--force", *what)
    guarded.same("acls", "--list", "--topic", name)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--producer", "--allow-principal", "User:bob", "--transactional-id", "x"],
        ["--consumer", "--allow-principal", "User:bob", "--group", "g"],
        ["--deny-principal", "User:eve", "--deny-host", "10.0.0.1", "--operation", "All"],
        ["--allow-principal", "User:*", "--resource-pattern-type", "prefixed", "--operation", "Write"],
        ["--allow-principal", "User:a", "--allow-principal", "User:b", "--allow-host", "10.0.0.1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_the_tool_makes_of_its_options(guarded: Both, arguments: list[str]) -> None:
    name = guarded.name("options")
    guarded.same("acls", "--add", "--topic", name, *arguments)
    guarded.same("acls", "--list", "--topic", name, "--resource-pattern-type", "match", has="User:")
    guarded.same("acls", "--remove", "--force", "--topic", name, "--resource-pattern-type", "any")
    guarded.same("acls", "--remove", "--force", "--group", "g")
    guarded.same("acls", "--remove", "--force", "--transactional-id", "x")


def test_other_resources(guarded: Both) -> None:
    bob = ("--allow-principal", "User:bob")
    resources = [
        ("--group", "a/b"),
        ("--transactional-id", "x"),
        ("--delegation-token", "t"),
        ("--user-principal", "User:c"),
    ]
    for resource in resources:
        operation = "CreateTokens" if resource[0] == "--user-principal" else "Describe"
        guarded.same("acls", "--add", *resource, *bob, "--operation", operation)
        guarded.same("acls", "--list", *resource, has="User:bob")
        guarded.same("acls", "--remove", "--force", *resource)


def test_a_principal_without_a_type_is_refused(guarded: Both) -> None:
    guarded.same("acls", "--add", "--topic", "t", "--allow-principal", "bob", "--operation", "Read", exits=1)


def test_who_is_denied_is_told_so_by_every_tool(guarded: Both) -> None:
    name = guarded.topic("denied")
    other = guarded.topic("seen")
    guarded.produce(name, "a")
    deny = ("--topic", name, "--deny-principal", "User:ANONYMOUS", "--operation", "All")
    guarded.same("acls", "--add", *deny)
    guarded.same("topics", "--list", has=other)
    guarded.same("topics", "--describe", "--topic", name, exits=1)
    guarded.same("topics", "--delete", "--topic", name, exits=1)
    guarded.same("get-offsets", "--topic", name, exits=1)
    guarded.same(
        "configs", "--describe", "--entity-type", "topics", "--entity-name", name, exits=0, has="exist"
    )
    guarded.same(
        "configs",
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        name,
        "--add-config",
        "retention.ms=1",
        exits=1,
    )
    guarded.same("acls", "--remove", "--force", *deny)
    guarded.same("topics", "--describe", "--topic", name, has="PartitionCount: 1")


def test_a_group_that_is_denied(guarded: Both) -> None:
    group = guarded.name("group")
    deny = ("--group", group, "--deny-principal", "User:ANONYMOUS", "--operation", "All")
    guarded.same("acls", "--add", *deny)
    guarded.same("consumer-groups", "--describe", "--group", group, has="GroupAuthorizationException")
    guarded.same("consumer-groups", "--delete", "--group", group, has="GroupAuthorizationException")
    guarded.same("acls", "--remove", "--force", *deny)


def test_without_an_authorizer(both: Both) -> None:
    bob = ("--topic", "t", "--allow-principal", "User:bob", "--operation", "Read")
    both.same("acls", "--add", *bob, exits=1, has="No Authorizer is configured")
    both.same("acls", "--list", exits=1, has="No Authorizer is configured on the broker")
    both.same("acls", "--remove", "--force", *bob, exits=1)
