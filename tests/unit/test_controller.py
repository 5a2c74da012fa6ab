"""The controller's decisions, one by one, in a cluster of models (tests/controller_kit.py)."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.pure.controller import events
from pykafkad.pure.controller.facts import RECOVERED, RECOVERING, Leadership, Partition
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import config_znodes, znodes
from tests.controller_kit import SESSION_MS, Life, World

T: Partition = ("t", 0)


def cluster(*replicas: list[int], brokers: int = 3, **config: Any) -> World:
    """Broker 0 is the controller; the topic `t` has a partition for each of these."""
    world = World(brokers, **config)
    world.start(0)
    world.run(50)
    world.start(*range(1, brokers))
    world.run(100)
    if replicas:
        world.create_topic("t", list(replicas))
        world.run(100)
    world.log.clear()
    return world


def asked(world: World, make: Any, *facts: Any) -> Any:
    answers = world.ask(make, *facts)
    world.run(100)
    (answer,) = answers
    return answer


def life(world: World, broker_id: int) -> Life:
    found = world.nodes[broker_id].life
    assert found is not None
    return found


# -- the office


def test_the_first_controller_makes_what_is_not_there() -> None:
    world = cluster()
    assert world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"1"
    assert znodes.read_features(world.zookeeper.data(znodes.FEATURE)) == znodes.Features(1, {}, 2)
    assert znodes.read_controller(world.zookeeper.data(znodes.CONTROLLER)).broker_id == 0


def test_features_that_an_older_protocol_switched_off_are_switched_on() -> None:
    world = World(1)
    old = znodes.write_features(znodes.Features(0, {"gone": 3}, 1))
    world.zookeeper.do(zk.Create(znodes.FEATURE, old))
    world.start(0)
    world.run(100)
    assert znodes.read_features(world.zookeeper.data(znodes.FEATURE)) == znodes.Features(1, {}, 2)


def test_who_loses_its_session_resigns_and_may_be_elected_again() -> None:
    world = cluster([1, 2], brokers=3)
    world.nodes[0].life.zookeeper.expire()  # type: ignore[union-attr]
    world.run(1_000)
    assert world.controller is not None
    assert world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"2"
    active = [node.id for node in world.nodes.values() if node.life and node.life.controlling.is_active]
    assert active == [world.controller.id]
    assert world.state("t").leader == 1


def test_a_controller_that_was_replaced_writes_nothing() -> None:
    world = cluster([1, 2])
    world.zookeeper.do(zk.SetData(znodes.CONTROLLER_EPOCH, b"7"))
    before = world.zookeeper.data(znodes.state(*T))
    world.delete_topic("t")
    world.run(100)
    assert world.zookeeper.data(znodes.state(*T)) == before
    assert world.controller is None
    assert not world.failures


def test_what_waits_at_a_resignation_is_refused() -> None:
    world = cluster()
    controlling = life(world, 0).controlling
    answers: list[Any] = []
    controlling.ask(events.AllocateProducerIds, answers.append, 0, life(world, 0).broker_epoch)
    controlling.ask(events.AllocateProducerIds, answers.append, 0, life(world, 0).broker_epoch)
    controlling.resign()
    world.run(100)
    assert answers[0] == errors.NOT_CONTROLLER  # the second one, which had not begun
    assert len(answers) == 2


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (events.AlterPartition, (1, 1, {}, 107)),
        (events.AllocateProducerIds, (1, 1)),
        (events.ControlledShutdown, (1, 1)),
        (events.ElectLeaders, (None, False)),
        (events.AlterReassignments, ({},)),
        (events.ListReassignments, (None,)),
    ],
)
def test_others_refuse_what_the_controller_is_asked(make: Any, facts: tuple[Any, ...]) -> None:
    world = cluster()
    answers: list[Any] = []
    life(world, 1).controlling.ask(make, answers.append, *facts)
    world.run(10)
    assert answers == [errors.NOT_CONTROLLER]


def test_something_that_is_not_understood_ends_the_term_and_not_the_cluster() -> None:
    world = cluster([1, 2])
    world.zookeeper.nodes[znodes.PRODUCER_ID_BLOCK].data = b"nonsense"
    assert asked(world, events.AllocateProducerIds, 0, life(world, 0).broker_epoch) == errors.NOT_CONTROLLER
    assert len(world.failures) == 1
    world.run(3_000)
    assert world.controller is not None
    assert world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"2"


def test_what_nobody_understands_does_not_have_brokers_elect_each_other_all_the_time() -> None:
    world = cluster([1, 2])
    good = world.zookeeper.nodes[znodes.FEATURE].data
    world.zookeeper.nodes[znodes.FEATURE].data = b"nonsense"
    assert world.controller is not None
    world.nodes[world.controller.id].stop()
    world.run(60_000)
    assert 2 * 5 <= len(world.failures) <= 2 * 10
    world.zookeeper.nodes[znodes.FEATURE].data = good
    world.run(20_000)
    assert world.controller is not None and world.controller.controlling.machine.term is not None


def test_what_cannot_be_done_ends_the_term() -> None:
    world = cluster([1, 2])
    channels = life(world, 0).controlling.channels

    def fail(send: Any) -> None:
        raise KeyError("nothing is sent")

    vars(channels)["send"] = fail
    world.nodes[2].stop()
    world.run(3_000)
    assert world.failures == [
        "the controller gives up its office: BrokersChanged failed: KeyError('nothing is sent')"
    ]
    assert world.controller is not None and world.controller.id == 1
    assert world.state("t").isr == [1]


# -- brokers


@pytest.mark.parametrize(
    "data",
    [b"nonsense", b'{"version":5,"endpoints":["OTHER://h:1"],"jmx_port":-1}'],
    ids=["json", "listener"],
)
def test_one_bad_registration_hides_no_other(data: bytes) -> None:
    """Kafka 3.9's controller takes in nobody as long as such a node stands."""
    world = cluster([1, 2], brokers=4)
    world.nodes[3].stop()
    world.run(100)
    world.zookeeper.do(zk.Create(znodes.broker(9), data))
    world.nodes[3].start()
    world.run(100)
    assert world.controller is not None and world.controller.controlling.machine.term is not None
    assert sorted(world.controller.controlling.machine.term.context.brokers) == [0, 1, 2, 3]


