"""JoinGroup (key 11), versions 0 to 9: a member enters its group's next generation.

The answer waits until the generation is there. The rules are in pure/groups/classic_join; members of consumer
groups may speak this protocol too (pure/groups/consumer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.pure.groups.classic_answers import NOBODY, join_refusal

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.errors import KafkaError
    from pykafkad.server import Broker


# What is about the request rather than about the coordinator repeats the member's id.
WITH_MEMBER_ID = (errors.UNKNOWN_MEMBER_ID, errors.INVALID_GROUP_ID, errors.INVALID_SESSION_TIMEOUT)


def handle(broker: Broker, request: Any, context: Context) -> Any:
    settings = broker.groups.settings
    if not request.group_id:
        return join_refusal(context.version, errors.INVALID_GROUP_ID, request.member_id)
    timeout_ms = request.session_timeout_ms
    if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
        return join_refusal(context.version, errors.INVALID_SESSION_TIMEOUT, request.member_id)
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.join(request, caller, broker.clock.now_ms()),
        lambda error: refused(request, context.version, error),
    )


def refused(request: Any, version: int, error: KafkaError) -> Any:
    member_id = request.member_id if error.code in WITH_MEMBER_ID else NOBODY
    return join_refusal(version, error.code, member_id)
