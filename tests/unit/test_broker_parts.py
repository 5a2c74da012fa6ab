"""What a broker decides at its start and end, apart from what it is put together of: descriptors, signals, failures."""

from __future__ import annotations

import io
import resource
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import server
from pykafkad.clock import ManualClock
from pykafkad.config import BrokerConfig
from pykafkad.errors import StartupError
from pykafkad.quiet import always
from pykafkad.server import Broker

GIVEN_UP = 128


def noting(calls: list[Any], *names: str) -> SimpleNamespace:
    """Each call of these is noted: by its name where it has no arguments, else with them."""

    def note(name: str) -> Callable[..., None]:
        return lambda *given: calls.append((name, *given) if given else name)

    return SimpleNamespace(**{name: note(name) for name in names})


def bare(**parts: Any) -> Any:
    """A broker that was never made, with these parts."""
    broker: Any = Broker.__new__(Broker)
    vars(broker).update(parts)
    return broker


# -- descriptors


@pytest.mark.parametrize(
    ("limits", "asked", "most"),
    [
        ((100, 100), None, 100),
        ((100, 500), (500, 500), 500),
        ((100, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY), 1 << 30),
    ],
)
def test_a_broker_takes_as_many_descriptors_as_it_may_have(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], asked: tuple[int, int] | None, most: int
) -> None:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, wanted: found.append(wanted))
    assert server.allow_many_files() == most and found == ([asked] if asked else [])


@pytest.mark.parametrize("problem", [OSError("no"), ValueError("no")])
def test_where_the_limit_stays_it_is_told_and_kept_to(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, said: io.StringIO
) -> None:
    def refuse(kind: int, wanted: tuple[int, int]) -> None:
        raise problem

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 500))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert server.allow_many_files() == 100
    assert "WARN [server] at most 100 files and connections" in said.getvalue()


