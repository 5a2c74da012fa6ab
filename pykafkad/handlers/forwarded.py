"""What only the active controller may answer, beside controllers of Apache Kafka: it is asked, and its answer is the
client's (KIP-590)."""

from __future__ import annotations

from functools import partial
from typing import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.kraft.cluster import KraftCluster
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker


needs = ()  # the controller asks, of the principal that it is told of


def handle(broker: Broker, request: Any, context: Context) -> Any:
    cluster = cast("KraftCluster", broker.cluster)
    context.defer()
    cluster.forwarding.forward(request, context, partial(broker.dispatcher.give, context))
    return context
