"""DescribeAcls (key 29), versions 1 to 3: the ACLs that a filter means (KIP-140, KIP-290)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import Unanswerable
from pykafkad.messages import DescribeAclsResponse
from pykafkad.pure.acls import UNKNOWN, filter_of, pattern_of
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeAclsRequest
    from pykafkad.pure.acls import Acl, Pattern
    from pykafkad.slices import Work

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription

NO_AUTHORIZER = "No Authorizer is configured on the broker"


needs = (Need(DESCRIBE, CLUSTER),)


def handle(broker: Broker, request: DescribeAclsRequest, context: Context) -> Work[DescribeAclsResponse]:
    wanted = filter_of(request)
    if UNKNOWN in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission):
        raise Unanswerable("DescribeAclsRequest contains UNKNOWN elements")
    if broker.acls is None:
        return DescribeAclsResponse(error_code=errors.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    resources: dict[Pattern, Resource] = {}
    for acl in broker.acls.matching(wanted):
        if acl is not None:
            resource_of(acl, resources).acls.append(described(acl))
        yield
    return DescribeAclsResponse(resources=list(resources.values()))


def resource_of(acl: Acl, resources: dict[Pattern, Resource]) -> Resource:
    pattern = pattern_of(acl)
    found = resources.get(pattern)
    if found is None:
        found = resources[pattern] = Resource(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            acls=[],
        )
    return found


def described(acl: Acl) -> Description:
    return Description(
        principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
    )
