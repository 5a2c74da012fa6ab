"""A broker beside Kafka's controllers: which cluster it joins, how it goes, and what it does when they do not answer."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.beside_kraft import KraftBroker
from pykafkad.clock import ManualClock
from pykafkad.config import BrokerConfig
from pykafkad.errors import StartupError
from pykafkad.pure.kraft.lifecycle import State
from pykafkad.quiet import always
from pykafkad.server import Broker
from pykafkad.storage.directories import META_PROPERTIES

WAIT_MS = 60_000


class Node:
    """A broker that was never made, on a loop in which a pass takes as long as it may."""

    def __init__(self, path: Path, **texts: str) -> None:
        config = {
            "process.roles": "broker",
            "node.id": "5",
            "controller.quorum.voters": "1@10.0.0.1:9093,2@10.0.0.2:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{path}/a,{path}/b",
        }
        self.clock = ManualClock()
        self.timers: list[tuple[int, Any]] = []
        self.soon: list[Any] = []
        self.stops = 0
        self.asked: list[tuple[int, Any]] = []  # nodes, and who is to be told
        self.machine = SimpleNamespace(state=State.STARTING)
        broker: Any = KraftBroker.__new__(KraftBroker)
        vars(broker).update(
            config=BrokerConfig({**config, **{key.replace("_", "."): text for key, text in texts.items()}}),
            node_id=5,
            clock=self.clock,
            exit_code=0,
            _stopping=False,
            quiet=SimpleNamespace(allows=always),
            reactor=SimpleNamespace(
                run_pass=self.run_pass,
                call_later=lambda delay_ms, *call: self.timers.append(
                    (self.clock.monotonic_ms() + delay_ms, call)
                ),
                call_soon=self.soon.append,
                stop=self._stop,
            ),
            controllers=SimpleNamespace(configured=[1, 2], peers=SimpleNamespace(to=self._to)),
            kraft=SimpleNamespace(presence=SimpleNamespace(machine=self.machine, leave=self._leave)),
        )
        self.broker = broker
        self.has_left = False

    def run_pass(self, at_most_ms: int) -> None:
        self.clock.advance(at_most_ms)
        now_ms = self.clock.monotonic_ms()
        due, self.timers = (
            [timer for timer in self.timers if (timer[0] <= now_ms) == is_due] for is_due in (True, False)
        )
        for _, (callback, *arguments) in due:
            callback(*arguments)

    def _to(self, node: int, purpose: Any) -> Any:
        assert purpose.asks_versions

        def ask_built(key: int, newest: int, build: Any, done: Any, *, oldest: int) -> None:
            request = build(newest)
            assert (key, request.api_key, request.endpoint_type) == (60, 60, 2), "whose cluster it is"
            assert oldest == newest == 1, "that can be asked since version 1"
            self.asked.append((node, done))

        return SimpleNamespace(ask_built=ask_built)

    def _stop(self) -> None:
        self.stops += 1

    def _leave(self) -> None:
        self.has_left = True


def described(cluster_id: str = "", code: int = 0) -> Any:
    return messages.DescribeClusterResponse(error_code=code, cluster_id=cluster_id)


# -- which cluster


def test_a_directory_or_the_config_says_which_cluster_it_is(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / META_PROPERTIES).touch()
    named = {"pykafkad_cluster_id": "5L6g3nShT-eMCtK--X86sw"}
    for node in (Node(tmp_path), Node(tmp_path / "other", **named)):
        assert node.broker._id_of_cluster() is None and not node.asked


def test_a_new_broker_joins_the_cluster_of_its_controllers(tmp_path: Path, said: io.StringIO) -> None:
    node = Node(tmp_path)
    answers: list[Any] = [OSError("away"), described(code=errors.NOT_CONTROLLER), described("theirs")]
    run_pass = node.run_pass

    def passing(at_most_ms: int) -> None:
        run_pass(at_most_ms)
        if answers and node.asked:
            node.asked.pop(0)[1](answers.pop(0))

    node.broker.reactor.run_pass = passing
    assert node.broker._id_of_cluster() == "theirs"
    assert node.clock.monotonic_ms() < 1000, "who does not know it is asked again soon"
    assert "does not say which cluster this is: away; it is asked again" in said.getvalue()
    assert "does not say which cluster this is: NOT_CONTROLLER; it is asked again" in said.getvalue()
    assert "new directories join the cluster theirs" in said.getvalue()
    for _, done in node.asked:
        done(OSError("late"))
    assert "late" not in said.getvalue() and len(node.timers) < 2, "nobody else is asked then"


def test_without_an_answer_it_does_not_start(tmp_path: Path) -> None:
    node = Node(tmp_path, initial_broker_registration_timeout_ms="5000")
    with pytest.raises(StartupError, match=r"no controller has said in 5000 ms .*: none was reached"):
        node.broker._id_of_cluster()
    assert [each for each, _ in node.asked] == [1, 2] and 5000 < node.clock.monotonic_ms() <= 5200
    node.asked[0][1](described(code=errors.CLUSTER_AUTHORIZATION_FAILED))
    again = Node(tmp_path, initial_broker_registration_timeout_ms="0")
    again.broker.reactor.run_pass = lambda ms: (
        again.clock.advance(ms),
        again.asked.pop()[1](OSError("refused")),
    )
    with pytest.raises(StartupError, match=r": refused$"):
        again.broker._id_of_cluster()


# -- the start


@pytest.mark.parametrize(
    ("directories", "epoch"),
    [
        ([(7, True), (7, True)], 7),
        ([(7, True)], 7),
        ([(7, True), (8, True)], -1),
        ([(7, True), (7, False)], -1),
    ],
)
def test_a_clean_stop_is_one_that_all_directories_remember(
    tmp_path: Path, directories: list[tuple[int, bool]], epoch: int
) -> None:
    node = Node(tmp_path)
    rows = [SimpleNamespace(broker_epoch=known, was_clean=clean) for known, clean in directories]
    node.broker.storage = SimpleNamespace(directories=rows)
    assert node.broker._epoch_of_last_stop() == epoch


def test_it_waits_for_what_comes_in_time(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.broker._runs_until(lambda: True, -1), "what is done needs no time"
    assert node.broker._runs_until(lambda: node.clock.monotonic_ms() >= 1000, 1000)
    assert not node.broker._runs_until(lambda: node.clock.monotonic_ms() >= 9000, 2000)
    assert 3000 < node.clock.monotonic_ms() < 3300


def test_metadata_that_cannot_be_followed_ends_the_start_and_the_broker(
    tmp_path: Path, said: io.StringIO
) -> None:
    node = Node(tmp_path)
    node.broker._check_going_on()
    node.broker._cannot_go_on("unknown record")
    assert (node.broker.exit_code, node.soon) == (1, [node.broker.reactor.stop])
    assert "ERROR [server] unknown record; stopping" in said.getvalue()
    with pytest.raises(StartupError, match="cannot be followed"):
        node.broker._check_going_on()


# -- the end


@pytest.mark.parametrize("state", [State.STARTING, State.SERVING])
def test_who_serves_asks_to_be_let_go_and_others_just_go(tmp_path: Path, state: State) -> None:
    node = Node(tmp_path)
    node.machine.state = state
    node.broker.stop("SIGTERM")
    node.broker.stop("SIGTERM")
    assert node.has_left == (state is State.SERVING)
    if node.has_left:
        assert not node.soon and len(node.timers) == 1
        node.broker.kraft.presence.on_gone()
        node.run_pass(299_000)
        assert node.stops == 0
        node.run_pass(2_000)
        assert node.stops == 1, "it does not wait for them for ever"
    assert node.soon == [node.broker.reactor.stop]


# -- joining


class Joining(Node):
    """Whose controllers register it, and let it serve, as a test says."""

    def __init__(self, path: Path, online: str = "a b") -> None:
        super().__init__(path, initial_broker_registration_timeout_ms="5000", broker_rack="r1")
        self.begun: list[Any] = []
        directories = {
            name: SimpleNamespace(path=f"{path}/{name}", directory_id=name.encode())
            for name in online.split()
        }
        self.observing = SimpleNamespace(
            is_caught_up=False, begin=lambda *given: self.begun.append(("observing", *given))
        )
        self.broker.cluster_id = "cluster"
        self.broker.listeners = SimpleNamespace(advertised=["somewhere"])
        self.broker.storage = SimpleNamespace(online=list(directories.values()))
        self.broker.kraft.observing = self.observing
        self.broker.kraft.presence.begin = self.begun.append
        self.broker.kraft.presence.ready = lambda: self.begun.append("ready")

    def after(self, passes: int, change: Any) -> None:
        """What changes when so many passes have been run."""
        run_pass, left = self.broker.reactor.run_pass, [passes]

        def passing(at_most_ms: int) -> None:
            run_pass(at_most_ms)
            left[0] -= 1
            if left[0] == 0:
                change()

        self.broker.reactor.run_pass = passing


@pytest.mark.parametrize(("online", "home"), [("a b", b"a"), ("b", b"b")])
def test_it_registers_and_catches_up_before_it_goes_on(tmp_path: Path, online: str, home: bytes) -> None:
    """The metadata is in the first directory, or in what is left."""
    node = Joining(tmp_path, online)
    node.after(2, lambda: setattr(node.machine, "state", State.CAUGHT_UP))
    node.after(4, lambda: setattr(node.observing, "is_caught_up", True))
    node.broker._join(7)
    assert node.clock.monotonic_ms() == ManualClock().monotonic_ms() + 400
    first, registered = node.begun
    assert first == ("observing", "cluster", home)
    assert (registered.node_id, registered.cluster_id, registered.rack) == (5, "cluster", "r1")
    assert registered.directories == [name.encode() for name in online.split()]
    assert (registered.endpoints, registered.previous_epoch) == (["somewhere"], 7)


@pytest.mark.parametrize("reached", ["registered", "caught up", ""])
def test_who_is_not_registered_and_caught_up_in_time_does_not_start(tmp_path: Path, reached: str) -> None:
    node = Joining(tmp_path)
    if reached == "registered":
        node.machine.state = State.CAUGHT_UP
    node.observing.is_caught_up = reached == "caught up"
    with pytest.raises(StartupError, match="has not been registered, and caught up, in 5000 ms"):
        node.broker._join(-1)


def test_metadata_that_cannot_be_followed_is_not_waited_for(tmp_path: Path) -> None:
    node = Joining(tmp_path)
    node.broker.exit_code = 1
    with pytest.raises(StartupError, match="cannot be followed"):
        node.broker._join(-1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "start", lambda self: None)
        with pytest.raises(StartupError, match="cannot be followed"):
            node.broker.start()
    assert node.clock.monotonic_ms() == ManualClock().monotonic_ms()


def test_it_is_started_when_the_controllers_let_it_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Joining(tmp_path)
    monkeypatch.setattr(Broker, "start", lambda self: node.begun.append("started"))
    node.after(3, lambda: setattr(node.machine, "state", State.SERVING))
    node.broker.start()
    assert node.begun == ["started", "ready"]
    late = Joining(tmp_path)
    with pytest.raises(StartupError, match="have not unfenced this broker in 5000 ms"):
        late.broker.start()