def test_a_broker_that_does_not_answer_holds_up_nobody_else() -> None:
    world = cluster()
    world.nodes[2].crash()  # its session lives on for a while
    world.create_topic("t", [[2, 1], [1, 0]])
    world.run(500)
    to_each = [[line for line in world.log if line.startswith(f"0 -> {each} ")] for each in range(3)]
    assert [len(lines) for lines in to_each[:2]] == [2, 2]
    assert len(to_each[2]) > 3 and len(set(to_each[2])) == 1  # the first one, again and again
    assert life(world, 0).controlling.channels.waiting == 2
    world.run(10_000)
    assert life(world, 0).controlling.channels.waiting == 0
    assert world.state("t").leader == 1


def refuse(world: World, broker_id: int) -> tuple[int, int]:
    """Its process has ended, the controller is told so, and the session lives on; the broker's id and epoch."""
    told = broker_id, life(world, broker_id).broker_epoch
    world.nodes[broker_id].crash()
    life(world, 0).controlling.tell(events.BrokerRefuses(*told))
    world.run(100)
    return told


def test_who_refuses_connections_is_gone_before_its_session_ends() -> None:
    world = cluster([2, 1], [1, 2])
    refuse(world, 2)
    assert znodes.broker(2) in world.zookeeper.nodes
    assert (world.state("t").leader, world.state("t").isr) == (1, [1])
    assert world.state("t", 1).isr == [1]
    assert life(world, 1).live == {0, 1}
    written = [world.state("t", index) for index in range(2)]
    world.run(SESSION_MS)
    assert znodes.broker(2) not in world.zookeeper.nodes
    assert [world.state("t", index) for index in range(2)] == written
    assert life(world, 0).controlling.channels.waiting == 0


