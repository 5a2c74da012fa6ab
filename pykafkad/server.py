"""The broker: puts the rooms together, in order, and takes them down again in the reverse order.

What handlers are given, and the shape of a pass of the loop, is serving.py's; here are sockets, threads and signals.
Invariant: nothing listens before the data is loaded, but the ports are bound first, so that a taken one is told before
anything is touched.
"""

from __future__ import annotations

import _socket
import gc
import os
import resource
import sys
from functools import partial

from pykafkad import first_topics
from pykafkad.clock import Clock
from pykafkad.cluster import handover
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.publishing import ACLS, GROUPS, LISTENERS, TELEMETRY, TRANSACTIONS
from pykafkad.config_listeners import host_port
from pykafkad.control.server import ControlSocket
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.coordinator.transactions import TransactionCoordinator
from pykafkad.dispatcher import Dispatcher
from pykafkad.errors import StartupError
from pykafkad.holds import on_hold
from pykafkad.hot.segment import limit_open_files
from pykafkad.hot.wire import release_memory
from pykafkad.logs import logger, put, say_started
from pykafkad.net.hosts import Resolver
from pykafkad.net.listeners import NO_BOUND, Listeners
from pykafkad.net.loop import make_reactor
from pykafkad.net.sweep import Sweep
from pykafkad.quiet import kind_of
from pykafkad.serving import ServingBroker
from pykafkad.storage.manager import LogManager
from pykafkad.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.acls import LocalAcls
    from pykafkad.cluster.controller import RunningController
    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.zookeeper.acls import ClusterAcls
    from pykafkad.config import BrokerConfig
    from pykafkad.net.starter import Starter
    from pykafkad.pure.acl_rules import Rules
    from pykafkad.slices import Work
    from pykafkad.storage.directories import LogDirectory
else:
    import _signal as signal  # without its module's enums, 2 ms of each start

DRAIN_MS = 5_000  # how long answers under way may take to leave at shutdown
COLLECTOR_THRESHOLD = 2_000  # objects made and kept before the cycle collector looks at the young ones
MANY_THREADS = 1 << 20  # those who hand out the work have a limit of their own
# Without a throttle a cleaning takes all that a processor gives, and the loop would wait for its turn. No more than 5:
# when other processes come first, one that has Python's lock keeps the loop from it the longer.
CLEANER_NICE = 5
SIGNALLED = 128  # and the signal's number: the exit code of a start that was ended by one
SHARE_OF_SEGMENTS = 0.5  # of all descriptors, the rest is for connections
KEPT_DESCRIPTORS = 64  # but these: for logs, checkpoints, directories that are synced
RELEASE_INTERVAL_MS = 10_000
RELEASED_BYTES = 16 << 20  # less of freed memory is kept for what comes
MANY_FILES = 1 << 30  # where the system sets no limit
SETTLE_MS = 30_000  # how long work in threads may take to come back at shutdown

log = logger("server")


class NoLogs:
    """What a pass of the loop sees of the storage of a broker that still asks which cluster it is of."""

    dirty = ()


