"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken (keys 38 to 41), beside
controllers of Apache Kafka: refused as by its brokers whose clients do not say who they are.

Kafka's broker answers these itself before it asks a controller. What the metadata has of tokens counts here for nobody.
Missing: listeners on which tokens could be asked for.
"""

from __future__ import annotations

from pykafkad import errors, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker

NEVER_MS = -1
OWNERS_SINCE = 3

needs = ()  # what is refused to all


def handle(broker: Broker, request: Any, context: Context) -> Any:
    code = errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if isinstance(request, messages.CreateDelegationTokenRequest):
        return refused_token(request, context)
    if isinstance(request, messages.RenewDelegationTokenRequest):
        return messages.RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER_MS)
    if isinstance(request, messages.ExpireDelegationTokenRequest):
        return messages.ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NEVER_MS)
    return messages.DescribeDelegationTokenResponse(error_code=code)


def refused_token(
    request: messages.CreateDelegationTokenRequest, context: Context
) -> messages.CreateDelegationTokenResponse:
    """For whom, and whom asked."""
    asker = context.principal
    answer = messages.CreateDelegationTokenResponse(
        error_code=errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=request.owner_principal_type or asker.type,
        principal_name=request.owner_principal_name or asker.name,
        issue_timestamp_ms=NEVER_MS,
        expiry_timestamp_ms=NEVER_MS,
        max_timestamp_ms=NEVER_MS,
    )
    if context.version >= OWNERS_SINCE:
        answer.token_requester_principal_type, answer.token_requester_principal_name = asker.type, asker.name
    return answer
