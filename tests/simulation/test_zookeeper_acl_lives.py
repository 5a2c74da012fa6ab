"""Random lives of brokers that change ACLs in one ZooKeeper: connections lost and won, sessions that expire, answers late
and in any order between brokers.

What must hold: every request is answered once; an ACL that was made and acknowledged, and that nobody has removed since,
is there, and one whose removal was acknowledged is not; when all is quiet, every broker decides by what the znodes say;
and a broker never decides by an ACL that nobody has asked for. SEED=n replays one life, RUNS=n makes more of them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from pykafkad.cluster.acls import Deleted
from pykafkad.cluster.image import Image
from pykafkad.cluster.publishing import ACLS, Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper.acl_znodes import AclZnodes
from pykafkad.cluster.zookeeper.acls import ClusterAcls
from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.cluster.zookeeper.notifications import KEPT_MS
from pykafkad.pure.acl_rules import RulesOfZooKeeper
from pykafkad.pure.acls import Acl, Filter, Pattern
from pykafkad.slices import Slices
from pykafkad.zookeeper.config_znodes import ACL_PATHS, ACL_ROOTS, RESOURCE_TYPES, read_acls
from tests.zookeeper_lives import ZooKeeperLife, live_through

RUNS = int(os.environ.get("RUNS", "150"))
STEPS = 300
SEEDS = [20_261_120 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
A_RUN = 50
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
PATTERNS = [Pattern(2, "t", 3), Pattern(2, "t", 4), Pattern(3, "*", 3)]


class Attempt:
    """One request to make these ACLs, or to remove them, and when it was under way."""

    def __init__(self, acls: list[Acl], is_made: bool, began: int) -> None:
        self.acls = acls
        self.is_made = is_made
        self.began = began
        self.ended: int | None = None
        self.acknowledged: set[Acl] = set()


class Broker:
    def __init__(self, life: Life) -> None:
        self.image = Image()
        self.image.take_delta()
        self.zookeeper = life.server.client()
        run = Slices(life.soon, life).run  # type: ignore[arg-type]
        publishers = Publishers()
        znodes = AclZnodes(
            Asking(self.zookeeper), life.now_ms, lambda ms, call: life.soon(call), life.chance.randrange
        )
        self.rules = RulesOfZooKeeper()
        line = Turns(run)
        self.acls = ClusterAcls(self.zookeeper, znodes, self.image, self.rules, publishers, line.run, run)
        publishers.add(ACLS, self.acls.publish)
        self.zookeeper.start()
        self.acls.load(lambda error: None)

    @property
    def held(self) -> set[Acl]:
        return {acl for pattern in self.rules.patterns for acl in self.rules.of(pattern)}


class Life(ZooKeeperLife[Broker]):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.brokers = [Broker(self) for _ in range(self.chance.randint(1, 3))]
        self.attempts: list[Attempt] = []
        self.asked: set[Acl] = set()

    # -- what happens

    def acl(self) -> Acl:
        permission = self.chance.choice([2, 3])
        return Acl(*self.chance.choice(PATTERNS), "User:ann", self.chance.choice("123"), 3, permission)

    def create(self) -> None:
        attempt = Attempt([self.acl() for _ in range(self.chance.randint(1, 3))], True, self.time)
        self.asked.update(attempt.acls)
        self.attempts.append(attempt)

        def told(errors: list[Any]) -> None:
            assert attempt.ended is None
            attempt.ended = self.time
            attempt.acknowledged = {
                acl for acl, error in zip(attempt.acls, errors, strict=True) if error is None
            }

        self.chance.choice(self.brokers).acls.create(attempt.acls, told)

    def delete(self) -> None:
        """Of patterns that are named: those are looked up, whatever a broker knows by then."""
        attempt = Attempt([self.acl() for _ in range(self.chance.randint(1, 2))], False, self.time)
        self.attempts.append(attempt)

        def told(found: list[Deleted]) -> None:
            assert attempt.ended is None
            attempt.ended = self.time
            failed = {acl for each in found for acl, error in each.acls if error is not None}
            if all(each.error is None for each in found):
                attempt.acknowledged = set(attempt.acls) - failed
            assert {acl for each in found for acl, _ in each.acls} <= set(attempt.acls)

        filters = [Filter(*acl) for acl in attempt.acls]
        self.chance.choice(self.brokers).acls.delete(filters, told)

    def disturb(self) -> None:
        client = self.chance.choice(self.brokers).zookeeper
        what = self.chance.random()
        if what < 0.4 and client.is_connected:
            client.disconnect()
        elif what < 0.7 and not client.is_connected:
            client.reconnect()
        elif what < 0.85 and client.session_id:
            client.expire()
        else:
            self.ms += self.chance.choice([1, 1000, KEPT_MS])

    def live(self) -> None:
        for _ in range(STEPS):
            what = self.chance.random()
            if what < 0.05:
                self.create()
            elif what < 0.08:
                self.delete()
            elif what < 0.12:
                self.disturb()
            else:
                self.move()
            for broker in self.brokers:
                assert broker.held <= self.asked

    # -- what must hold

    def stored(self) -> set[Acl]:
        found = set()
        for pattern_type, (root, _) in ACL_ROOTS.items():
            for kind, name in RESOURCE_TYPES.items():
                for path, data in self.server.tree(f"{root}/{name}").items():
                    assert path in ACL_PATHS or data, f"{path} is left without an ACL"
                    pattern = Pattern(kind, path.rpartition("/")[2], pattern_type)
                    found |= {
                        Acl(*pattern, each.principal, each.host, each.operation, each.permission)
                        for each in read_acls(data)
                    }
        return found

    def check(self) -> None:
        assert all(each.ended is not None for each in self.attempts)
        stored = self.stored()
        for broker in self.brokers:
            assert broker.held == stored
        for acl in self.asked:
            self.check_one(acl, is_there=acl in stored)

    def check_one(self, acl: Acl, *, is_there: bool) -> None:
        """Somebody made it so (or it was never there), and nobody has undone it after that."""
        nobody = Attempt([acl], False, -1)
        nobody.ended = -1
        those = [nobody, *(each for each in self.attempts if acl in each.acls)]
        last = max((each.began for each in those if acl in each.acknowledged), default=-1)
        may_be = {each.is_made for each in those if each.ended is None or each.ended >= last}
        assert is_there in may_be, (acl, is_there)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_a_life(seeds: list[int]) -> None:
    live_through(seeds, Life)
