"""IncrementalAlterConfigs (key 44), versions 0 and 1: single configs of resources set, removed, appended to or
subtracted from (KIP-339), and the levels of loggers (KIP-412).

Answered when the new configs are durable and count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.handlers.alter_configs import alter
from pykafkad.messages import IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.config_changes import Alteration

    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [(config.name, config.config_operation, config.value) for config in resource.configs],
            is_legacy=False,
        )
        for resource in request.resources
    ]
    return alter(broker, wanted, request.validate_only, context, IncrementalAlterConfigsResponse, Result)
