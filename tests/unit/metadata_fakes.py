"""A broker without sockets or logs: a real metadata log and controller over a fake storage."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from pykafkad import messages
from pykafkad.clock import ManualClock
from pykafkad.cluster.commits import at_once
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.config import BrokerConfig
from pykafkad.config_listeners import Endpoint
from pykafkad.handlers import APIS
from pykafkad.pure.authorization import ANONYMOUS
from pykafkad.quiet import Quiet
from pykafkad.slices import Slices, finish, is_work
from pykafkad.workers import submit_inline

DIRECTORY_ID = b"\x11" * 16
ENDPOINT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


def nothing() -> None:
    """No thread of this storage's makes anything."""


class Stored(NamedTuple):
    """A log, as far as the controller looks at it."""

    topic_id: bytes
    leader_epoch: int
    directory_id: bytes


class FakeStorage:
    """Notes what was created and deleted, in order. `broken` are names of topics whose logs cannot be created."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], Stored] = {}
        self.configs: dict[str, Any] = {}
        self.events: list[str] = []
        self.broken: set[str] = set()
        self.absent: list[tuple[str, int]] = []
        self.moves = SimpleNamespace(resume=lambda: self.events.append("resume moves"))

    def open_all(
        self, known: dict[tuple[str, int], bytes], config_of: Any, placement: Any = None
    ) -> list[tuple[str, int]]:
        return [key for key in known if key in self.absent]

    def placed(self) -> list[tuple[tuple[str, int], bytes]]:
        return [(key, found[2]) for key, found in self.partitions.items()]

    def place(self, count: int) -> list[bytes]:
        return [DIRECTORY_ID] * count

    def create(
        self, topic: str, index: int, topic_id: bytes, config: Any, epoch: int, directory: bytes, members: Any
    ) -> None:
        if topic in self.broken:
            raise OSError("no space left on device")
        self.partitions[topic, index] = Stored(topic_id, epoch, directory)
        self.configs[topic] = config
        self.events.append(f"create {topic}-{index}")

    def preparation(self, wanted: Any) -> Any:
        return SimpleNamespace(make=nothing, through=nothing, take_back=nothing)

    def prepare(self, wanted: Any, done: Any) -> Any:
        done()
        return self.preparation(wanted)

    def follow(self, topic: str, index: int, leader_epoch: int, leader_id: int) -> None:
        if (topic, index) in self.partitions:
            self.events.append(f"follow {leader_id} in {topic}-{index}")

    def get(self, topic: str, index: int) -> Stored | None:
        return self.partitions.get((topic, index))

    def configure(self, topic: str, count: int, config: Any) -> None:
        if count and (topic, 0) in self.partitions:
            self.configs[topic] = config
            self.events.append(f"configure {topic}")

    def reconfigure(self) -> None:
        self.events.append("reconfigure")

    def delete(self, topic: str, index: int) -> None:
        del self.partitions[topic, index]
        self.events.append(f"delete {topic}-{index}")


class Later:
    """A `submit` and a `soon` whose work waits until the test continues it."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def submit(self, work: Any, done: Any) -> None:
        self.waiting.append(lambda: submit_inline(work, done))

    def soon(self, action: Any) -> None:
        self.waiting.append(action)

    def step(self) -> None:
        self.waiting.pop(0)()

    def all(self) -> None:
        while self.waiting:
            self.step()


class Hasty(ManualClock):
    """A clock that moves on by a millisecond with each look, so that a slice of the loop ends after a yield or two."""

    step_us = 1_000
    passed_us = 0

    def monotonic_us(self) -> int:
        self.passed_us += self.step_us
        return self.passed_us


def open_broker(
    directory: Path,
    later: Later | None = None,
    slices: Slices | None = None,
    storage: FakeStorage | None = None,
    **properties: str,
) -> Any:
    """A broker on this directory, started: `.controller`, `.image`, `.storage`, `.log`, `.config`."""
    texts = {key.replace("_", "."): value for key, value in properties.items()}
    config = BrokerConfig.from_sources({"log.dirs": str(directory), **texts})
    storage = storage or FakeStorage()
    log = MetadataLog(str(directory), ManualClock())
    log.open()
    submit = later.submit if later else submit_inline
    slices = slices or Slices(at_once, log.clock)
    controller = LocalController(
        config, log, cast(Any, storage), 1, submit, later.soon if later else at_once, slices.run
    )
    controller.take_over([ENDPOINT], [DIRECTORY_ID], None)
    controller.load_logs()
    storage.events.clear()
    if later:
        later.all()
    broker = SimpleNamespace(
        authorizer=None,
        apis=APIS,
        cluster=None,
        acls=None,
        config=config,
        storage=storage,
        log=log,
        image=log.image,
        controller=controller,
        node_id=1,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        slices=slices,
        quiet=Quiet(log.clock.monotonic_ms, lambda delay_ms, callback: None),
        state_of=lambda connection: connection,
    )
    broker.dispatcher = SimpleNamespace(give=partial(give, broker))
    return broker


def give(broker: Any, context: Any, response: Any) -> None:
    """The same as Dispatcher.give."""
    if is_work(response):
        broker.slices.run(response, partial(give, broker, context))
    elif isinstance(response, Exception):
        raise response
    elif response is not context:
        context.answer(response)


class FakeContext:
    """A request's context; `answers` are the answers that were deferred."""

    def __init__(self, version: int, listener: str = "PLAINTEXT") -> None:
        self.version = version
        self.client_id = "test"
        self.principal = ANONYMOUS
        self.listener_name = listener
        self.connection = SimpleNamespace(peer=("127.0.0.1", 1), closed=False)
        self.answers: list[Any] = []

    def defer(self) -> FakeContext:
        return self

    def answer(self, response: Any) -> None:
        self.answers.append(response)


def handled(broker: Any, handler: Any, request: Any, context: Any) -> Any:
    """The result of a handler, also if the handler returned work."""
    response = handler.handle(broker, request, context)
    return finish(response) if is_work(response) else response


def call(broker: Any, handler: Any, version: int, **fields: Any) -> Any:
    """The handler's answer to a request, after a round trip through the wire of that version."""
    name = handler.__name__.rpartition(".")[2].title().replace("_", "")
    request = getattr(messages, f"{name}Request")
    context = FakeContext(version)
    received = request.decode(request(**fields).encode(version), version)
    response = handled(broker, handler, received, context)
    if response is context:
        (response,) = context.answers
    cls = getattr(messages, f"{name}Response")
    return cls.decode(response.encode(version), version)


def creatable(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    request = messages.CreateTopicsRequest
    return request.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            request.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(broker: Any, *topics: Any) -> list[Any]:
    """The controller's results for these topics; empty while they are being created."""
    planned: list[Any] = []
    broker.controller.create_topics(list(topics), False, planned.extend)
    return planned
