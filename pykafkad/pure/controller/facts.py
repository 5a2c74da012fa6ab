"""What a controller reasons about: a partition's leadership and assignment, and a broker. Values that never change."""

from __future__ import annotations

from typing import NamedTuple

Partition = tuple[str, int]  # topic, index
PartitionReplica = tuple[Partition, int]  # and the broker

NO_LEADER = -1
LEADER_DURING_DELETE = -2
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2
RECOVERED, RECOVERING = 0, 1


class Leadership(NamedTuple):
    """A partition's state as its znode has it; `partition_epoch` is the version of that node."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovery: int = RECOVERED
    partition_epoch: int = 0
    controller_epoch: int = 0

    def led_by(
        self, leader: int, isr: tuple[int, ...] | None = None, recovery: int | None = None
    ) -> Leadership:
        """The next leader epoch."""
        return self._replace(
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            isr=self.isr if isr is None else isr,
            recovery=self.recovery if recovery is None else recovery,
        )

    def without(self, replica: int) -> Leadership:
        """The next leader epoch, in which that replica neither leads nor is in sync; the last one in sync stays so."""
        isr = tuple(each for each in self.isr if each != replica)
        return self.led_by(NO_LEADER if self.leader == replica else self.leader, isr or self.isr)


class Assignment(NamedTuple):
    """The replicas of a partition; those of a reassignment's target come first, then those it takes away."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.removing)

    def reassigned_to(self, target: tuple[int, ...]) -> Assignment:
        origin = self.origin
        replicas = tuple(dict.fromkeys(target + origin))
        return Assignment(
            replicas,
            tuple(each for each in replicas if each not in origin),
            tuple(each for each in replicas if each not in target),
        )

    def without(self, replica: int) -> Assignment:
        return Assignment(*(tuple(each for each in some if each != replica) for some in self))


NOT_ASSIGNED = Assignment(())


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: str  # its name


class Broker(NamedTuple):
    id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.listener == listener), None)
