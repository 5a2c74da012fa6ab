"""The differences that are meant. Everything that is not here must be equal.

OWN    what is each broker's own: patterns, and the word that replaces their matches LATER  output about features that
pykafkad does not have yet: lines (patterns) that only Kafka may print
"""

from __future__ import annotations

import re

OWN = [
    (r"(?<=Cluster ID: )[\w-]{22}|(?<=ClusterId: )[\w-]{22}", "CLUSTER_ID"),
    (r"(?<=TopicId: )[\w-]{22}", "TOPIC_ID"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"(?<![\w+/])[A-Za-z0-9+/]{22}(?= (\S+ )?/127\.0\.0\.1)", "UUID"),  # librdkafka's
    (r"(?<![\w.-])1[0-9]{12}\b", "TIME_MS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:]\d{3}Z?", "TIME"),
]

LATER = [
    # share groups, whose coordinator does not exist yet
    r"(Share\w*|AlterShareGroupOffsets|DeleteShareGroup\w*|DescribeShareGroupOffsets|\w+ShareGroupState\w*)\(\d+\): ",
    r"Streams\w*\(\d+\): ",
    # security
    r"(SaslHandshake|SaslAuthenticate|\w+DelegationToken|\w+UserScramCredentials)\(\d+\): ",
]


def is_later(line: str) -> bool:
    return any(re.match(pattern, line) for pattern in LATER)
