"""ListPartitionReassignments (key 46), version 0: the moves of partitions that are under way (KIP-455).

A node alone has none (see AlterPartitionReassignments), and Kafka does not say what it does not know: so the
answer is always empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.messages import ListPartitionReassignmentsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    return ListPartitionReassignmentsResponse(error_message=None)
