"""DescribeUserScramCredentials (key 50), version 0: the users that have SCRAM credentials, and with how many iterations
(KIP-554).

Credentials can only be in a directory that Apache Kafka has used before. Missing: AlterUserScramCredentials, which
comes with security.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import DescribeUserScramCredentialsResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeUserScramCredentialsRequest
    from pykafkad.slices import Work


Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Credential = DescribeUserScramCredentialsResponse.CredentialInfo
MECHANISMS = (1, 2)  # SCRAM-SHA-256, SCRAM-SHA-512
TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
MISSING = "Attempt to describe a user credential that does not exist: "
A_TIME = 64  # users between two looks at the clock


needs = (Need(DESCRIBE, CLUSTER),)


def handle(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: Context
) -> Work[DescribeUserScramCredentialsResponse]:
    times: dict[str, int] = {}
    if request.users:
        for number, user in enumerate(request.users):
            times[user.name] = times.get(user.name, 0) + 1
            if number % A_TIME == 0:
                yield
    else:
        times = dict.fromkeys((name for name, _ in broker.image.scram_users), 1)
    results = []
    texts_fit = True
    for number, name in enumerate(times):
        found = twice(name) if times[name] > 1 else described(broker, name)
        texts_fit = texts_fit and errors.fits(found.error_message)
        results.append(found)
        if number % A_TIME == 0:
            yield
    if not texts_fit:  # as in Kafka, where writing the answer fails
        unknown = Result(error_code=errors.UNKNOWN_SERVER_ERROR, error_message=None)
        code = errors.UNKNOWN_SERVER_ERROR
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=None, results=[unknown] * len(request.users or ())
        )
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def unauthorized(
    request: DescribeUserScramCredentialsRequest, version: int, code: int
) -> DescribeUserScramCredentialsResponse:
    """For each user an error that does not name him, as in Kafka. (Asked for all users it fails there, and never
    answers.)"""
    unsaid = Result(error_code=code, error_message=None)
    return DescribeUserScramCredentialsResponse(
        error_code=code, error_message=None, results=[unsaid] * len(request.users or ())
    )


def twice(name: str) -> Result:
    return Result(user=name, error_code=errors.DUPLICATE_RESOURCE, error_message=TWICE + name)


def described(broker: Broker, name: str) -> Result:
    users = broker.image.scram_users
    credentials = [
        Credential(mechanism=mechanism, iterations=users[name, mechanism].iterations)
        for mechanism in MECHANISMS
        if (name, mechanism) in users
    ]
    if not credentials:
        return Result(user=name, error_code=errors.RESOURCE_NOT_FOUND, error_message=MISSING + name)
    return Result(user=name, error_message="", credential_infos=credentials)
