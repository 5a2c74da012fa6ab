"""CreateAcls, DescribeAcls and DeleteAcls."""

from __future__ import annotations

import pytest

from compat_tests.differential.acl_requests import (
    acl_filter,
    create_acls,
    creation,
    delete_acls,
    describe_acls,
)
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version

CODES = ("resource_type", "resource_pattern_type", "operation", "permission_type")


@at_every_version("CreateAcls")
def test_without_an_authorizer(pair: Pair, version: int) -> None:
    pair.same(create_acls(creation(), creation("")), version)
    pair.same(create_acls(), version)
    pair.same(describe_acls(), version)
    pair.same(delete_acls(acl_filter(), acl_filter(operation=99)), version)
    pair.same(delete_acls(), version)


@pytest.mark.parametrize("field", CODES)
@pytest.mark.parametrize("code", [0, 1, 99])
def test_codes_that_make_no_acl_without_an_authorizer(pair: Pair, field: str, code: int) -> None:
    pair.same(create_acls(creation(**{field: code})), 3)