def test_an_isr_that_a_leader_wrote_meanwhile_decides() -> None:
    """What the controller read last is only good for a first attempt."""
    world = cluster([1, 2, 3], [2, 1, 3], brokers=4)
    for index, isr in ((0, (1, 3)), (1, (2, 3))):
        state = world.state("t", index)._replace(isr=isr)
        world.zookeeper.do(zk.SetData(znodes.state("t", index), znodes.write_state(state)))
    world.nodes[1].stop()
    world.run(100)
    assert (world.state("t").leader, tuple(world.state("t").isr)) == (3, (3,))
    assert (world.state("t", 1).leader, tuple(world.state("t", 1).isr)) == (2, (2, 3))


def test_who_takes_connections_again_is_back() -> None:
    world = cluster([2, 1])
    told = 2, life(world, 2).broker_epoch
    for event in (events.BrokerRefuses(*told), events.BrokerAnswers(*told)):
        life(world, 0).controlling.tell(event)
        world.run(100)
    assert life(world, 1).live == {0, 1, 2}
    assert world.state("t").leader == 1
    life(world, 1).tend()
    world.run(100)
    assert world.state("t").isr == [1, 2]


def test_who_refused_and_registers_anew_is_back() -> None:
    world = cluster([2, 1])
    told = refuse(world, 2)
    world.run(SESSION_MS)
    world.start(2)
    world.run(100)
    assert life(world, 1).live == {0, 1, 2}
    life(world, 0).controlling.tell(events.BrokerRefuses(*told))  # which came late
    world.run(100)
    assert life(world, 1).live == {0, 1, 2}


def test_other_endpoints_are_told() -> None:
    world = cluster()
    moved = znodes.Registration([znodes.Endpoint("PLAINTEXT", "elsewhere", 1, "PLAINTEXT")])
    world.zookeeper.do(zk.SetData(znodes.broker(2), znodes.write_registration(moved)))
    world.run(100)
    assert world.log[1:] == [f"0 -> {each} UpdateMetadata brokers 0,1,2" for each in range(3)]
    assert life(world, 0).controlling.channels.endpoint_of(2) == ("elsewhere", 1)


def test_a_log_directory_that_failed_costs_its_replicas() -> None:
    world = cluster([1, 2], [2, 1])
    world.nodes[1].bad_logs.add(T)
    event = zk.Create(znodes.log_dir_event(), znodes.write_log_dir_event(1), sequential=True)
    life(world, 1).roles.clear()  # as the broker forgets what is offline
    world.zookeeper.do(event)
    world.run(100)
    assert (world.state("t").leader, world.state("t").isr) == (2, [2])
    assert world.state("t", 1).isr == [2, 1]
    assert not world.zookeeper.nodes[znodes.LOG_DIR_EVENTS].children


def test_a_controlled_shutdown_moves_what_can_be_moved() -> None:
    world = cluster([1, 2], [2, 1], [1])
    epoch = life(world, 1).broker_epoch
    assert asked(world, events.ControlledShutdown, 1, epoch - 1) == errors.STALE_BROKER_EPOCH
    assert asked(world, events.ControlledShutdown, 9, epoch) == errors.UNKNOWN_SERVER_ERROR
    assert asked(world, events.ControlledShutdown, 9, -1) == errors.BROKER_NOT_AVAILABLE
    assert asked(world, events.ControlledShutdown, 1, epoch) == []
    assert [world.state("t", index).leader for index in range(3)] == [2, 2, 1]
    assert [world.state("t", index).isr for index in range(3)] == [[2], [2], [1]]
    change = {T: Leadership(2, 1, (2, 1), partition_epoch=1)}
    outcome = asked(world, events.AlterPartition, 2, life(world, 2).broker_epoch, change, 107)
    assert outcome == {T: 107}  # who is leaving comes into no ISR


def test_a_shutdown_that_nobody_can_take_over_is_told_so() -> None:
    world = cluster([1, 2])
    world.nodes[2].stop()
    world.run(100)
    assert asked(world, events.ControlledShutdown, 1, life(world, 1).broker_epoch) == [T]


# -- elections


def leaderless(**config: Any) -> World:
    """Broker 2 is alive and out of sync; broker 1, who alone was in sync, is gone."""
    world = cluster([1, 2], **config)
    world.nodes[2].stop()
    world.run(100)
    world.nodes[2].start()
    world.run(100)
    world.nodes[1].stop()
    world.run(100)
    return world