class Broker(ServingBroker):
    """One a process; all of it belongs to the loop."""

    _is_loaded = False
    _transactions: type[TransactionCoordinator] = TransactionCoordinator

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        clock = clock or Clock()
        dispatcher = Dispatcher(self)
        self.listeners = Listeners(config)
        self.reactor = make_reactor(
            dispatcher.on_frame,
            self._on_pass_end,
            self._on_close,
            max_frame_bytes=config["socket.request.max.bytes"],
            clock=clock,
            on_error=self._on_callback_error,
            on_hold=on_hold,
            **unfinished_bytes(config),
        )
        self.workers = Workers(self.reactor.post)
        super().__init__(config, clock, dispatcher, self.reactor, self.workers.submit)
        self.cleaner_workers = Workers(self.reactor.post, limit=MANY_THREADS, nice=CLEANER_NICE)
        self.large_workers = Workers(self.reactor.post, limit=1)
        self.submit_large = self.large_workers.submit
        self.look_up = Resolver(self.reactor.post, self.reactor.call_later, clock).look_up
        self.control = ControlSocket(self)
        self.exit_code = 0
        self._stopping = False

    # -- start

    def start(self) -> None:
        """Bind, load, take over, listen. StartupError says why not."""
        self.listeners.bind()
        for number in stop_signals():
            # Until the loop takes them: the recovery of much data takes its time.
            signal.signal(number, give_up)
        try:
            self.storage = self._open_storage()
        except BaseException:
            self.listeners.close()
            raise
        self.cluster_id = self.storage.cluster_id
        try:
            self._load()
            self._check_metadata_directory()
            self._is_loaded = True
        except BaseException:
            self.storage.close(clean=False)
            self.listeners.close()
            raise
        self._begin_jobs()
        if topics := self.config["pykafkad.create.topics"]:
            first_topics.create(topics, self.controller, self.reactor.run_pass)
        self._handle_signals()
        self.listeners.listen(self.reactor, self.quiet.allows)
        Sweep(self.reactor, self.config["connections.max.idle.ms"], self.slices.run).begin()
        self.dispatcher.follow_levels()
        self.control.open(self.storage.online[0].path)
        self.group_coordinator.start()
        self.transaction_coordinator.start()

    def _begin_jobs(self) -> None:
        periodic = self.begin_jobs(self.cleaner_workers.submit)
        periodic.every(RELEASE_INTERVAL_MS, partial(self.submit, release_memory_kept, nothing_more))

    def _open_storage(self, kind: Callable[..., LogManager] = LogManager) -> LogManager:
        return kind(
            self.config,
            self.clock,
            self.submit,
            replicas=self.replicas,
            call_later=self.reactor.call_later,
            call_soon=self.reactor.call_soon,
            on_directory_failed=self._directory_failed,
            on_all_failed=self._all_directories_failed,
        )

    def _open_controller(self, metadata: MetadataLog) -> RunningController:
        return LocalController(
            self.config,
            metadata,
            self.storage,
            self.node_id,
            self.submit,
            self.reactor.call_soon,
            self.slices.run,
            self.quiet.allows,
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
        self.controller.check()
        self.storage.take_markers()
        metadata.prepare()
        if metadata.is_new:
            self._format(metadata)
        self.image = metadata.image
        self.controller.take_over(
            self.listeners.advertised,
            [directory.directory_id for directory in self.storage.online],
            self.config["broker.rack"],
            some_offline=len(self.storage.online) < len(self.storage.directories),
        )
        self._make_coordinators()
        self._add_publishers()
        self.controller.load_logs()

    def _make_coordinators(self) -> None:
        self.group_coordinator = GroupCoordinator(
            self.config, self.coordinator_loop, self.replicas, self.image
        )
        self.transaction_coordinator = self._transactions(
            self.config,
            self.coordinator_loop,
            self.replicas,
            self.image,
            self.controller.take_producer_id,
            lambda: self.ending_markers,
        )

    def _add_publishers(self) -> None:
        publishers = self.controller.publishers
        publishers.add(LISTENERS, self._publish_to_listeners)
        publishers.add(GROUPS, self.group_coordinator.publish)
        publishers.add(TRANSACTIONS, self.transaction_coordinator.publish)
        publishers.add(TELEMETRY, self._publish_to_telemetry)
        if self.config["authorizer.class.name"]:
            self._authorize()

    def _authorize(self) -> None:
        from pykafkad.config_authorizer import rules_of

        rules = self.authorizer = rules_of(self.config, self.quiet.allows)
        acls = self.acls = self._make_acls(rules)
        self.controller.publishers.add(ACLS, acls.publish)

    def _make_acls(self, rules: Rules) -> LocalAcls | ClusterAcls:
        """Where they are kept. Beside controllers, CreateAcls and DeleteAcls go to them."""
        from pykafkad.cluster.acls import LocalAcls

        return LocalAcls(self.image, rules, self.controller)

    def _publish_to_listeners(self, delta: Delta) -> None:
        if delta.broker_keys:
            self.listeners.reconfigure(self.look_up)

    def _publish_to_telemetry(self, delta: Delta) -> Work | None:
        if self._telemetry is None:
            return None
        from pykafkad.cluster.telemetry import follow

        return follow(self._telemetry, self.image, delta)

    # -- running

    def run(self) -> int:
        self.reactor.run()
        return self.exit_code

    def _runs_until(self, is_done: Callable[[], bool], wait_ms: int) -> bool:
        """Passes of the loop before it runs by itself; whether it was done in time."""
        deadline_ms = self.clock.monotonic_ms() + wait_ms
        while not is_done():
            if self.clock.monotonic_ms() > deadline_ms:
                return False
            self.reactor.run_pass(100)
        return True

    def _on_close(self, connection: Any, reason: str | None) -> None:
        self.listeners.closed(connection)  # whatever goes wrong with the rest: it counts its connections
        self.forget_waiters(connection)
        if self._telemetry is not None:
            self._telemetry.disconnected(connection)
        if reason and self.quiet.allows(log, f"closed connections ({kind_of(reason)})", host_of(connection)):
            log.info(f"closed the connection of {peer_of(connection)}: {reason}")
        elif log.debugs:
            log.debug(f"the connection of {peer_of(connection)} has ended{software_of(connection)}")

    def _on_callback_error(self, what: str, error: BaseException) -> None:
        log.exception(what, error)

    # -- stop

    def _handle_signals(self) -> None:
        """A signal wakes the loop through a socket, since the loop may sleep outside of Python."""
        ours, theirs = _socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._signal_sockets = ours, theirs
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in stop_signals():
            signal.signal(number, lambda number, frame: None)
        self.reactor.watch(ours.fileno(), self._on_signal)

    def _on_signal(self) -> None:
        numbers = self._signal_sockets[0].recv(64)
        self.stop(name_of(numbers[0]))

    def stop(self, reason: str) -> None:
        """End the run in order, after the pass under way."""
        if self._stopping:
            return
        log.info(f"{reason}: stopping")
        self._stopping = True
        self.reactor.call_soon(self.reactor.stop)

    def _holds_metadata(self, directory: LogDirectory) -> bool:
        return directory.path == os.path.abspath(self.config.metadata_log_dir)

    def _check_metadata_directory(self) -> None:
        for directory in self.storage.directories:
            if not directory.is_online and self._holds_metadata(directory):
                raise StartupError(f"The log directory of the metadata log failed: {directory.failure}")

    def _directory_failed(self, directory: LogDirectory) -> None:
        if not self._is_loaded:
            return  # the start looks at what is left
        self.group_coordinator.drop_offline()
        self.transaction_coordinator.drop_offline()
        if self._holds_metadata(directory):
            self.controller.abandon_log()
            if self.storage.online:
                self._metadata_log_failed()
        elif self.storage.online:
            self.controller.directory_failed()

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
        self.control.close()
        self.dispatcher.unfollow_levels()
        self.waiting.expire_all()
        self.group_coordinator.stop()
        self.transaction_coordinator.stop()
        self.reactor.drain(DRAIN_MS)
        self.listeners.close()
        self.storage.moves.stop()
        self.storage.compaction.stop()
        self._settle()
        broker_epoch = self.controller.broker_epoch
        self.controller.stop()
        self.storage.close(broker_epoch=broker_epoch)
        self._logs_closed()
        self.workers.stop()
        self.cleaner_workers.stop()
        self.large_workers.stop()
        self.reactor.close()

    def _logs_closed(self) -> None:
        """The last step before the loop ends."""

    def _settle(self) -> None:
        """Let the work that threads have come back: what was promised is finished before the files close."""
        if not self._runs_until(self._has_settled, SETTLE_MS):
            log.error("work in threads did not come back; stopping without it")

    def _has_settled(self) -> bool:
        return not (self.workers.outstanding or self.cleaner_workers.outstanding) and self.controller.idle


def stop_signals() -> list[int]:
    """The signals that ask for an orderly stop; nohup has SIGHUP ignored, and that stays."""
    found: list[int] = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


def name_of(number: int) -> str:
    from signal import Signals

    return Signals(number).name


def give_up(number: int, frame: object) -> None:
    """A signal while the broker starts: nothing is served yet, and the next start begins anew."""
    log.warn(f"{name_of(number)}: stopping before everything is loaded")
    raise SystemExit(SIGNALLED + number)


def quiet_collector() -> None:
    """What start made stays, so the cycle collector need not walk it; requests leave no cycles, and what some hundred in
    flight have at a time is fewer objects than it waits for. Where a large one keeps what it makes, the collector comes
    often and walks little each time, a thousand objects in a quarter of a millisecond. The oldest, which may be all
    topics there are, it hardly ever walks.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(COLLECTOR_THRESHOLD, 3, 14_000)


def release_memory_kept() -> bool:
    return release_memory(RELEASED_BYTES)


def nothing_more(result: object) -> None:
    """Of work in a thread whose result nobody needs."""


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


def kept_descriptors(descriptors: int) -> int:
    return min(KEPT_DESCRIPTORS, descriptors // 8)


def share_descriptors(broker: Broker, descriptors: int) -> None:
    """Connections leave segments their share, and some for everything else: a broker must be able to write a
    checkpoint, or to roll a segment, however many clients there are."""
    kept = kept_descriptors(descriptors)
    broker.reactor.descriptors_max = min(descriptors - kept, NO_BOUND)
    broker.listeners.limit(max(1, int(descriptors * (1 - SHARE_OF_SEGMENTS)) - kept))


def unfinished_bytes(config: BrokerConfig) -> dict[str, int]:
    """The bound on frames that are not whole, where Kafka's config for it is set; the loop has one of its own."""
    most: int = config["queued.max.request.bytes"]
    return {"max_unfinished_bytes": most} if most > 0 else {}


def peer_of(connection: Any) -> str:
    host, port = connection.peer
    return f"{host}:{port}"


def software_of(connection: Any) -> str:
    state = connection.state
    return "" if state is None or state.software is None else f" ({' '.join(state.software)})"


def host_of(connection: Any) -> str:
    host: str = connection.peer[0]
    return host


def run(config: BrokerConfig, *, data_is_default: bool, starter: Starter | None = None) -> int:
    """Start, say so, serve until told to stop, or until the starter is gone; the exit code."""
    said = f"data is kept in {os.pathsep.join(config.log_dirs)}" if data_is_default else None
    return serve(kind_of_broker(config)(config), said, starter)


def kind_of_broker(config: BrokerConfig) -> type[Broker]:
    if config.on_zookeeper:
        from pykafkad.clustered import ClusterBroker

        return ClusterBroker
    if config.beside_kraft:
        from pykafkad.beside_kraft import KraftBroker

        return KraftBroker
    return Broker


def serve(broker: Broker, said: str | None = None, starter: Starter | None = None) -> int:
    """The same for a broker that is made already; `said` is logged before the ready line."""
    if starter is not None:
        starter.watch(broker.reactor, broker.stop)
    descriptors = allow_many_files()
    share_descriptors(broker, descriptors)
    gc.disable()  # what a start makes is kept: walking it again and again would take a third of the time
    broker.start()
    most, readable = int(descriptors * SHARE_OF_SEGMENTS), descriptors - kept_descriptors(descriptors) // 2
    limit_open_files(most, broker.storage.release_files, readable)
    quiet_collector()
    if said is not None:
        log.info(said)
    advertised = broker.listeners.advertised
    if len(advertised) > 1:
        log.info(f"advertised: {', '.join(map(str, advertised))}")
    address = ",".join(host_port(endpoint.host, endpoint.port) for endpoint in advertised)
    if sys.stdout is not None:  # it was closed when the process began
        put(sys.stdout, f"pykafkad ready: bootstrap.servers={address}\n")
    say_started(broker.node_id)
    try:
        return broker.run()
    finally:
        broker.shut_down()
