"""What a controller may ask of this broker, in the order in which it asks: whether it is obeyed, and what is done then.

LeaderAndIsr, StopReplica and UpdateMetadata go one after the other, each to its end, whoever sends them: two controllers
may overlap, and the epochs decide. Owns the fencing and who the controller is.
"""

from __future__ import annotations

from pykafkad.cluster.turns import Turns
from pykafkad.logs import logger
from pykafkad.pure.control_requests import Fencing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.cluster.publishing import Publishers
    from pykafkad.cluster.zookeeper.metadata import ClusterImage
    from pykafkad.cluster.zookeeper.roles import Roles
    from pykafkad.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
    from pykafkad.slices import Done, Run, Work

NOBODY = -1

log = logger("controller")


class Control:
    def __init__(
        self,
        image: ClusterImage,
        roles: Roles,
        publishers: Publishers,
        broker_epoch: Callable[[], int],
        run: Run,
    ) -> None:
        self.roles = roles
        self.controller_id = NOBODY
        self.on_controller: Callable[[], None] = nothing  # told when another one is the controller
        self.on_updated: Callable[[], None] = nothing  # told after each UpdateMetadata
        self._image = image
        self._publishers = publishers
        self._broker_epoch = broker_epoch
        self._fencing = Fencing()
        self._line = Turns(run)

    @property
    def controller_epoch(self) -> int:
        """The highest that was seen."""
        return self._fencing.controller_epoch

    def obey(self, work: Work, done: Done) -> None:
        """`done` is called with the answer that the work comes to."""
        self._line.run(work, done)

    def admit(self, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest) -> int:
        """The error of the whole request, or NONE."""
        return self._fencing.admit(request, self._broker_epoch())

    def update(self, request: UpdateMetadataRequest) -> Work:
        yield from self._image.update(request)
        before, self.controller_id = self.controller_id, request.controller_id
        if before != self.controller_id:
            log.info(f"the controller is broker {self.controller_id}, epoch {self.controller_epoch}")
        yield from self._publishers.publish(self._image.take_delta())
        if before != self.controller_id:
            self.on_controller()
        self.on_updated()


def nothing() -> None:
    """Nobody wants to know."""
