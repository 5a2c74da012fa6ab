"""Fetches where there is an authorizer: of a session, too, each topic is asked for with each request.

What is denied is found like a partition that does not exist, and before anybody looks whether it does. A follower that
may not take part in the cluster may read nothing.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, READ, TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.replica import Replica
    from pykafkad.handlers.fetching import Fetch
    from pykafkad.pure.fetch_session import Followed


@lru_cache(maxsize=8)
def guarded_kind(kind: Any) -> type[Fetch]:
    """The same kind of fetch, which asks first."""

    class Guarded(kind):  # type: ignore[misc]
        __slots__ = ("permits",)

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.permits = Permits(self.broker.authorizer, self.context)

        def find(self, followed: Followed) -> Replica:
            if not self.may_read(followed.topic):
                raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
            found: Replica = super().find(followed)
            return found

        def may_read(self, topic: object) -> bool:
            if self.is_follower:
                return self.permits.allow(CLUSTER_ACTION, CLUSTER)
            if isinstance(topic, bytes):
                known = self.broker.image.topics_by_id.get(topic)
                return known is None or self.permits.allow(READ, TOPIC, known.name)
            return self.permits.allow(READ, TOPIC, str(topic))

    return Guarded