def test_nobody_leads_who_was_not_in_sync() -> None:
    state = leaderless().state("t")
    assert (state.leader, state.isr) == (-1, [1])


def test_an_unclean_election_by_config_of_the_broker() -> None:
    state = leaderless(**{"unclean.leader.election.enable": True}).state("t")
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, [2], RECOVERING)


def test_an_unclean_election_on_request() -> None:
    world = leaderless()
    assert asked(world, events.ElectLeaders, [T], True) == {T: 2}
    assert world.state("t").leader_recovery_state == RECOVERING


@pytest.mark.parametrize("topic", ["t", None])
def test_an_unclean_election_when_it_is_enabled(topic: str | None) -> None:
    world = leaderless()
    configs = config_znodes.write_config({"unclean.leader.election.enable": "true"})
    world.zookeeper.do(zk.SetData(config_znodes.config("topics", "t"), configs))
    life(world, 0).controlling.tell(events.UncleanElectionEnabled(topic))
    world.run(100)
    assert world.state("t").leader == 2


def test_configs_of_a_topic_that_cannot_be_read_do_not_end_the_term() -> None:
    world = leaderless()
    world.zookeeper.do(zk.SetData(config_znodes.config("topics", "t"), b"nonsense"))
    life(world, 0).controlling.tell(events.UncleanElectionEnabled(None))
    world.run(100)
    assert world.failures == []
    assert world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"1" and world.state("t").leader == -1


def test_the_outcomes_of_elections() -> None:
    world = cluster([1, 2], [0, 2], [1])
    world.nodes[1].stop()
    world.run(100)
    partitions = [T, ("t", 1), ("t", 2), ("t", 9)]
    outcomes = asked(world, events.ElectLeaders, partitions, False)
    assert {partition: outcome[0] for partition, outcome in outcomes.items()} == {
        T: errors.PREFERRED_LEADER_NOT_AVAILABLE,
        ("t", 1): errors.ELECTION_NOT_NEEDED,
        ("t", 2): errors.PREFERRED_LEADER_NOT_AVAILABLE,
        ("t", 9): errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    outcomes = asked(world, events.ElectLeaders, [("t", 2)], True)
    assert outcomes[("t", 2)][0] == errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
    outcomes = asked(world, events.ElectLeaders, None, False)
    assert sorted(outcomes) == [T, ("t", 2)]  # not those that need none


@pytest.mark.parametrize("is_enabled", [True, False])
def test_leadership_goes_back_by_itself(is_enabled: bool) -> None:
    world = cluster([1, 2], [1, 2], **{"auto.leader.rebalance.enable": is_enabled})
    world.nodes[1].stop()
    world.run(100)
    world.nodes[1].start()
    world.run(100)
    life(world, 2).tend()
    world.run(100)
    assert [world.state("t", index).leader for index in range(2)] == [2, 2]
    world.run(310_000)
    assert [world.state("t", index).leader for index in range(2)] == ([1, 1] if is_enabled else [2, 2])


def test_old_tools_ask_for_elections_by_a_znode() -> None:
    world = cluster([1, 2])
    life(world, 0).controlling.ask(events.ElectLeaders, lambda _: None, None, False)
    asked(world, events.AlterReassignments, {T: [2, 1]})
    assert world.state("t").leader == 1
    wish = znodes.write_preferred_election([T, ("t", 9)])
    world.zookeeper.do(zk.Create(znodes.PREFERRED_ELECTION, wish))
    world.run(100)
    assert world.state("t").leader == 2
    assert znodes.PREFERRED_ELECTION not in world.zookeeper.nodes


# -- the ISR


def change(world: World, new: Leadership, by: int = 1) -> Any:
    answer = asked(world, events.AlterPartition, by, life(world, by).broker_epoch, {T: new}, 107)
    return answer[T]


def test_an_isr_is_changed() -> None:
    world = cluster([1, 2])
    found = change(world, Leadership(1, 0, (1,)))
    assert (found.isr, found.leader_epoch, found.partition_epoch) == ((1,), 0, 1)
    assert world.state("t").isr == [1]
    # Asked for again, since the answer was lost, it is so already.
    assert change(world, Leadership(1, 0, (1,))) == found


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (Leadership(1, 0, (1,), partition_epoch=1), errors.NOT_CONTROLLER),
        (Leadership(1, 1, (1,)), errors.NOT_CONTROLLER),
        (Leadership(1, -1, (1,)), errors.FENCED_LEADER_EPOCH),
        (Leadership(1, 0, (1,), partition_epoch=-1), errors.INVALID_UPDATE_VERSION),
        (Leadership(1, 0, (1,), RECOVERING), errors.INVALID_REQUEST),
        (Leadership(1, 0, ()), errors.INVALID_REQUEST),
        (Leadership(1, 0, (2,)), errors.INVALID_REQUEST),
        (Leadership(1, 0, (1, 1)), errors.INVALID_REQUEST),
        (Leadership(1, 0, (1, 2, 0)), errors.INVALID_REQUEST),  # no replica
    ],
)
def test_isrs_that_are_refused(new: Leadership, code: int) -> None:
    world = cluster([1, 2])
    assert change(world, new) == code
    assert world.state("t").isr == [1, 2]


