"""CreateAcls (key 30), versions 1 to 3: gives and takes operations on resources (KIP-140, KIP-290).

The answer is sent when the new ACLs are durable and count. An ACL that is there already is no error.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import Unanswerable
from pykafkad.messages import CreateAclsResponse
from pykafkad.pure.acls import ANY, MATCH, UNKNOWN, Acl
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import CreateAclsRequest
    from pykafkad.slices import Work

Result = CreateAclsResponse.AclCreationResult

NO_AUTHORIZER = "No Authorizer is configured."


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: CreateAclsRequest, context: Context) -> Work[CreateAclsResponse]:
    acls: list[Acl] = []
    for each in request.creations:
        acls.append(
            Acl(
                each.resource_type,
                each.resource_name,
                each.resource_pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
        )
        yield
    found = yield from created(broker, acls)
    results = []
    texts_fit = True
    for error in found:
        results.append(
            Result() if error is None else Result(error_code=error.code, error_message=error.message)
        )
        texts_fit = texts_fit and (error is None or errors.fits(error.message))
        yield
    if not texts_fit:  # as in Kafka, where writing the answer fails
        results = [Result(error_code=errors.UNKNOWN_SERVER_ERROR, error_message=None)] * len(results)
    return CreateAclsResponse(results=results)


def created(broker: Broker, acls: list[Acl]) -> Work[list[KafkaError | None]]:
    """What kept each from being made."""
    names_any = False
    for acl in acls:
        codes = (acl.resource_type, acl.pattern_type, acl.operation, acl.permission)
        if UNKNOWN in codes:
            raise Unanswerable("CreatableAcls contain unknown elements")
        names_any = names_any or ANY in codes or acl.pattern_type == MATCH
        yield
    if broker.acls is None:
        return [KafkaError(errors.SECURITY_DISABLED, NO_AUTHORIZER)] * len(acls)
    if names_any:  # as Kafka, which cannot make an ACL of what is only for filters
        return [KafkaError(errors.UNKNOWN_SERVER_ERROR)] * len(acls)
    wait = Wait()
    broker.acls.create(acls, wait.come)
    found: list[KafkaError | None] = yield from wait.result()
    return found
