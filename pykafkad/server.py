"""The broker: puts the rooms together, in order, and takes them down again in the reverse order.

Owns what every handler is given (`Broker`) and the shape of a pass of the loop: frames were handled and queued
appends; at its end the appends are written, waiting fetches are asked, and only then the answers are encoded.
Invariants: no answer leaves before what it promises is written; nothing listens before the data is loaded, but
the ports are bound first, so that a taken one is told before anything is touched.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafkad.clock import Clock
from pykafkad.cluster import handover
from pykafkad.cluster.controller import Controller
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.dispatcher import Dispatcher
from pykafkad.errors import NONE, StartupError
from pykafkad.handlers.produce import append_failed
from pykafkad.hot.segment import limit_open_files
from pykafkad.logs import logger
from pykafkad.net.listeners import Listeners
from pykafkad.net.loop import make_reactor
from pykafkad.pure.fetch_session import FetchSessions
from pykafkad.storage.manager import LogManager
from pykafkad.waiting import Waiter, Waiting
from pykafkad.workers import Workers

if TYPE_CHECKING:
    from pykafkad.cluster.client_quotas import ClientQuotas
    from pykafkad.cluster.config_changes import ConfigChanges
    from pykafkad.config import BrokerConfig
    from pykafkad.dispatcher import Context
    from pykafkad.holding import Fail, Holding
    from pykafkad.pure.telemetry import Telemetry
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.partition import Partition

DRAIN_MS = 5_000  # how long answers under way may take to leave at shutdown
COLLECTOR_THRESHOLD = 20_000  # objects made and kept before the cycle collector looks at the young ones
MANY_THREADS = 1 << 20  # those who hand out the work have a limit of their own
SIGNALLED = 128  # and the signal's number: the exit code of a start that was ended by one
SHARE_OF_SEGMENTS = 0.5  # of all descriptors, the rest is for connections
MANY_FILES = 1 << 30  # where the system sets no limit
SETTLE_MS = 30_000  # how long work in threads may take to come back at shutdown

log = logger("server")


class ConnectionState:
    """What the broker remembers of a connection, made when there is something to remember."""

    __slots__ = ("software", "waiters")

    def __init__(self) -> None:
        self.software: tuple[str, str] | None = None  # the client's, and its version
        self.waiters: set[Waiter] | None = None  # made for the first one: many connections never wait

    def own_waiters(self) -> set[Waiter]:
        if self.waiters is None:
            self.waiters = set()
        return self.waiters


class Broker:
    """Everything a handler may need. One a process; all of it belongs to the loop."""

    pass_ms = 0  # the wall clock as the pass has read it; 0: not yet
    _holding: Holding | None = None  # made when the first answer has to wait for a flush

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.clock = clock or Clock()
        self.node_id = config.node_id
        self.listeners = Listeners(config)
        self.reactor = make_reactor(
            Dispatcher(self).on_frame,
            self._on_pass_end,
            self._on_close,
            max_frame_bytes=config["socket.request.max.bytes"],
            clock=self.clock,
            on_error=self._on_callback_error,
        )
        self.workers = Workers(self.reactor.post)
        self.submit = self.workers.submit
        self.cleaner_workers = Workers(self.reactor.post, limit=MANY_THREADS)
        self.waiting = Waiting(self.reactor.call_later)
        self.fetch_sessions = FetchSessions(
            config["max.incremental.fetch.session.cache.slots"], random_session_id
        )
        self.appends: list[
            tuple[Partition, Any, Context]
        ] = []  # this pass's, with the answers that promise them
        self._client_quotas: ClientQuotas | None = None
        self._config_changes: ConfigChanges | None = None
        self._telemetry: Telemetry | None = None
        self.exit_code = 0
        self._stopping = False

    # -- start

    def start(self) -> None:
        """Bind, load, take over, listen. StartupError says why not."""
        self.listeners.bind()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Until the loop takes them: the recovery of much data takes its time.
            signal.signal(number, give_up)
        try:
            self.storage = self._open_storage()
        except BaseException:
            self.listeners.close()
            raise
        self.cluster_id = self.storage.cluster_id
        self.storage.call_later = self.reactor.call_later
        self.storage.on_advance = self.waiting.advanced
        self.storage.on_all_failed = self._all_directories_failed
        self.storage.soon = self.reactor.call_soon
        try:
            self._load()
            self._check_metadata_directory()
            self.storage.on_directory_failed = self._directory_failed
        except BaseException:
            self.storage.close(clean=False)
            self.listeners.close()
            raise
        self._begin_jobs()
        self._handle_signals()
        self.listeners.listen(self.reactor)
        self.groups.start()

    def _begin_jobs(self) -> None:
        """What is done again and again as time passes."""
        for interval_ms, job in (*self.storage.jobs, *self.groups.jobs, *self.controller.jobs):
            self._every(interval_ms, job)
        for interval_ms, job in self.storage.later_jobs:
            self._every(interval_ms, job, first_ms=self.config["log.initial.task.delay.ms"])
        self.storage.compaction.begin(self.reactor.call_later, self.cleaner_workers.submit)

    def _open_storage(self) -> LogManager:
        return LogManager(self.config, self.clock, self.submit)

    def _open_controller(self, metadata: MetadataLog) -> Controller:
        if metadata.is_new:
            handover.check_not_orphaned(self.config.log_dirs)
        return Controller(
            self.config, metadata, self.storage, self.node_id, self.submit, self.reactor.call_soon
        )

    def _format(self, metadata: MetadataLog) -> None:
        """A new cluster: what `kafka-storage format` leaves behind, and the kind of quorum that the properties mean."""
        config, online = self.config, self.storage.online
        handover.leave_bootstrap([each.path for each in online], self.clock.now_ms())
        names_voters = config["controller.quorum.voters"] or not config["controller.quorum.bootstrap.servers"]
        if names_voters or not config.controller_listeners or metadata.contents.kraft_version:
            return  # the properties say who votes, or the directory does
        home = next(each for each in online if each.path == os.path.abspath(config.metadata_log_dir))
        point = config.controller_listeners[0]
        host = point.host or self.listeners.advertised[0].host
        handover.make_dynamic(metadata, self.node_id, home.directory_id, point.name, host, point.port)

    def _load(self) -> None:
        self._check_metadata_directory()
        config = self.config
        metadata = MetadataLog(
            config.metadata_log_dir,
            self.clock,
            segment_bytes=config["internal.metadata.log.segment.bytes"]
            or config["metadata.log.segment.bytes"],
            segment_ms=config["metadata.log.segment.ms"],
        )
        metadata.read()  # what refuses a start changes nothing
        self.controller = self._open_controller(metadata)
        self.controller.on_log_failed(self._metadata_log_failed)
        handover.check_node(metadata.image, self.node_id)
        if metadata.is_new:
            handover.check_bootstrap(config.metadata_log_dir)
        self.storage.take_markers()
        metadata.prepare()
        if metadata.is_new:
            self._format(metadata)
        self.image = metadata.image
        self.controller.dynamic.on_change.append(self._reconfigure)
        self.controller.take_over(
            self.listeners.advertised,
            [directory.directory_id for directory in self.storage.online],
            self.config["broker.rack"],
            some_offline=len(self.storage.online) < len(self.storage.directories),
        )
        self.controller.load_logs()
        self.groups = GroupCoordinator(
            self.config,
            self.clock,
            self.storage,
            self.image,
            self.reactor.call_later,
            self.reactor.call_soon,
            self.submit,
        )
        self.controller.on_topic_deleted.append(self.groups.topic_deleted)
        self.controller.dynamic.on_change.append(self.groups.configs_changed)

    def _reconfigure(self, changed: set[str]) -> None:
        """The config has other values for these names: those who keep some of them ask again."""
        log.info(f"dynamic configs changed: {', '.join(sorted(changed))}")
        self.listeners.reconfigure(self.submit)
        self.storage.reconfigure()

    @property
    def config_changes(self) -> ConfigChanges:
        """Made when somebody changes a config: a start has no use of it."""
        if self._config_changes is None:
            from pykafkad.cluster.config_changes import ConfigChanges

            self._config_changes = ConfigChanges(self.config, self.controller)
            self._config_changes.on_applied.append(self._config_applied)
        return self._config_changes

    @property
    def client_quotas(self) -> ClientQuotas:
        """Made when somebody changes one."""
        if self._client_quotas is None:
            from pykafkad.cluster.client_quotas import ClientQuotas

            self._client_quotas = ClientQuotas(self.controller, self.submit)
        return self._client_quotas

    @property
    def telemetry(self) -> Telemetry:
        """Made when a client asks for what it is subscribed to: most never do."""
        if self._telemetry is None:
            from pykafkad.cluster.telemetry import from_image

            self._telemetry = from_image(self.config, self.image)
        return self._telemetry

    def _config_applied(self, resource_type: int, name: str, configs: Mapping[str, str]) -> None:
        if self._telemetry is not None:
            from pykafkad.cluster.telemetry import subscribe

            subscribe(self._telemetry, resource_type, name, configs)

    # -- running

    def run(self) -> int:
        self.reactor.run()
        return self.exit_code

    def read_pass_ms(self) -> int:
        """One look at the clock serves all appends of a pass."""
        self.pass_ms = self.clock.now_ms()
        return self.pass_ms

    def _on_pass_end(self) -> None:
        self.pass_ms = 0
        appends = self.appends
        if self.groups.dirty:
            self.groups.flush()
        if self.storage.dirty:
            failures = self.storage.commit()
            if failures:
                self._fail_appends({id(partition) for partition, _ in failures})
                for partition, error in failures:
                    log.error(f"append to {partition.topic}-{partition.index} failed: {error}")
        if self.storage.flushing.under_way:
            self._hold_appends()
        if self.groups.dirty:
            self.groups.settle(self.hold)
        if appends:
            appends.clear()
        if self._holding is not None:
            self._holding.settle()
        if self.waiting.woken:
            self.waiting.ask_woken()

    def _fail_appends(self, failed: set[int]) -> None:
        for partition, answer, context in self.appends:
            if id(partition) in failed and answer.error_code == NONE:
                append_failed(answer, context)

    def _hold_appends(self) -> None:
        """Answers that promise what is to be on the disk first leave when it is."""
        for partition, answer, context in self.appends:
            if partition.high_watermark < partition.log_end_offset and answer.error_code == NONE:
                self.hold(partition, context, partial(append_failed, answer, context))

    def hold(self, partition: Partition, context: Context, fail: Fail) -> None:
        if self._holding is None:
            from pykafkad.holding import Holding

            self._holding = Holding()
        self._holding.hold(partition, context, fail)

    def _on_close(self, connection: Any, reason: str | None) -> None:
        self.forget_waiters(connection)
        if self._telemetry is not None:
            self._telemetry.disconnected(connection)
        self.listeners.closed(connection)
        if reason:
            log.info(f"closed the connection of {peer_of(connection)}: {reason}")

    def wait(
        self,
        connection: Any,
        partitions: Iterable[Partition],
        max_wait_ms: int,
        attempt: Callable[[bool], bool],
    ) -> None:
        """Ask `attempt` when a partition advances or the time is up, unless the connection closes first."""
        waiters = self.state_of(connection).own_waiters()

        def tracked(expired: bool) -> bool:
            done = attempt(expired)
            if done:
                waiters.discard(waiter)
            return done

        waiter = self.waiting.wait(partitions, max_wait_ms, tracked)
        waiters.add(waiter)

    def forget_waiters(self, connection: Any) -> None:
        state = connection.state
        if state is not None and state.waiters:
            for waiter in state.waiters:
                self.waiting.cancel(waiter)
            state.waiters.clear()

    def state_of(self, connection: Any) -> ConnectionState:
        state = connection.state
        if state is None:
            state = connection.state = ConnectionState()
        assert isinstance(state, ConnectionState)
        return state

    def _every(self, interval_ms: int, job: Callable[[], None], first_ms: int | None = None) -> None:
        def turn() -> None:
            try:
                job()
            finally:
                self.reactor.call_later(interval_ms, turn)

        self.reactor.call_later(interval_ms if first_ms is None else first_ms, turn)

    def _on_callback_error(self, what: str, error: BaseException) -> None:
        log.exception(what, error)

    # -- stop

    def _handle_signals(self) -> None:
        """A signal wakes the loop through a socket, since the loop may sleep outside of Python."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._signal_sockets = ours, theirs
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: None)
        self.reactor.watch(ours.fileno(), self._on_signal)

    def _on_signal(self) -> None:
        numbers = self._signal_sockets[0].recv(64)
        name = signal.Signals(numbers[0]).name
        if self._stopping:
            return
        log.info(f"{name}: stopping")
        self._stopping = True
        self.reactor.call_soon(self.reactor.stop)

    def _holds_metadata(self, directory: LogDirectory) -> bool:
        return directory.path == os.path.abspath(self.config.metadata_log_dir)

    def _check_metadata_directory(self) -> None:
        for directory in self.storage.directories:
            if not directory.is_online and self._holds_metadata(directory):
                raise StartupError(f"The log directory of the metadata log failed: {directory.failure}")

    def _directory_failed(self, directory: LogDirectory) -> None:
        self.groups.drop_offline()
        if self._holds_metadata(directory):
            self.controller.abandon_log()
            if self.storage.online:
                self._metadata_log_failed()
        elif self.storage.online:
            self.controller.placement.directory_failed()

    def _all_directories_failed(self) -> None:
        log.error(f"all log directories have failed ({', '.join(self.config.log_dirs)}); stopping")
        self.exit_code = 1
        self.reactor.call_soon(self.reactor.stop)

    def _metadata_log_failed(self) -> None:
        """Kafka halts; what was acknowledged is in the logs, so they are closed in order."""
        log.error(f"the metadata log in {self.config.metadata_log_dir} has failed; stopping")
        self.exit_code = 1
        self.reactor.call_soon(self.reactor.stop)

    def shut_down(self) -> None:
        """Finish what is under way, flush, write the checkpoints and the marker of a clean stop."""
        self.waiting.expire_all()
        self.groups.stop()
        self.reactor.drain(DRAIN_MS)
        self.listeners.close()
        self.storage.moves.stop()
        self.storage.compaction.stop()
        self._settle()
        broker_epoch = self.controller.broker_epoch
        self.controller.stop()
        self.storage.close(broker_epoch=broker_epoch)
        self.workers.stop()
        self.cleaner_workers.stop()
        self.reactor.close()

    def _settle(self) -> None:
        """Let the work that threads have come back: what was promised is finished before the files close."""
        deadline_ms = self.clock.monotonic_ms() + SETTLE_MS
        while self.workers.outstanding or self.cleaner_workers.outstanding or not self.controller.idle:
            if self.clock.monotonic_ms() > deadline_ms:
                log.error("work in threads did not come back; stopping without it")
                return
            self.reactor.run_pass(100)


