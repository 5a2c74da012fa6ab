"""The one place where a request is checked against what its API needs, before its handler is called.

`guarded` puts the check in front of a handler; without an authorizer there is nothing to check, and the handler is
called directly. A request that is not authorized is refused as a whole, in Kafka's form: with the error of the first
resource that is denied, on every element if the need is one of each element, else at the top of the answer if its
version has an error there. The handler is not called, so it cannot forget the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafkad import errors, messages
from pykafkad.hot.wire import fields
from pykafkad.pure.authorization import CLUSTER, DENIED, THE_CLUSTER, TOPIC
from pykafkad.slices import begun, is_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.context import Context
    from pykafkad.handlers import Api
    from pykafkad.handlers.broker import Broker
    from pykafkad.hot.wire import Field, Struct
    from pykafkad.pure.authorization import Authorizer, Need
    from pykafkad.slices import Work

    Handle = Callable[[Broker, Any, Context], Any]

AT_ONCE = 64  # names between two looks at the clock
# The fields by which an element of an answer is identified.
KEYS = frozenset(
    (
        *("name", "topic", "topic_name", "topic_id", "partition", "partition_index", "index", "group_id"),
        *("member_id", "group_instance_id", "resource_type", "resource_name"),
    )
)


def guarded(api: Api, module: Any, authorizer: Authorizer) -> Handle:
    """The module's handler behind the check. The module has an `unauthorized` if its answers do not correspond to its
    requests element by element."""
    asked = [need for need in module.needs if not need.by_handler]
    handle = module.handle
    refuse = getattr(module, "unauthorized", None) or partial(
        refusal_of, getattr(messages, f"{api.name}Response")
    )

    def check_and_handle(broker: Broker, request: Any, context: Context) -> Work:
        denied = yield from first_denied(broker, asked, request, context, authorizer)
        if denied is not None:
            return refuse(request, context.version, DENIED[denied.resource], len(denied.path) > 1)
        result = handle(broker, request, context)
        return (yield from result) if is_work(result) else result

    return lambda broker, request, context: begun(check_and_handle(broker, request, context))


def first_denied(
    broker: Broker, needs: Sequence[Need], request: Any, context: Context, authorizer: Authorizer
) -> Work[Need | None]:
    """The first need of the request that is denied to its principal, if there is one."""

    def topic_name(topic_id: bytes) -> str | None:
        topic = broker.image.topics_by_id.get(topic_id)
        return topic.name if topic is not None else None

    for need in needs:
        for place, name in enumerate(need.names(request, topic_name)):
            if not is_allowed(authorizer, need, name, context):
                return need
            if not place % AT_ONCE:
                yield
    return None


def is_allowed(authorizer: Authorizer, need: Need, name: str, context: Context) -> bool:
    who = context.principal, context.connection.peer[0]
    if authorizer.allows(*who, need.operation, need.resource, name):
        return True
    if need.or_on_cluster is not None and authorizer.allows(*who, need.or_on_cluster, CLUSTER, THE_CLUSTER):
        return True
    return need.or_on_some_topic is not None and authorizer.allows_some(*who, need.or_on_some_topic, TOPIC)


def refusal_of(kind: type[Struct], request: Any, version: int, code: int, of_each: bool) -> Any:
    """The answer, or a part of it, with this error for everything that was asked."""
    answer: Any = kind()
    own = {field.attribute: field for field in in_version(kind, version)}
    inner = next((field for field in own.values() if has_errors(field, version)), None)
    if "error_code" in own and not (of_each and inner is not None):
        answer.error_code = code
        if "error_message" in own:
            answer.error_message = errors.MESSAGES[code]
    elif inner is not None and inner.struct is not None:
        elements = asked_elements(request, version)
        setattr(answer, inner.attribute, [refused(one, inner.struct, version, code) for one in elements])
    return answer


def refused(element: Any, kind: type[Struct], version: int, code: int) -> Any:
    """One element. If the request has only a name or a number for it, the answer has a field for that."""
    if isinstance(element, (str, int)):
        answer = refusal_of(kind, kind(), version, code, False)
        wanted = "string" if isinstance(element, str) else "int32"
        keys = [field for field in in_version(kind, version) if field.type == wanted]
        setattr(answer, next(key.attribute for key in keys if key.attribute != "error_message"), element)
        return answer
    answer = refusal_of(kind, element, version, code, False)
    for name in KEYS & {field.attribute for field in in_version(kind, version)}:
        if hasattr(element, name):
            setattr(answer, name, getattr(element, name))
    return answer


def in_version(kind: type[Struct], version: int) -> list[Field]:
    return [field for field in fields(kind) if field.versions[0] <= version <= field.versions[1]]


def has_errors(field: Field, version: int) -> bool:
    """Whether it is an array whose elements, or their elements, have an error each."""
    if field.struct is None or not field.type.startswith("[]"):
        return False
    return any(
        inner.attribute == "error_code" or has_errors(inner, version)
        for inner in in_version(field.struct, version)
    )


def asked_elements(request: Any, version: int) -> Iterator[Any]:
    """The elements of the first array that the request has in this version."""
    for field in in_version(type(request), version):
        if field.type.startswith("[]"):
            yield from getattr(request, field.attribute) or ()
            return
