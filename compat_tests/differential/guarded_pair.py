"""One pykafkad and one Kafka whose clients are allowed what a test grants them: `guarded.grant(...)`.

Kafka has its StandardAuthorizer. Clients come in by a listener without authentication, all as User:ANONYMOUS, and may do
nothing that no ACL allows; the broker itself, and who makes the ACLs, is a super user and comes in by SASL. In pykafkad
the decisions are made by an authorizer of the test, which reads the grants of a file: what is compared is what the
handlers make of decisions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat_tests.differential.acl_requests import describe_acls
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.tree import field_names, is_message
from compat_tests.raw import RawClient
from compat_tests.reference import ReferenceKafka, free_ports
from pykafkad import errors, messages

READY_SECONDS = 30
ALLOW, LITERAL, PREFIXED = 3, 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 2, 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
# What is implied by an allowed operation.
IMPLIED = {DESCRIBE: {READ, WRITE, DELETE, ALTER}, DESCRIBE_CONFIGS: {ALTER_CONFIGS}}
EVERYTHING = [(resource, LITERAL, "*", ALL) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID)] + [
    (CLUSTER, LITERAL, "kafka-cluster", ALL)
]
Grant = tuple[int, int, str, int]  # resource type, pattern type, name, operation
USER, PASSWORD = "admin", "secret"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)


class Granted:
    """An authorizer: the grants in a file, which it reads again when that has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Any = None
        self._grants: list[Grant] = []

    def grants(self) -> list[Grant]:
        found = os.stat(self._path)
        if (found.st_mtime_ns, found.st_ino) != self._stamp:
            self._stamp = found.st_mtime_ns, found.st_ino
            self._grants = [tuple(grant) for grant in json.loads(self._path.read_text())]
        return self._grants

    def allows(self, principal: Any, host: str, operation: int, resource: int, name: str) -> bool:
        assert str(principal) == "User:ANONYMOUS" and host == "127.0.0.1"
        enough = {ALL, operation} | IMPLIED.get(operation, set())
        return any(
            kind == resource
            and given in enough
            and (pattern in (name, "*") if how == LITERAL else name.startswith(pattern))
            for kind, how, pattern, given in self.grants()
        )

    def allows_some(self, principal: Any, host: str, operation: int, resource: int) -> bool:
        return any(kind == resource and given in (ALL, operation) for kind, _, _, given in self.grants())

    def note_denied(self, *asked: Any) -> None:
        """There is no log."""


def run(path: str, *arguments: str) -> None:
    """pykafkad with this authorizer."""
    from pykafkad.cli import main
    from pykafkad.serving import ServingBroker

    ServingBroker.authorizer = Granted(Path(path))
    sys.argv = ["pykafkad", *arguments]
    sys.exit(main())


NEEDS = re.compile(r"Request Request\(.*\) needs \w+ permission\.", re.DOTALL)


def in_our_words(answer: Any) -> Any:
    """Where the cluster is denied, Kafka's controller answers with all that it knows of the request, as text: its
    connection, its session, its place in a queue. Here there is the name of the error."""
    for name in field_names(answer):
        value = getattr(answer, name)
        if isinstance(value, str) and NEEDS.fullmatch(value):
            setattr(answer, name, errors.MESSAGES[errors.CLUSTER_AUTHORIZATION_FAILED])
        for element in value if isinstance(value, list) else ():
            if is_message(element):
                in_our_words(element)
    if isinstance(answer, messages.DescribeTopicPartitionsResponse):
        denied = errors.TOPIC_AUTHORIZATION_FAILED  # they come last, in the order of a hash set
        answer.topics.sort(key=lambda topic: (topic.error_code == denied, topic.name or ""))
    return answer


class GuardedSide(Side):
    def ask(self, request: Any, version: int) -> Any:
        answer = super().ask(request, version)
        return in_our_words(answer) if is_message(answer) else answer


