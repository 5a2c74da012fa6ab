"""Which topics and partitions are selected: regular expressions and ranges, as in Kafka's tools."""

from __future__ import annotations

import re

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class TopicFilter:
    """Topics whose whole name matches; commas separate alternatives."""

    def __init__(self, raw: str) -> None:
        self.expression = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(self.expression)
        except re.error:
            raise ValueError(f"{self.expression} is an invalid regex.") from None

    def allows(self, topic: str, exclude_internal: bool = False) -> bool:
        if exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None