def give_up(number: int, frame: object) -> None:
    """A signal while the broker starts: nothing is served yet, and the next start begins anew."""
    log.warn(f"{signal.Signals(number).name}: stopping before everything is loaded")
    raise SystemExit(SIGNALLED + number)


def quiet_collector() -> None:
    """What start made stays, so the cycle collector need not walk it; requests leave no cycles, so it may come seldom."""
    gc.freeze()
    gc.set_threshold(COLLECTOR_THRESHOLD, 20, 100)


def random_session_id() -> int:
    return int.from_bytes(os.urandom(4)) & 0x7FFFFFFF


def allow_many_files() -> int:
    """Connections and segments hold a descriptor each: take as many as this user may have; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.warn(f"at most {soft} files and connections: the limit could not be raised: {error}")
            hard = soft
    return MANY_FILES if hard == resource.RLIM_INFINITY else hard


def peer_of(connection: Any) -> str:
    try:
        host, port = connection.peer[:2]
    except (OSError, ValueError):
        return "an unknown peer"
    return f"{host}:{port}"


def run(config: BrokerConfig, *, data_is_default: bool) -> int:
    """Start, say so, serve until told to stop; the exit code."""
    said = f"data is kept in {os.pathsep.join(config.log_dirs)}" if data_is_default else None
    return serve(Broker(config), said)


def serve(broker: Broker, said: str | None = None) -> int:
    """The same for a broker that is made already; `said` is logged before the ready line."""
    descriptors = allow_many_files()
    broker.start()
    limit_open_files(int(descriptors * SHARE_OF_SEGMENTS), broker.storage.release_files)
    quiet_collector()
    if said is not None:
        log.info(said)
    address = ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in broker.listeners.advertised[:1])
    sys.stdout.write(f"pykafkad ready: bootstrap.servers={address}\n")
    sys.stdout.flush()
    try:
        return broker.run()
    finally:
        broker.shut_down()