def test_only_the_leader_changes_the_isr() -> None:
    world = cluster([1, 2])
    assert change(world, Leadership(2, 0, (2,)), by=2) == errors.INVALID_REQUEST


def test_who_is_dead_comes_into_no_isr() -> None:
    world = cluster([1, 2])
    world.nodes[2].stop()
    world.run(100)
    assert change(world, Leadership(1, 1, (1, 2), partition_epoch=1)) == 107


def test_a_broker_of_another_epoch_asks_in_vain() -> None:
    world = cluster([1, 2])
    epoch = life(world, 1).broker_epoch
    wanted = {T: Leadership(1, 0, (1,))}
    assert asked(world, events.AlterPartition, 1, epoch + 1, wanted, 107) == errors.STALE_BROKER_EPOCH
    assert asked(world, events.AlterPartition, 9, epoch, wanted, 107) == errors.STALE_BROKER_EPOCH


def test_topics_may_be_named_by_id() -> None:
    world = cluster([1, 2])
    topic_id = world.assignment("t").topic_id
    wanted = {(topic_id, 0): Leadership(1, 0, (1,)), (bytes(16), 0): Leadership(1, 0, (1,))}
    answer = asked(world, events.AlterPartition, 1, life(world, 1).broker_epoch, wanted, 107)
    assert answer[topic_id, 0].isr == (1,)
    assert answer[bytes(16), 0] == errors.UNKNOWN_TOPIC_ID


def test_leaders_of_older_versions_write_the_isr_themselves() -> None:
    world = cluster([1, 2])
    state = znodes.write_state(world.state("t")._replace(isr=[1]))
    world.zookeeper.do(
        zk.SetData(znodes.state(*T), state),
        zk.Create(znodes.isr_change(), znodes.write_isr_change([T, ("t", 9)]), sequential=True),
    )
    world.run(100)
    assert "0 -> 2 UpdateMetadata brokers 0,1,2; t-0 leader 1 epoch 0 isr 1 version 1 of 1,2" in world.log
    assert not world.zookeeper.nodes[znodes.ISR_CHANGES].children


def test_a_leader_that_was_elected_uncleanly_has_recovered() -> None:
    world = leaderless(**{"unclean.leader.election.enable": True})
    state = world.state("t")
    version = world.zookeeper.nodes[znodes.state(*T)].version
    too_many = Leadership(2, state.leader_epoch, (2, 1), RECOVERING, version)
    assert change(world, too_many, by=2) == errors.INVALID_REQUEST
    found = change(world, Leadership(2, state.leader_epoch, (2,), RECOVERED, version), by=2)
    assert found.recovery == RECOVERED
    assert b"recovery" not in (world.zookeeper.data(znodes.state(*T)) or b"")


# -- producer ids