class GuardedPair(Pair):
    def __init__(self, ours: Side, theirs: Side, path: Path, admin: RawClient) -> None:
        super().__init__(ours, theirs)
        self._path = path
        self._admin = admin
        self._granted: set[Grant] = set()

    def grant(self, *grants: Grant) -> None:
        """These are all that there are from now on."""
        wanted = set(grants)
        made = self._path.with_suffix(".new")
        made.write_text(json.dumps(sorted(wanted)))
        made.replace(self._path)
        creations = [_acl(messages.CreateAclsRequest.AclCreation, grant) for grant in wanted - self._granted]
        if creations:
            answer = self._admin.ask(messages.CreateAclsRequest(creations=creations), 3)
            assert not any(row.error_code for row in answer.results), answer
        filters = [_filter(grant) for grant in self._granted - wanted]
        if filters:
            deleted = self._admin.ask(messages.DeleteAclsRequest(filters=filters), 3)
            assert all(len(row.matching_acls) == 1 for row in deleted.filter_results), deleted
        deadline = time.monotonic() + READY_SECONDS
        while self._found() != wanted:
            assert time.monotonic() < deadline, "the ACLs do not come to count"
            time.sleep(0.01)
        self._granted = wanted

    def _found(self) -> set[Grant]:
        answer = self._admin.ask(
            describe_acls(),
            3,
        )
        return {
            (row.resource_type, row.pattern_type, row.resource_name, acl.operation)
            for row in answer.resources
            for acl in row.acls
        }


def _acl(kind: Any, grant: Grant) -> Any:
    resource, pattern, name, operation = grant
    return kind(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=pattern,
        principal="User:ANONYMOUS",
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


def _filter(grant: Grant) -> Any:
    resource, pattern, name, operation = grant
    return messages.DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=resource,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter="User:ANONYMOUS",
        host_filter="*",
        operation=operation,
        permission_type=ALLOW,
    )


@contextmanager
def kafka(config: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Its port for clients, and that for the super user."""
    port, inside = free_ports(), free_ports()
    here = "127.0.0.1"
    with ReferenceKafka(
        config={
            "listeners": f"PLAINTEXT://{here}:{port},CONTROLLER://{here}:{port + 1},INSIDE://{here}:{inside}",
            "advertised.listeners": f"PLAINTEXT://{here}:{port},INSIDE://{here}:{inside}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.inside.plain.sasl.jaas.config": JAAS,
            "listener.name.controller.plain.sasl.jaas.config": JAAS,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER}",
            **config,
        },
        port=port,
    ) as broker:
        yield broker.port, inside


def super_user(port: int) -> RawClient:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            client = RawClient(port)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "Kafka does not listen for its super user"
            time.sleep(0.05)
    client.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    secret = f"\0{USER}\0{PASSWORD}".encode()
    answer = client.ask(messages.SaslAuthenticateRequest(auth_bytes=secret), 2)
    assert not answer.error_code, answer
    return client


@contextmanager
def pykafkad(directory: Path, grants: Path, config: dict[str, str]) -> Iterator[int]:
    port = free_ports()
    code = f"from {__name__} import run; import sys; run(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(grants), "start", "--port", str(port)]
    command += ["--data", str(directory / "data")]
    given = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}", **config}
    for key, value in given.items():
        command += ["--override", f"{key}={value}"]
    log_path = directory / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("pykafkad ready:"), log_path.read_text()[-2000:]
        yield port
        assert process.poll() is None, log_path.read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(READY_SECONDS)


@contextmanager
def guarded_pair(directory: Path, ours: dict[str, str], theirs: dict[str, str]) -> Iterator[GuardedPair]:
    grants = directory / "grants.json"
    grants.write_text("[]")
    with (
        pykafkad(directory, grants, ours) as our_port,
        kafka(theirs) as (their_port, inside),
        super_user(inside) as admin,
    ):
        sides = GuardedSide("pykafkad", our_port), GuardedSide("kafka", their_port)
        yield GuardedPair(*sides, grants, admin)
        for side in sides:
            side.hang_up()