@pytest.mark.parametrize("descriptors", [1, 8, 64, 256, 1024, 20_000, 1 << 30])
def test_connections_leave_descriptors_for_segments_and_for_the_rest(descriptors: int) -> None:
    most: list[int] = []
    broker: Any = SimpleNamespace(
        reactor=SimpleNamespace(descriptors_max=0), listeners=SimpleNamespace(limit=most.append)
    )
    server.share_descriptors(broker, descriptors)
    kept = server.kept_descriptors(descriptors)
    assert kept == min(descriptors // 8, 64), "where there are few, an eighth"
    assert broker.reactor.descriptors_max == descriptors - kept
    assert most == [max(1, descriptors // 2 - kept)], "at least one can connect"


def test_a_bound_on_frames_is_the_configs_where_there_is_one() -> None:
    def bound(text: str) -> Any:
        return server.unfinished_bytes(
            BrokerConfig({"queued.max.request.bytes": text, "socket.request.max.bytes": "1"})
        )

    assert bound("1") == {"max_unfinished_bytes": 1} and bound("0") == bound("-1") == {}


# -- signals


def test_signals_that_stop_it_are_those_that_nobody_has_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = {signal.SIGHUP}
    monkeypatch.setattr(
        "_signal.getsignal", lambda number: signal.SIG_IGN if number in ignored else signal.SIG_DFL
    )
    assert set(server.stop_signals()) == {signal.SIGTERM, signal.SIGINT}
    ignored.clear()
    assert set(server.stop_signals()) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def test_a_signal_during_the_start_ends_it_as_in_a_shell(said: io.StringIO) -> None:
    with pytest.raises(SystemExit) as ended:
        server.give_up(signal.SIGTERM, None)
    assert ended.value.code == GIVEN_UP + signal.SIGTERM
    assert "SIGTERM: stopping before everything is loaded" in said.getvalue()


def test_the_first_reason_to_stop_is_told_and_the_pass_is_finished(said: io.StringIO) -> None:
    calls: list[Any] = []
    loop = noting(calls, "call_soon", "stop")
    broker = bare(reactor=loop, _stopping=False)
    broker._signal_sockets = [SimpleNamespace(recv=lambda most: bytes([signal.SIGINT, signal.SIGTERM]))]
    broker._on_signal()
    broker.stop("again")
    assert calls == [("call_soon", loop.stop)]
    assert "SIGINT: stopping" in said.getvalue() and "again" not in said.getvalue()


# -- connections that end


@pytest.mark.parametrize(
    ("reason", "level", "line"),
    [
        ("too slow", "info", "INFO [server] closed the connection of 10.0.0.1:5: too slow"),
        (None, "debug", "DEBUG [server] the connection of 10.0.0.1:5 has ended (java 4.3)"),
        (None, "info", ""),
    ],
)
def test_a_connection_that_ended_is_forgotten_and_told_of_if_there_is_a_reason(
    said: io.StringIO, reason: str | None, level: str, line: str
) -> None:
    from pykafkad import logs

    calls: list[Any] = []
    state = SimpleNamespace(waiters=["waiter"], software=("java", "4.3"))
    connection = SimpleNamespace(peer=("10.0.0.1", 5), state=state)
    broker = bare(
        listeners=noting(calls, "closed"),
        waiting=noting(calls, "cancel"),
        quiet=SimpleNamespace(allows=always),
        _telemetry=noting(calls, "disconnected"),
    )
    logs.set_level(level)
    try:
        broker._on_close(connection, reason)
        broker._telemetry, connection.state = None, None
        broker._on_close(connection, None)
    finally:
        logs.set_level("info")
    first = [("closed", connection), ("cancel", "waiter"), ("disconnected", connection)]
    assert calls == [*first, ("closed", connection)]
    lines = [each.partition("] ")[2] for each in said.getvalue().splitlines()]
    assert lines[:1] == ([line] if line else [])
    assert lines[1:] == (
        ["DEBUG [server] the connection of 10.0.0.1:5 has ended"] if level == "debug" else []
    )


# -- directories that fail


class Failing:
    """A broker with the directories /a, which has the metadata, and /b."""

    def __init__(self, online: str, *, is_loaded: bool = True) -> None:
        self.calls: list[Any] = []
        self.broker = bare(
            _is_loaded=is_loaded,
            config=BrokerConfig({"log.dirs": "/a,/b"}),
            group_coordinator=noting(self.calls, "drop_offline"),
            transaction_coordinator=noting(self.calls, "drop_offline"),
            controller=noting(self.calls, "abandon_log", "directory_failed"),
            storage=SimpleNamespace(
                online=[SimpleNamespace(path=path) for path in online.split()],
                directories=[
                    SimpleNamespace(path=path, is_online=path in online.split(), failure="disk")
                    for path in ("/a", "/b")
                ],
            ),
            reactor=noting(self.calls, "call_soon", "stop"),
            exit_code=0,
        )

    def fails(self, path: str) -> list[Any]:
        self.broker._directory_failed(SimpleNamespace(path=path))
        return self.calls


def test_without_a_directory_of_logs_the_broker_goes_on() -> None:
    failing = Failing("/a")
    assert failing.fails("/b") == ["drop_offline", "drop_offline", "directory_failed"]
    assert failing.broker.exit_code == 0
    failing.broker._check_metadata_directory()


def test_without_the_metadata_log_it_stops(said: io.StringIO) -> None:
    failing = Failing("/b")
    stop = ("call_soon", failing.broker.reactor.stop)
    assert failing.fails("/a") == ["drop_offline", "drop_offline", "abandon_log", stop]
    assert failing.broker.exit_code == 1
    assert "ERROR [server] the metadata log in /a has failed; stopping" in said.getvalue()
    with pytest.raises(StartupError, match="The log directory of the metadata log failed: disk"):
        failing.broker._check_metadata_directory()


def test_where_none_is_left_the_storage_says_so_and_what_fails_before_is_for_the_start(
    said: io.StringIO,
) -> None:
    assert Failing("").fails("/a") == ["drop_offline", "drop_offline", "abandon_log"]
    assert Failing("").fails("/b") == ["drop_offline", "drop_offline"]
    assert Failing("/b", is_loaded=False).fails("/a") == []
    failing = Failing("")
    failing.broker._all_directories_failed()
    assert failing.calls == [("call_soon", failing.broker.reactor.stop)] and failing.broker.exit_code == 1
    assert "all log directories have failed (/a, /b); stopping" in said.getvalue()


# -- a new cluster

VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
CONTROLLER = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://kafka:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


@pytest.mark.parametrize(
    ("texts", "has_version", "dynamic"),
    [
        ({**CONTROLLER, BOOTSTRAP: "127.0.0.1:9093"}, False, ("CONTROLLER", "kafka", 9093)),
        (
            {
                **CONTROLLER,
                "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://10.0.0.1:9093",
                BOOTSTRAP: "127.0.0.1:9093",
            },
            False,
            ("CONTROLLER", "10.0.0.1", 9093),
        ),
        ({**CONTROLLER, BOOTSTRAP: "127.0.0.1:9093"}, True, None),
        ({**CONTROLLER, VOTERS: "1@127.0.0.1:9093", BOOTSTRAP: "127.0.0.1:9093"}, False, None),
        ({**CONTROLLER, VOTERS: "1@127.0.0.1:9093"}, False, None),
        (CONTROLLER, False, None),
        ({BOOTSTRAP: "127.0.0.1:9093"}, False, None),
    ],
)
def test_a_quorum_that_nobody_counted_is_dynamic(
    monkeypatch: pytest.MonkeyPatch,
    texts: dict[str, str],
    has_version: bool,
    dynamic: tuple[str, str, int] | None,
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(server, "handover", noting(calls, "leave_bootstrap", "make_dynamic"))
    config = BrokerConfig({**texts, "log.dirs": "/b,/a", "metadata.log.dir": "/a"})
    home = SimpleNamespace(path="/a", directory_id=b"home")
    broker = bare(
        config=config,
        clock=ManualClock(5),
        node_id=1,
        storage=SimpleNamespace(online=[SimpleNamespace(path="/b", directory_id=b"other"), home]),
        listeners=SimpleNamespace(advertised=config.advertised_listeners),
    )
    metadata = SimpleNamespace(contents=SimpleNamespace(kraft_version=1 if has_version else None))
    broker._format(metadata)
    expected: list[Any] = [("leave_bootstrap", ["/b", "/a"], 5)]
    if dynamic is not None:
        expected.append(("make_dynamic", metadata, 1, b"home", *dynamic))
    assert calls == expected


# -- the end


def settled(broker: Any, clock: ManualClock, back_after: int) -> int:
    """The passes until its end, where work comes back after so many."""
    passes = 0

    def run_pass(at_most_ms: int) -> None:
        nonlocal passes
        passes += 1
        clock.advance(at_most_ms)
        if passes == back_after:
            broker.workers.outstanding = broker.cleaner_workers.outstanding = 0
            broker.controller.idle = True

    broker.reactor = SimpleNamespace(run_pass=run_pass)
    broker._settle()
    return passes


@pytest.mark.parametrize("late", ["workers", "cleaner_workers", "controller", None])
def test_before_files_close_the_work_of_threads_comes_back(said: io.StringIO, late: str | None) -> None:
    for back_after in (3, 1 << 30):
        broker = bare(
            clock=(clock := ManualClock()),
            workers=SimpleNamespace(outstanding=int(late == "workers")),
            cleaner_workers=SimpleNamespace(outstanding=int(late == "cleaner_workers")),
            controller=SimpleNamespace(idle=late != "controller"),
        )
        passes = settled(broker, clock, back_after)
        assert passes == 0 if late is None else passes == 3 or 25_000 < clock.monotonic_ms() < 60_000
        is_told = "work in threads did not come back; stopping without it" in said.getvalue()
        assert is_told == (late is not None and back_after > 3)


def test_session_ids_fit_into_the_field_and_differ() -> None:
    from pykafkad.serving import random_session_id

    found = {random_session_id() for _ in range(64)}
    assert len(found) > 60 and all(0 <= each < 1 << 31 for each in found) and max(found) > 1 << 24