def test_producer_ids_are_given_once() -> None:
    world = cluster()
    epoch = life(world, 1).broker_epoch
    assert asked(world, events.AllocateProducerIds, 1, epoch) == (0, 1_000)
    assert asked(world, events.AllocateProducerIds, 1, epoch) == (1_000, 1_000)
    block = znodes.read_producer_ids(world.zookeeper.data(znodes.PRODUCER_ID_BLOCK))
    assert block == znodes.ProducerIdBlock(1, 1_000, 1_999)
    assert asked(world, events.AllocateProducerIds, 9, epoch) == errors.BROKER_ID_NOT_REGISTERED
    assert asked(world, events.AllocateProducerIds, 1, epoch - 1) == errors.STALE_BROKER_EPOCH


# -- topics


def test_a_topic_without_an_id_gets_one() -> None:
    world = cluster()
    node = znodes.Assignment(bytes(16), {0: znodes.Replicas([1])})
    world.zookeeper.do(zk.Create(znodes.topic("old"), znodes.write_assignment(node)))
    world.run(100)
    assert world.assignment("old").topic_id != bytes(16)
    assert world.state("old").leader == 1


def test_a_topic_whose_node_cannot_be_read_hides_no_other() -> None:
    world = cluster()
    world.zookeeper.do(zk.Create(znodes.topic("bad"), b"nonsense"))
    world.create_topic("t", [[1]])
    world.run(100)
    assert world.state("t").leader == 1
    assert not world.failures


def test_a_partition_whose_replicas_are_dead_waits_for_them() -> None:
    world = cluster()
    world.nodes[2].stop()
    world.run(100)
    world.create_topic("t", [[2], [1, 2]])
    world.run(100)
    assert world.state("t", 1).isr == [1]
    assert znodes.state("t", 0) not in world.zookeeper.nodes
    world.nodes[2].start()
    world.run(100)
    assert world.state("t").leader == 2


def test_partitions_added_to_a_topic_that_goes_are_taken_back() -> None:
    world = cluster([1, 2])
    world.nodes[2].stop()
    world.run(100)
    world.delete_topic("t")
    world.run(100)
    world.grow("t", [1])
    world.run(100)
    assert list(world.assignment("t").partitions) == [0]
    world.nodes[2].start()
    world.run(100)
    assert znodes.topic("t") not in world.zookeeper.nodes


def is_gone(world: World, name: str = "t") -> bool:
    """In ZooKeeper and on the disks."""
    nodes = (znodes.topic(name), znodes.delete_topic(name))
    on_disks = [node.id for node in world.nodes.values() if any(each[0] == name for each in node.disk)]
    return not on_disks and not any(node in world.zookeeper.nodes for node in nodes)


def test_a_topic_goes_when_a_broker_that_died_meanwhile_is_back() -> None:
    world = cluster([1, 2], [2, 1])
    world.delete_topic("t")
    while T in world.nodes[1].disk:
        world.step()
    world.nodes[2].stop()
    world.run(100)
    assert znodes.topic("t") in world.zookeeper.nodes
    world.nodes[2].start()
    world.run(100)
    assert is_gone(world)


def test_the_next_controller_goes_on_with_a_deletion() -> None:
    world = cluster([1, 2])
    world.delete_topic("t")
    world.zookeeper.do(zk.Delete(znodes.CONTROLLER))
    world.run(200)
    assert world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"2" and is_gone(world)


def test_the_next_controller_waits_for_the_dead_too() -> None:
    world = cluster([1, 2])
    world.nodes[2].stop()
    world.run(100)
    world.delete_topic("t")
    world.run(100)
    world.zookeeper.do(zk.Delete(znodes.CONTROLLER))
    world.run(100)
    assert (
        world.zookeeper.data(znodes.CONTROLLER_EPOCH) == b"2" and znodes.topic("t") in world.zookeeper.nodes
    )
    assert not [line for line in world.log if "2: StopReplica" in line]
    world.nodes[2].start()
    world.run(100)
    assert is_gone(world)


def test_what_a_broker_could_not_delete_is_deleted_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = cluster([1, 2])

    def fail(request: Any, answer: Any) -> None:
        Life._stop(broken, request, answer)
        for outcome in answer.partition_errors:
            outcome.error_code = errors.KAFKA_STORAGE_ERROR
            world.nodes[2].disk[T] = b"still there"

    broken = life(world, 2)
    monkeypatch.setattr(broken, "_stop", fail)
    world.delete_topic("t")
    world.run(100)
    assert znodes.topic("t") in world.zookeeper.nodes and T not in world.nodes[1].disk
    world.nodes[2].stop()
    world.nodes[2].start()
    world.run(100)
    assert is_gone(world)


