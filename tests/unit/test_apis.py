"""The APIs that handlers, cluster_apis and kraft_apis list are served in the versions that Apache Kafka advertises.

tests/golden/api_versions.json has what its brokers answered to ApiVersions: 4.3.1 beside its controllers, and 3.9.2 on
ZooKeeper.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafkad import messages
from pykafkad.handlers import APIS, Api, cluster_apis, kraft_apis

IN_CLUSTER, BESIDE_KRAFT = cluster_apis.APIS, kraft_apis.APIS
SHARE_GROUPS, STREAMS_GROUPS = {76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92}, {88, 89}
SASL, TOKENS, SCRAM = {17, 36}, {38, 39, 40, 41}, {51}
QUORUM = {57, 58}  # which takes controllers


@pytest.mark.parametrize(
    ("apis", "kafka", "missing"),
    [
        (APIS, "4.3.1", SHARE_GROUPS | STREAMS_GROUPS | SASL | TOKENS | SCRAM),
        (BESIDE_KRAFT, "4.3.1", SHARE_GROUPS | STREAMS_GROUPS | SASL),
        (IN_CLUSTER, "3.9.2 on ZooKeeper", SASL | TOKENS | SCRAM | QUORUM),
    ],
    ids=["alone", "beside KRaft", "on ZooKeeper"],
)
def test_what_is_advertised_is_what_kafka_advertises(
    golden: Path, apis: dict[int, Api], kafka: str, missing: set[int]
) -> None:
    theirs = json.loads((golden / "api_versions.json").read_text())[kafka]
    ours = {str(key): [api.listed_since, api.versions[1]] for key, api in apis.items() if api.is_advertised}
    assert ours == {key: versions for key, versions in theirs.items() if int(key) not in missing}


@pytest.mark.parametrize(
    "apis", [APIS, IN_CLUSTER, BESIDE_KRAFT], ids=["alone", "on ZooKeeper", "beside KRaft"]
)
def test_each_is_served_as_it_is_listed(apis: dict[int, Api]) -> None:
    """But for versions 0 to 2 of Produce, which 4.3.1 lists for old librdkafka alone (KIP-896)."""
    for key, api in apis.items():
        schema = getattr(messages, f"{api.name}Request")
        assert (key, api.key) == (schema.api_key, schema.api_key)
        assert api.listed_since == api.versions[0] or (apis is not IN_CLUSTER and key == 0)
    assert apis[0].versions[0] == (0 if apis is IN_CLUSTER else 3)


def test_what_is_not_advertised_is_telemetry() -> None:
    """As in Kafka, whose brokers have no receiver of it."""
    for apis in (APIS, BESIDE_KRAFT):
        hidden = {key: api.versions for key, api in apis.items() if not api.is_advertised}
        assert hidden == {71: (0, 0), 72: (0, 0)}
    assert all(api.is_advertised for api in IN_CLUSTER.values())
