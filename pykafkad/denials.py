"""The log of what clients have asked for and may not have: what Kafka writes by its kafka.authorizer.logger, at INFO."""

from __future__ import annotations

from pykafkad.logs import logger
from pykafkad.message_views import cut
from pykafkad.pure.acls import OPERATION_NAMES, TYPE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.authorization import Principal
    from pykafkad.quiet import Allows

log = logger("authorizer")


class Denials:
    def __init__(self, allows: Allows) -> None:
        self._allows = allows

    def note(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> None:
        if self._allows(log, f"denials to {principal}", host):
            what = f"{OPERATION_NAMES[operation]} of {TYPE_NAMES[resource]} {cut(name)}"
            log.info(f"{principal} from {host} is denied {what}")
