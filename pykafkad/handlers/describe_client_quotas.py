"""DescribeClientQuotas (key 48), versions 0 and 1: the quotas of users, client ids and addresses that a filter finds
(KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeClientQuotasResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Entry = DescribeClientQuotasResponse.EntryData
Entity = DescribeClientQuotasResponse.EntityData
Value = DescribeClientQuotasResponse.ValueData


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.client_quotas import Filter

    components = [(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        wanted = Filter(components, strict=request.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.text, entries=None)
    return DescribeClientQuotasResponse(
        entries=[
            Entry(
                entity=[Entity(entity_type=type, entity_name=name) for type, name in entity],
                values=[Value(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in broker.image.client_quotas.items()
            if wanted.takes(entity)
        ],
    )
