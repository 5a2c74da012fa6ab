"""The one place where a request is checked against what its API needs, before its handler is called.

`guarded` puts the check in front of a handler; without an authorizer there is nothing to check, and the handler is
called directly. What is denied is refused in Kafka's form. A need of the request as a whole: with its error on every
element, or at the top of the answer if its version has an error there. A need of each element: the denied ones are taken
out of the request, the handler is called for the others, and its answer is completed by what was refused. So a handler
never sees what is denied, and cannot forget the check, however late it answers. The check is done to its end even if the
client has gone: what it sent with acks=0 counts.

A module whose API has a form of its own says so by functions of these names:
    unauthorized(request, version, code)               the answer that refuses all
    said_first(broker, request, context, permits)      work that comes to an answer which is given before anything is
                                                       asked, or to None
    handle_guarded(broker, request, context)           instead of `handle`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from pykafkad import errors, messages
from pykafkad.handlers import Unanswerable
from pykafkad.handlers.permits import AT_ONCE, Permits
from pykafkad.hot.wire import fields
from pykafkad.pure.authorization import ALL, DENIED, FIRST, IN_PLACE
from pykafkad.slices import GO_ON, begun, is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers import Api
    from pykafkad.handlers.broker import Broker
    from pykafkad.hot.wire import Field
    from pykafkad.pure.authorization import Authorizer, Need
    from pykafkad.slices import Work

    Handle = Callable[[Broker, Any, Context], Any]

# The fields by which an element of an answer is identified.
KEYS = frozenset(
    (
        *("name", "topic", "topic_name", "topic_id", "partition", "partition_index", "index", "group_id"),
        *("member_id", "group_instance_id", "resource_type", "resource_name", "producer_id"),
    )
)
# The fields that say that nothing is known where their default does not.
UNKNOWN = ("base_offset", "low_watermark", "node_id", "port")
# APIs for whose elements Kafka has a text, but none that goes with a denial.
WITHOUT_TEXT = frozenset(("Produce", "FindCoordinator", "DescribeGroups", "ConsumerGroupDescribe"))


def guarded(api: Api, module: Any, authorizer: Authorizer) -> Handle:
    """The module's handler behind the check."""
    handle: Handle = getattr(module, "handle_guarded", module.handle)
    asked = [need for need in module.needs if not need.by_handler]
    if not asked and not hasattr(module, "said_first"):
        return handle
    return Guard(api, module, handle, asked, authorizer).handle


class Guard:
    """The check in front of one handler."""

    __slots__ = (
        "_answer",
        "_api",
        "_authorizer",
        "_each",
        "_handle",
        "_said_first",
        "_unauthorized",
        "_whole",
    )

    def __init__(
        self, api: Api, module: Any, handle: Handle, asked: Sequence[Need], authorizer: Authorizer
    ) -> None:
        self._api = api
        self._handle = handle
        self._authorizer = authorizer
        self._whole = [need for need in asked if need.denied == ALL]
        self._each = [need for need in asked if need.denied != ALL]
        self._answer = getattr(messages, f"{api.name}Response")
        self._said_first = getattr(module, "said_first", None)
        self._unauthorized = getattr(module, "unauthorized", None)

    def handle(self, broker: Broker, request: Any, context: Context) -> Any:
        refusal = begun(self._refusal(broker, request, context))
        if is_work(refusal):
            return self._in_slices(refusal, broker, request, context)
        return refusal if refusal is not None else self._allowed(broker, request, context)

    def _in_slices(self, refusal: Work[Any], broker: Broker, request: Any, context: Context) -> Work[Any]:
        answer = yield from refusal
        if answer is None:
            answer = self._allowed(broker, request, context)
        return (yield from answer) if is_work(answer) else answer

    def _allowed(self, broker: Broker, request: Any, context: Context) -> Any:
        """What is left of the request is handled."""
        result = self._handle(broker, request, context)
        if context.amend is None:
            return result
        return told(result) if is_work(result) else silence_ends(result)

    def _refusal(self, broker: Broker, request: Any, context: Context) -> Work[Any]:
        """The answer, if no handler is needed for it."""
        permits = Permits(self._authorizer, context)
        if self._said_first is not None:
            answer = yield from self._said_first(broker, request, context, permits)
            if answer is not None:
                return answer
        denied = yield from first_denied(self._whole, request, context.version, permits)
        if denied is not None:
            return (yield from self._refuse_all(request, context.version, DENIED[denied.resource]))
        asked = [need for need in self._each if need.is_asked(request, context.version)]
        return (yield from self._refuse_some(broker, asked, request, context, permits)) if asked else None

    def _refuse_all(self, request: Any, version: int, code: int) -> Work[Any]:
        if self._unauthorized is None:
            return (yield from refusal_of(self._answer, request, version, code))
        answer = self._unauthorized(request, version, code)
        return (yield from answer) if is_work(answer) else answer

    def _refuse_some(
        self, broker: Broker, asked: Sequence[Need], request: Any, context: Context, permits: Permits
    ) -> Work[Any]:
        """Takes the denied elements out of the request, and sees to it that its answer has their refusals. If nothing is
        left, they are the answer."""
        denials = yield from denied_elements(broker, asked, request, context.version, permits)
        if not denials:
            return None
        path, place = asked[0].path[0], asked[0].denied
        elements = asked[0].elements(request)
        kind = array_of_errors(self._answer, context.version)
        says = self._api.name not in WITHOUT_TEXT
        rows: dict[int, Any] = {}
        for number, code in denials.items():
            rows[number] = yield from refused(elements[number], kind.struct, context.version, code, says)
        refusals = Refusals(kind.attribute, place, rows, len(elements))
        left = [element for number, element in enumerate(elements) if number not in denials]
        setattr(request, path, left)
        if left:
            context.amend = refusals.complete
            return None
        silent = getattr(request, "acks", None) == 0
        return silence_ends(None if silent else refusals.complete(self._answer()))