def test_a_topic_whose_node_goes_is_no_topic_any_more() -> None:
    world = cluster([1, 2])
    code(world, [0, 2])
    before = world.zookeeper.nodes.keys()
    world.zookeeper.do(
        *(zk.Delete(each) for each in sorted(before, reverse=True) if each.startswith(znodes.topic("t")))
    )
    world.run(100)
    assert asked(world, events.ListReassignments, None) == {}
    assert code(world, [0]) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.failures


def test_a_broker_that_comes_again_at_once_has_to_catch_up() -> None:
    world = cluster([1, 2])
    world.nodes[1].stop()
    world.nodes[1].start()
    world.run(100)
    assert (world.state("t").leader, world.state("t").isr) == (2, [2])
    life(world, 2).tend()
    world.run(100)
    assert world.state("t").isr == [2, 1]
    assert life(world, 1).roles[T].leader == 2


def test_nothing_is_deleted_where_that_is_switched_off() -> None:
    world = cluster([1, 2], **{"delete.topic.enable": False})
    world.delete_topic("t")
    world.run(100)
    assert znodes.delete_topic("t") not in world.zookeeper.nodes
    assert world.state("t").leader == 1


def test_the_wish_to_delete_what_is_not_there_is_forgotten() -> None:
    world = cluster()
    world.delete_topic("never")
    world.run(100)
    assert znodes.delete_topic("never") not in world.zookeeper.nodes


# -- reassignments


def code(world: World, target: list[int] | None, partition: Partition = T) -> int:
    outcome = asked(world, events.AlterReassignments, {partition: target})[partition]
    return int(outcome[0])


