"""Requests that only the active controller may answer: passed on to it as they are, in an Envelope that says who asked,
and from where (KIP-590). Its answer is the client's.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import Unanswerable
from pykafkad.hot import wire
from pykafkad.messages import DefaultPrincipalData, EnvelopeRequest
from pykafkad.net.answers import read_answer, response_type
from pykafkad.net.hosts import packed_address
from pykafkad.net.peers import Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.kraft.controllers import Controllers
    from pykafkad.context import Context
    from pykafkad.pure.authorization import Principal

ENVELOPE, NEWEST = 58, 0
FRAME_LENGTH = 4  # before a request's header


class Forwarding:
    def __init__(self, node_id: int, controllers: Controllers) -> None:
        self._controllers = controllers
        self._purpose = Purpose(f"broker-{node_id}-forwarding", asks_versions=True)

    def forward(self, request: Any, context: Context, done: Callable[[Any], None]) -> None:
        """`done` is given the answer, or an Unanswerable."""
        version, correlation_id = context.version, context.correlation_id
        kind = response_type(request)
        envelope = EnvelopeRequest(
            request_data=framed(request, version, correlation_id, context.client_id)[FRAME_LENGTH:],
            request_principal=packed_principal(context.principal),
            client_host_address=packed_address(context.connection.peer[0]),
        )

        def answered(answer: Any) -> None:
            if isinstance(answer, OSError):
                done(Unanswerable(f"the active controller could not be asked: {answer}"))
            elif answer.error_code or answer.response_data is None:
                name = errors.NAMES.get(answer.error_code, str(answer.error_code))
                done(Unanswerable(f"the active controller did not take what a client asked: {name}"))
            else:
                done(read_answer(kind, version, correlation_id, answer.response_data))

        self._controllers.ask(self._purpose, ENVELOPE, NEWEST, lambda _: envelope, answered)


def framed(request: Any, version: int, correlation_id: int, client_id: str) -> bytes:
    frame: Any = wire.request(request, version, correlation_id, client_id)
    return frame if isinstance(frame, bytes) else b"".join(bytes(part) for part in frame)


def packed_principal(principal: Principal) -> bytes:
    """As Kafka's DefaultKafkaPrincipalBuilder writes it: the version of its message comes first."""
    data = DefaultPrincipalData(type=principal.type, name=principal.name)
    return b"\0\0" + bytes(data.encode(0))