class Refusals:
    """What was refused of one request: the rows of its answer, by where they were asked for."""

    __slots__ = ("_count", "_field", "_place", "_rows")

    def __init__(self, field: str, place: int, rows: dict[int, Any], count: int) -> None:
        self._field = field
        self._place = place
        self._rows = rows
        self._count = count

    def complete(self, response: Any) -> Any:
        """The response with them; if all of it is an error, that is all it says. (None: it is written, and let go.)"""
        if response is not None and not getattr(response, "error_code", errors.NONE):
            setattr(response, self._field, self._among(getattr(response, self._field)))
        return response

    def _among(self, others: list[Any]) -> list[Any]:
        if self._place == IN_PLACE and len(others) + len(self._rows) == self._count:
            left = iter(others)
            return [self._rows.get(number) or next(left) for number in range(self._count)]
        rows = list(self._rows.values())
        return rows + others if self._place == FIRST else others + rows


def told(work: Work[Any]) -> Work[Any]:
    return silence_ends((yield from work))


def silence_ends(response: Any) -> Any:
    """Where there is no answer (Produce with acks=0) that could say what is denied, the connection ends, as in Kafka."""
    if response is None:
        raise Unanswerable("something was denied to a request that is not answered")
    return response


def first_denied(needs: Sequence[Need], request: Any, version: int, permits: Permits) -> Work[Need | None]:
    """The first need of the request as a whole that is denied to its principal, if there is one."""
    for need in needs:
        if need.is_asked(request, version):
            for place, name in enumerate(need.names(request), 1):
                if not permits.satisfy(need, name):
                    return need
                if not place % AT_ONCE:
                    yield GO_ON
    return None


def denied_elements(
    broker: Broker, needs: Sequence[Need], request: Any, version: int, permits: Permits
) -> Work[dict[int, int]]:
    """The error codes of the denied elements, by their place in the request."""

    def topic_name(topic_id: bytes) -> str | None:
        topic = broker.image.topics_by_id.get(topic_id)
        return topic.name if topic is not None else None

    denials = {}
    for place, element in enumerate(needs[0].elements(request)):
        for need in needs:
            name = need.name_in(element, version, topic_name)
            if name is not None and not permits.satisfy(need, name):
                denials[place] = DENIED[need.resource]
                break
        if not (place + 1) % AT_ONCE:
            yield GO_ON
    return denials


def refusal_of(kind: Any, request: Any, version: int, code: int, says: bool = True) -> Work[Any]:
    """The answer, or a part of it, with this error for everything that was asked."""
    answer: Any = kind()
    own = in_version(kind, version)
    for field in UNKNOWN:
        if field in own:
            setattr(answer, field, -1)
    if "error_code" in own:
        answer.error_code = code
        if says and "error_message" in own:
            answer.error_message = errors.MESSAGES[code]
        return answer
    if has_errors(kind, version):
        inner = array_of_errors(kind, version)
        rows = []
        for element in asked_elements(request, type(request), version):
            rows.append((yield from refused(element, inner.struct, version, code, says)))
        setattr(answer, inner.attribute, rows)
    return answer


def refused(element: Any, kind: Any, version: int, code: int, says: bool = True) -> Work[Any]:
    """One element. If the request has only a name or a number for it, the answer has a field for that."""
    yield GO_ON
    own = in_version(kind, version)
    if isinstance(element, (str, int)):
        answer = yield from refusal_of(kind, kind(), version, code, says)
        wanted = "string" if isinstance(element, str) else "int32"
        keys = [field.attribute for field in own.values() if field.type == wanted]
        setattr(answer, next(key for key in keys if key != "error_message"), element)
        return answer
    answer = yield from refusal_of(kind, element, version, code, says)
    for name in KEYS & own.keys():
        if hasattr(element, name):
            setattr(answer, name, getattr(element, name))
    return answer


@lru_cache(maxsize=1024)
def in_version(kind: Any, version: int) -> dict[str, Field]:
    return {
        field.attribute: field for field in fields(kind) if field.versions[0] <= version <= field.versions[1]
    }


def array_of_errors(kind: Any, version: int) -> Any:
    """The array whose elements, or their elements, have an error each."""
    return next(field for field in in_version(kind, version).values() if is_array_of_errors(field, version))


def has_errors(kind: Any, version: int) -> bool:
    return any(is_array_of_errors(field, version) for field in in_version(kind, version).values())


def is_array_of_errors(field: Field, version: int) -> bool:
    kind: Any = field.struct
    if kind is None or not field.type.startswith("[]"):
        return False
    return "error_code" in in_version(kind, version) or has_errors(kind, version)


def asked_elements(request: Any, kind: Any, version: int) -> Iterator[Any]:
    """The elements of the first array that the request, which is of this kind, has in this version."""
    for field in in_version(kind, version).values():
        if field.type.startswith("[]"):
            yield from getattr(request, field.attribute) or ()
            return
