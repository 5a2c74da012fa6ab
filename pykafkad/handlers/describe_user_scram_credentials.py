"""DescribeUserScramCredentials (key 50), version 0: the users that have SCRAM credentials, and with how many iterations
(KIP-554).

Nothing here can have any, since storing them (AlterUserScramCredentials) comes with security: it is answered because
kafka-configs asks it of every user whose quotas it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import DescribeUserScramCredentialsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
MISSING = "Attempt to describe a user credential that does not exist: "


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asked: dict[str, int] = {}
    for user in request.users or ():
        asked[user.name] = asked.get(user.name, 0) + 1
    results = [_missing(name, times) for name, times in asked.items()]
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _missing(name: str, times: int) -> Any:
    if times > 1:
        return Result(user=name, error_code=errors.DUPLICATE_RESOURCE, error_message=TWICE + name)
    return Result(user=name, error_code=errors.RESOURCE_NOT_FOUND, error_message=MISSING + name)
