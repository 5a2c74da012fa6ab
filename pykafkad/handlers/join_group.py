"""JoinGroup (key 11), versions 0 to 9: a member joins the next generation of its group.

The answer waits until the generation has begun. The rules are in pure/groups/classic_join. Members of consumer groups
may use this protocol too (pure/groups/consumer).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.permits import topics_shown
from pykafkad.handlers.pieces import FEW, pieces
from pykafkad.pure.authorization import GROUP, READ, Need
from pykafkad.pure.groups.classic_answers import NOBODY, join_refusal
from pykafkad.pure.groups.classic_member import Protocol
from pykafkad.slices import let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.errors import KafkaError
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import JoinGroupRequest, JoinGroupResponse
    from pykafkad.pure.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.slices import OrWork, Work


# Errors that concern the request, and not the coordinator: their answers repeat the member's id.
WITH_MEMBER_ID = (errors.UNKNOWN_MEMBER_ID, errors.INVALID_GROUP_ID, errors.INVALID_SESSION_TIMEOUT)


needs = (Need(READ, GROUP, "group_id"),)


def handle(
    broker: Broker, request: JoinGroupRequest, context: Context
) -> OrWork[JoinGroupResponse | Context]:
    settings = broker.group_coordinator.settings
    if not request.group_id:
        return join_refusal(context.version, errors.INVALID_GROUP_ID, request.member_id)
    timeout_ms = request.session_timeout_ms
    if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
        return join_refusal(context.version, errors.INVALID_SESSION_TIMEOUT, request.member_id)
    if len(request.protocols) > FEW:
        return in_slices(broker, request, context)
    return join(broker, request, context)


def in_slices(
    broker: Broker, request: JoinGroupRequest, context: Context
) -> Work[JoinGroupResponse | Context]:
    """The same for very many protocols, which are first made into what a member keeps of them. Of those with one name
    the first entry counts."""
    told = request.protocols
    named: dict[str, Protocol] = {}
    for piece in pieces(told):
        for protocol in piece:
            if protocol.name not in named:
                named[protocol.name] = Protocol(protocol.name, bytes(protocol.metadata))
        yield
    request.protocols = tuple(named.values())  # type: ignore[assignment]
    yield from let_go(told)
    return join(broker, request, context)


def join(broker: Broker, request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Context:
    version = context.version
    may_describe = topics_shown(broker, context)

    def join(groups: Groups, caller: Caller) -> Effects:
        caller.may_describe = may_describe
        return groups.join(request, caller, broker.clock.now_ms())

    return broker.group_coordinator.ask(
        request.group_id,
        context,
        join,
        lambda error: refused(request, version, error),
    )


def unauthorized(request: JoinGroupRequest, version: int, code: int) -> JoinGroupResponse:
    return join_refusal(version, code, NOBODY)


def refused(request: JoinGroupRequest, version: int, error: KafkaError) -> JoinGroupResponse:
    member_id = request.member_id if error.code in WITH_MEMBER_ID else NOBODY
    return join_refusal(version, error.code, member_id)
