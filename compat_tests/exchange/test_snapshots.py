"""Snapshots of the metadata are exchanged too: each program starts from the other's, also if the log below is gone."""

from __future__ import annotations

from compat_tests.exchange.home import KAFKA, PYKAFKAD, Home
from compat_tests.exchange.test_exchange import decoded, turn
from compat_tests.exchange.world import World
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_reading import Contents, read_directory
from pykafkad.cluster.metadata_retention import Retention

SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "internal.metadata.log.segment.bytes": "1500",
}


def contents(home: Home) -> Contents:
    return read_directory(str(home.metadata), Image())


def remove_what_is_covered(home: Home) -> None:
    """What the periodic job would delete, without waiting for it."""
    found = contents(home)
    segments = [(base, size) for base, size in found.segments]
    start = Retention(str(home.metadata), found.snapshots, segments, 0, -1).run(0)
    left = contents(home)
    assert left.snapshot is not None and left.snapshots == [left.snapshot] and start == left.snapshot[0]
    assert 0 < left.segments[0][0] <= left.snapshot[0], "the oldest segment is still there"


def test_each_starts_from_the_others_snapshot_and_the_log_behind_it(home: Home) -> None:
    home.pykafkad_config.update(SMALL)
    home.kafka_config.update(SMALL)
    world = World(home)
    for kill in (False, True):
        for side in (PYKAFKAD, KAFKA):
            turn(world, side, kill=kill)
            assert contents(home).snapshots
            remove_what_is_covered(home)
    home.run(PYKAFKAD)
    world.check()
    home.end()
    decoded(home)