def test_reassignments_that_are_refused() -> None:
    world = cluster([1, 2])
    assert code(world, []) == errors.INVALID_REPLICA_ASSIGNMENT
    assert code(world, [1, 1]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert code(world, [-1]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert code(world, [9]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert code(world, None) == errors.NO_REASSIGNMENT_IN_PROGRESS
    assert code(world, [1], ("t", 9)) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert world.assignment("t").partitions[0].replicas == [1, 2]
    for target, why in (
        ([1, 1], "Duplicate replica ids in partition reassignment replica list: List(1, 1)"),
        ([2, -1], "Invalid broker id in replica list: List(2, -1)"),
        (
            [9, 1, 8],
            "Replica assignment has brokers that are not alive. Replica list: List(9, 8),"
            " live broker list: Set(0, 1, 2)",
        ),
    ):
        (outcome,) = asked(world, events.AlterReassignments, {T: target}).values()
        assert outcome == (errors.INVALID_REPLICA_ASSIGNMENT, why)


def test_a_reassignment_is_listed_until_it_ends() -> None:
    world = cluster([1, 2])
    assert code(world, [0, 2]) == errors.NONE
    (assignment,) = asked(world, events.ListReassignments, None).values()
    assert assignment == ((0, 2, 1), (0,), (1,))
    assert asked(world, events.ListReassignments, [("t", 5)]) == {}
    life(world, 1).tend()
    world.run(200)
    assert asked(world, events.ListReassignments, None) == {}
    assert world.assignment("t").partitions[0] == ([0, 2], [], [])
    assert ("t", 0) not in world.nodes[1].disk


def half_reassigned() -> World:
    """A partition of broker 1 is to go to 2 and 3, of which 3 has stopped."""
    world = cluster([1], brokers=4)
    assert code(world, [2, 3]) == errors.NONE
    world.nodes[3].stop()
    world.run(100)
    life(world, 1).tend()
    world.run(100)
    return world


def test_who_alone_is_in_sync_is_not_taken_back() -> None:
    """In Kafka 3.9 its log would be deleted then, and what only it has be lost."""
    world = half_reassigned()
    world.nodes[1].stop()
    world.run(100)
    assert world.state("t").isr == [2]
    assert code(world, None) == errors.INVALID_REPLICA_ASSIGNMENT
    assert (world.state("t").leader, T in world.nodes[2].disk) == (2, True)
    for node in (world.nodes[1], world.nodes[3]):
        node.start()
    world.run(100)
    life(world, 2).tend()
    world.run(200)
    assert world.assignment("t").partitions[0] == ([2, 3], [], [])


def test_a_topic_that_is_reassigned_is_deleted_from_old_and_new_replicas() -> None:
    world = cluster([1, 2])
    assert code(world, [0, 2]) == errors.NONE
    assert all(T in node.disk for node in world.nodes.values())
    world.delete_topic("t")
    world.run(100)
    assert is_gone(world) and asked(world, events.ListReassignments, None) == {}


@pytest.mark.parametrize("comes_again", [True, False])
def test_who_was_to_leave_and_has_not_said_so_yet(comes_again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for when it is gone; a topic that is deleted then is deleted there as well."""
    world = cluster([1, 2])
    monkeypatch.setattr(life(world, 1), "_stop", lambda request, answer: None)
    assert code(world, [0, 2]) == errors.NONE
    life(world, 1).tend()
    world.run(100)
    assert world.assignment("t").partitions[0] == ([0, 2, 1], [0], [1]) and T in world.nodes[1].disk
    if comes_again:
        world.delete_topic("t")
        world.run(100)
        world.nodes[1].stop()
        world.nodes[1].start()
        world.run(100)
        assert is_gone(world)
    else:
        world.nodes[1].stop()
        world.run(100)
        assert world.assignment("t").partitions[0] == ([0, 2], [], [])


def test_a_reassignment_waits_for_a_broker_that_is_to_have_the_partition() -> None:
    world = half_reassigned()
    assert world.assignment("t").partitions[0] == ([2, 3, 1], [2, 3], [1])
    world.nodes[3].start()
    world.run(100)
    life(world, 1).tend()
    world.run(200)
    assert world.assignment("t").partitions[0] == ([2, 3], [], [])
    assert T not in world.nodes[1].disk and world.state("t").leader in (2, 3)


def test_a_reassignment_goes_elsewhere_than_it_began() -> None:
    world = cluster([1], brokers=4)
    world.nodes[2].bad_logs.add(T)
    assert code(world, [2]) == errors.NONE
    assert world.assignment("t").partitions[0] == ([2, 1], [2], [1])
    assert code(world, [3]) == errors.NONE
    assert world.assignment("t").partitions[0] == ([3, 1], [3], [1])
    life(world, 1).tend()
    world.run(200)
    assert world.assignment("t").partitions[0] == ([3], [], [])
    assert [node.id for node in world.nodes.values() if T in node.disk] == [3]


def test_a_reassignment_is_taken_back() -> None:
    world = cluster([1, 2], brokers=4)
    assert code(world, [3, 0]) == errors.NONE
    assert T in world.nodes[3].disk
    assert code(world, None) == errors.NONE
    world.run(200)
    assert world.assignment("t").partitions[0] == ([1, 2], [], [])
    assert [node.id for node in world.nodes.values() if T in node.disk] == [1, 2]
    assert asked(world, events.ListReassignments, None) == {}


def test_who_had_a_replica_and_gets_it_again_is_asked_for_it_at_the_end() -> None:
    world = cluster([1, 2])
    for target in ([0, 2], [1, 2]):
        assert code(world, target) == errors.NONE
        life(world, world.state("t").leader).tend()
        world.run(200)
        assert world.assignment("t").partitions[0] == (target, [], [])
    assert [node.id for node in world.nodes.values() if T in node.disk] == [1, 2]
    world.delete_topic("t")
    world.run(100)
    assert is_gone(world)


def test_old_tools_reassign_by_a_znode() -> None:
    world = cluster([1, 2], [1, 2])
    wish = znodes.write_reassignment({T: [0, 2], ("t", 9): [1]})
    world.zookeeper.do(zk.Create(znodes.REASSIGN_PARTITIONS, wish))
    world.run(100)
    assert world.assignment("t").partitions[0].replicas == [0, 2, 1]
    life(world, 1).tend()
    world.run(200)
    assert world.assignment("t").partitions[0].replicas == [0, 2]
    assert znodes.REASSIGN_PARTITIONS not in world.zookeeper.nodes
