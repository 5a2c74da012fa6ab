"""What clients get that may do nothing, or some of what they ask for, from a real 3.9.2 and from ours, with ZooKeeper's
authorizer of 3.9 (kafka.security.authorizer.AclAuthorizer).

Both stand in one cluster and obey the same ACLs. Brokers and the test's own client come from one address and may do
everything, those who are denied from another. What the controller alone answers is asked of both while the one is the
controller, and again while the other is; answers of both in the same part are compared.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from compat_tests.cluster.brokers import DEADLINE_S, KAFKA, OURS, MixedCluster
from compat_tests.differential import test_authorization as known
from compat_tests.differential.acl_requests import (
    acl_filter,
    create_acls,
    creation,
    delete_acls,
    describe_acls,
)
from compat_tests.differential.guarded_pair import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DESCRIBE,
    GROUP,
    LITERAL,
    TOPIC,
    TRANSACTIONAL_ID,
)
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.samples import SAMPLES
from compat_tests.differential.tree import differences, field_names, is_message
from compat_tests.raw import RawClient
from pykafkad import errors, messages
from pykafkad.config_authorizer import OF_ZOOKEEPER
from pykafkad.handlers.cluster_apis import APIS
from pykafkad.hot.wire import WireError

REAL, OUR = 0, 1
BOTH = (REAL, OUR)
INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.2"
THE_CLUSTER = "kafka-cluster"
CONFIG = {"authorizer.class.name": OF_ZOOKEEPER, "allow.everyone.if.no.acl.found": "true"}
EVERYTHING = [
    *((resource, LITERAL, "*", ALL) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID, 6)),
    (CLUSTER, LITERAL, THE_CLUSTER, ALL),
]
GRANTS: dict[str, list[Any]] = {
    "nothing": [],
    "to describe the cluster": [(CLUSTER, LITERAL, THE_CLUSTER, DESCRIBE)],
    "to act as the cluster": [(CLUSTER, LITERAL, THE_CLUSTER, CLUSTER_ACTION)],
    "to alter the cluster": [(CLUSTER, LITERAL, THE_CLUSTER, ALTER)],
    "to create": [(CLUSTER, LITERAL, THE_CLUSTER, CREATE)],
    "to alter configs": [
        (CLUSTER, LITERAL, THE_CLUSTER, ALTER_CONFIGS),
        (TOPIC, LITERAL, known.SECRET, ALTER_CONFIGS),
    ],
}


class Case(NamedTuple):
    grants: str
    api: str
    version: int
    form: int  # of several requests


# What is no refusal, and says who is asked, or who is the controller.
OF_WHO_ANSWERS = ("ApiVersions", "DescribeCluster", "Metadata")
DENIED_WITH_ITS_REQUEST = re.compile(r"Request Request\(.*\) is not authorized\.", re.DOTALL)


def in_our_words(answer: Any) -> Any:
    """Kafka says all that it knows of a request on the cluster that it denies: its connection, its bytes."""
    if not is_message(answer):
        return answer
    for name in field_names(answer):
        value = getattr(answer, name)
        if isinstance(value, str) and DENIED_WITH_ITS_REQUEST.fullmatch(value):
            setattr(answer, name, errors.MESSAGES[errors.CLUSTER_AUTHORIZATION_FAILED])
        for element in value if isinstance(value, list) else ():
            in_our_words(element)
    return answer


def cases() -> Iterator[Case]:
    for api in APIS.values():
        if api.name in OF_WHO_ANSWERS:
            continue
        lowest, highest = api.versions
        for version in range(lowest, highest + 1):
            if api.name in SAMPLES:
                yield Case("nothing", api.name, version, -1)
            for form, _ in enumerate(known.SOME.get(api.name, ())):
                for grants in GRANTS:
                    yield Case(grants, api.name, version, form)


class FromOutside(Side):
    @property
    def client(self) -> RawClient:
        if self._client is None:
            self._client = RawClient(self.port, source=OUTSIDE)
            self._client.socket.settimeout(30)
        return self._client


class Guarded:
    """The cluster, its ACLs, and all answers."""

    def __init__(self, cluster: MixedCluster) -> None:
        self.cluster = cluster
        ports = [cluster.home.brokers[id].port for id in BOTH]
        self.sides = [FromOutside(("kafka", "pykafkad")[id], ports[id]) for id in BOTH]
        self.pair = Pair(self.sides[OUR], self.sides[REAL])
        self.admins = [RawClient(port) for port in ports]
        self.granted: set[Any] = set()
        self.zookeeper = KazooClient(cluster.home.zookeeper_connect)
        self.zookeeper.start()

    def close(self) -> None:
        self.zookeeper.stop()
        self.zookeeper.close()
        for side in self.sides:
            side.hang_up()
        for admin in self.admins:
            admin.close()

    @property
    def controller(self) -> int:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            with contextlib.suppress(NoNodeError):
                found: int = json.loads(self.zookeeper.get("/controller")[0])["brokerid"]
                return found
            assert time.monotonic() < deadline, "nobody is the controller"
            time.sleep(0.01)

    def make_controller(self, id: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.controller != id:
            assert time.monotonic() < deadline
            with contextlib.suppress(NoNodeError):
                self.zookeeper.delete("/controller")
        request = messages.MetadataRequest(topics=[])
        while any(admin.ask(request, 9).controller_id != id for admin in self.admins):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def prepare(self) -> None:
        self.allow(EVERYTHING, INSIDE)
        kind = messages.CreateTopicsRequest
        topics = [
            kind.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            for name in (known.OPEN, known.SECRET)
        ]
        for topic in topics:
            topic.assignments = [
                kind.CreatableReplicaAssignment(partition_index=index, broker_ids=[REAL, OUR])
                for index in (0, 1)
            ]
        answer = self.admins[self.controller].ask(kind(topics=topics, timeout_ms=30_000), 7)
        for side in self.sides:
            side.topic_ids = {each.name: each.topic_id for each in answer.topics}
        for side, admin in zip(self.sides, self.admins, strict=True):
            deadline = time.monotonic() + DEADLINE_S
            wanted = messages.MetadataRequest(
                topics=[messages.MetadataRequest.MetadataRequestTopic(name=name) for name in side.topic_ids]
            )
            while any(topic.error_code for topic in admin.ask(wanted, 9).topics):
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def grant(self, grants: list[Any]) -> None:
        wanted = set(grants)
        self.allow(list(wanted - self.granted), OUTSIDE)
        self.remove(self.granted - wanted)
        self.granted = wanted

    def allow(self, grants: list[Any], host: str) -> None:
        for resource, pattern, name, operation in grants:
            wanted = creation(
                name,
                resource_type=resource,
                resource_pattern_type=pattern,
                principal="User:ANONYMOUS",
                host=host,
                operation=operation,
            )
            answer = self.admins[REAL].ask(create_acls(wanted), 3)
            assert not answer.results[0].error_code, answer
        self.until_known(host, len(grants))

    def remove(self, grants: set[Any]) -> None:
        if not grants:
            return
        wanted = acl_filter(host_filter=OUTSIDE)
        keep = self.granted - grants
        self.admins[REAL].ask(delete_acls(wanted), 3)
        self.until_gone()
        self.granted = set()
        self.allow(list(keep), OUTSIDE)

    def acls(self, admin: RawClient, host: str) -> int:
        request = describe_acls(host_filter=host)
        return sum(len(each.acls) for each in admin.ask(request, 3).resources)

    def until_known(self, host: str, more: int) -> None:
        self.until(host, lambda count: count >= more)

    def until_gone(self) -> None:
        self.until(OUTSIDE, lambda count: count == 0)

    def until(self, host: str, is_so: Any) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not all(is_so(self.acls(admin, host)) for admin in self.admins):
            assert time.monotonic() < deadline
            time.sleep(0.02)


Answers = dict[tuple[Case, bool, int], Any]


def asked(side: Side, case: Case) -> Any:
    if case.api == "AlterReplicaLogDirs":
        request = known.move_nothing()
    elif case.form < 0:
        request = SAMPLES[case.api](case.version)
    else:
        request = known.SOME[case.api][case.form](case.version, side)
    request = request(side) if callable(request) else request
    if "Configs" in case.api:  # 3.9 knows topics and brokers in a cluster on ZooKeeper
        kinds = (16, 32)
        request.resources = [
            each
            for each in request.resources
            if each.resource_type not in kinds and each.resource_name not in ("1", "9")
        ]
    return request


@pytest.fixture(scope="module")
def answers() -> Iterator[tuple[Pair, Answers]]:
    found: Answers = {}
    with MixedCluster([KAFKA, OURS], config=CONFIG) as cluster:
        guarded = Guarded(cluster)
        try:
            guarded.prepare()
            for controller in BOTH:
                guarded.make_controller(controller)
                for grants, given in GRANTS.items():
                    guarded.grant(given)
                    for case in cases():
                        if case.grants == grants:
                            for id, side in enumerate(guarded.sides):
                                try:
                                    request = asked(side, case)
                                    found[case, id == controller, id] = in_our_words(
                                        side.ask(request, case.version)
                                    )
                                except WireError as error:
                                    found[case, id == controller, id] = str(error)
            yield guarded.pair, found
        finally:
            guarded.close()


@pytest.mark.parametrize("controls", [False, True], ids=["another controls", "controls"])
@pytest.mark.parametrize(
    "case", list(cases()), ids=lambda case: f"{case.api}-{case.version}-{case.form}-{case.grants}"
)
def test_both_say_the_same(answers: tuple[Pair, Answers], case: Case, controls: bool) -> None:
    pair, found = answers
    ours, real = found[case, controls, OUR], found[case, controls, REAL]
    if ours is None or real is None or isinstance(ours, str):
        assert (ours is None, isinstance(ours, str)) == (real is None, isinstance(real, str)), (ours, real)
        return
    pair.report(case, case.version, differences(pair, ours, real))
