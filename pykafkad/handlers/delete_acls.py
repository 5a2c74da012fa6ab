"""DeleteAcls (key 31), versions 1 to 3: removes the ACLs that filters mean (KIP-140, KIP-290).

The answer is sent when they count no more, and says which they were.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import Unanswerable
from pykafkad.handlers.create_acls import NO_AUTHORIZER
from pykafkad.messages import DeleteAclsResponse
from pykafkad.pure.acls import UNKNOWN, filter_of
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.acls import Deleted
    from pykafkad.context import Context
    from pykafkad.errors import KafkaError
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DeleteAclsRequest
    from pykafkad.pure.acls import Acl
    from pykafkad.slices import Work

Result = DeleteAclsResponse.DeleteAclsFilterResult
Matching = DeleteAclsResponse.DeleteAclsMatchingAcl


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: DeleteAclsRequest, context: Context) -> Work[DeleteAclsResponse]:
    filters = []
    for each in request.filters:
        wanted = filter_of(each)
        if UNKNOWN in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission):
            raise Unanswerable("Filters contain UNKNOWN elements")
        filters.append(wanted)
        yield
    if broker.acls is None:
        code = errors.SECURITY_DISABLED
        return DeleteAclsResponse(
            filter_results=[Result(error_code=code, error_message=NO_AUTHORIZER, matching_acls=[])]
            * len(filters)
        )
    wait = Wait()
    broker.acls.delete(filters, wait.come)
    found: list[Deleted] = yield from wait.result()
    results = []
    for deleted in found:
        matching = []
        for acl, error in deleted.acls:
            matching.append(matched(acl, error))
            yield
        code, text = told(deleted.error)
        results.append(Result(error_code=code, error_message=text, matching_acls=matching))
        yield
    return DeleteAclsResponse(filter_results=results)


def told(error: KafkaError | None) -> tuple[int, str | None]:
    return (errors.NONE, None) if error is None else (error.code, error.message)


def matched(acl: Acl, error: KafkaError | None) -> Matching:
    code, text = told(error)
    return Matching(
        error_code=code,
        error_message=text,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
