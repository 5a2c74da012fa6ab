"""Which brokers get the replicas of new partitions, in a cluster of several (KIP-36 where they name their racks).

First replicas go round the brokers, so that each leads as many partitions; the others follow at a distance that grows
with each round, so that no two brokers share all of their partitions. Brokers with racks stand in an order that
alternates between racks, and a partition gets brokers of racks that it is not in yet, until it is in all.
"""

from __future__ import annotations

from itertools import chain, count, zip_longest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Placement:
    """Of partitions with so many replicas, from partition `first` on. `racks`: broker -> its rack; all have one, or none.

    `start` and `shift`: where the first round begins, and how far off its second replicas are; chosen at random for a
    new topic, and by the brokers of partition 0 for one that grows.
    """

    def __init__(self, racks: Mapping[int, str | None], factor: int, start: int, shift: int) -> None:
        self._racks = racks
        self._brokers = alternating(racks)
        self._factor = factor
        self._start = start
        self._shift = shift
        self._racks_in_all = len(set(racks.values()))
        self._knows_racks = any(rack is not None for rack in racks.values())

    def partitions(self, first: int, how_many: int) -> Iterator[list[int]]:
        """The replicas of each; the rounds are counted from the first of these."""
        size, shift = len(self._brokers), self._shift
        for index in range(first, first + how_many):
            if index and index % size == 0:
                shift += 1
            yield self._replicas((index + self._start) % size, shift)

    def _replicas(self, place: int, shift: int) -> list[int]:
        if self._knows_racks:
            return self._over_racks(place, shift * self._racks_in_all)
        size = len(self._brokers)
        return [
            self._brokers[place],
            *(self._brokers[other(place, shift + number, size)] for number in range(self._factor - 1)),
        ]

    def _over_racks(self, place: int, shift: int) -> list[int]:
        size = len(self._brokers)
        chosen = [self._brokers[place]]
        racks = {self._racks[chosen[0]]}
        for number in count():
            if len(chosen) == self._factor:
                return chosen
            broker = self._brokers[other(place, shift + number, size)]
            rack = self._racks[broker]
            if broker not in chosen and (rack not in racks or len(racks) == self._racks_in_all):
                chosen.append(broker)
                racks.add(rack)
        raise AssertionError  # there are as many brokers as replicas, or more


def other(place: int, distance: int, size: int) -> int:
    """Another place than this one, of a circle of so many."""
    return (place + 1 + distance % (size - 1)) % size


def alternating(racks: Mapping[int, str | None]) -> Sequence[int]:
    """By id; where there are racks, one of each in turn."""
    of_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        of_rack.setdefault(racks[broker] or "", []).append(broker)
    rounds = zip_longest(*(of_rack[rack] for rack in sorted(of_rack)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]
