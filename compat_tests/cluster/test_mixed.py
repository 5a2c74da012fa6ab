"""Real Kafka 3.9.2 brokers and ours in one cluster: either may be the controller, lead, follow, coordinate; and a cluster
goes over from one to the other, broker by broker, while clients write."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.cluster.brokers import KAFKA, OURS, MixedCluster
from compat_tests.cluster.records import Writer, check_nothing_lost, read_all

TOPIC, PARTITIONS = "mixed", 6
WAIT_S = 60.0


def make_controller(cluster: MixedCluster, kind: str) -> int:
    """Stop the controllers of the other kind until one of this kind is elected."""
    while True:
        controller = cluster.status()["controller"]
        if cluster.kinds.of[controller] == kind:
            return int(controller)
        cluster.stop(controller)
        cluster.until_another_controls(controller)
        cluster.start(controller)


@pytest.mark.parametrize("controller", [OURS, pytest.param(KAFKA, marks=pytest.mark.long)])
def test_both_kinds_lead_and_follow_under_a_controller_of_either(controller: str) -> None:
    kinds = [OURS, KAFKA, OURS] if controller == KAFKA else [KAFKA, OURS, KAFKA]
    with MixedCluster(kinds) as cluster:
        make_controller(cluster, controller)
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.until_in_sync()
        with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
            writer.goes_on()
            for id in range(3):
                cluster.kill(id)
                cluster.until_led()
                writer.goes_on()
                cluster.start(id)
                cluster.until_in_sync()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), [(KAFKA, OURS), (OURS, KAFKA)])
def test_a_cluster_goes_over_broker_by_broker(before: str, after: str) -> None:
    with MixedCluster([before] * 3, {TOPIC: PARTITIONS, "transactions": 2}) as cluster:
        cluster.until_in_sync()
        with Writer(cluster.bootstrap_servers, TOPIC, PARTITIONS) as writer:
            counted = Counting(cluster.bootstrap_servers)
            for id in range(3):
                writer.goes_on()
                counted.transact()
                cluster.replace(id, after)
                cluster.until_in_sync()
                counted.transact()
            writer.goes_on()
        check_nothing_lost(writer, read_all(cluster.bootstrap_servers, TOPIC, PARTITIONS))
        assert sorted(read_all(cluster.bootstrap_servers, "transactions", 2)) == sorted(counted.committed)
        assert counted.group_has_read() == len(counted.committed)


class Counting:
    """Transactions that end, and a group whose committed offset says how far it has read."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._count = 0
        self.committed: list[str] = []
        self._group = 0

    def transact(self) -> None:
        """One that is committed, one that is aborted; and the group reads on."""
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "counting",
                "log_level": 0,
                "acks": "all",
            }
        )
        producer.init_transactions(WAIT_S)
        for commits in (True, False):
            producer.begin_transaction()
            values = [f"{'kept' if commits else 'dropped'} {self._count} {index}" for index in range(4)]
            for index, value in enumerate(values):
                producer.produce("transactions", value, partition=index % 2)
            producer.flush(WAIT_S)
            if commits:
                producer.commit_transaction(WAIT_S)
                self.committed += values
            else:
                producer.abort_transaction(WAIT_S)
            self._count += 1
        self._read_on()

    def _read_on(self) -> None:
        consumer = self._consumer()
        consumer.subscribe(["transactions"])
        found = 0
        while found < len(self.committed) - self._group:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"the group has read {self._group + found} of {len(self.committed)}"
            if not message.error():
                found += 1
        consumer.commit(asynchronous=False)
        consumer.close()
        self._group += found

    def group_has_read(self) -> int:
        return self._group

    def _consumer(self) -> Consumer:
        config = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "counting",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        return Consumer(config)
