"""A broker without sockets or logs: a real metadata log and controller over a storage that remembers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pykafkad import messages
from pykafkad.clock import ManualClock
from pykafkad.cluster.commits import at_once, submit_inline
from pykafkad.cluster.controller import Controller
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.config import BrokerConfig
from pykafkad.config_listeners import Endpoint

DIRECTORY_ID = b"\x11" * 16
ENDPOINT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)


class FakeStorage:
    """Remembers what was created and deleted, in order; `broken` names topics whose logs cannot be made."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], tuple[bytes, int, bytes]] = {}
        self.configs: dict[str, Any] = {}
        self.events: list[str] = []
        self.broken: set[str] = set()
        self.absent: list[tuple[str, int]] = []
        self.moves = SimpleNamespace(resume=lambda: self.events.append("resume moves"))

    def open_all(self, known: dict[tuple[str, int], bytes], config_of: Any) -> list[tuple[str, int]]:
        return [key for key in known if key in self.absent]

    def placed(self) -> list[tuple[tuple[str, int], bytes]]:
        return [(key, found[2]) for key, found in self.partitions.items()]

    def place(self, count: int) -> list[bytes]:
        return [DIRECTORY_ID] * count

    def create(
        self, topic: str, index: int, topic_id: bytes, config: Any, epoch: int, directory: bytes
    ) -> None:
        if topic in self.broken:
            raise OSError("no space left on device")
        self.partitions[topic, index] = (topic_id, epoch, directory)
        self.configs[topic] = config
        self.events.append(f"create {topic}-{index}")

    def get(self, topic: str, index: int) -> Any:
        return self.partitions.get((topic, index))

    def configure(self, topic: str, count: int, config: Any) -> None:
        if count and (topic, 0) in self.partitions:
            self.configs[topic] = config
            self.events.append(f"configure {topic}")

    def delete(self, topic: str, index: int) -> None:
        del self.partitions[topic, index]
        self.events.append(f"delete {topic}-{index}")


class Later:
    """`submit` and `soon` whose work waits until it is told to go on."""

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


def open_broker(directory: Path, later: Later | None = None, **properties: str) -> Any:
    """A broker on this directory, started: `.controller`, `.image`, `.storage`, `.log`, `.config`."""
    texts = {key.replace("_", "."): value for key, value in properties.items()}
    config = BrokerConfig.from_sources({"log.dirs": str(directory), **texts})
    storage = FakeStorage()
    log = MetadataLog(str(directory), ManualClock())
    log.open()
    submit = later.submit if later else submit_inline
    controller = Controller(config, log, storage, 1, submit, later.soon if later else at_once)
    controller.take_over([ENDPOINT], [DIRECTORY_ID], None)
    if later:
        later.all()
    return SimpleNamespace(
        config=config,
        storage=storage,
        log=log,
        image=log.image,
        controller=controller,
        node_id=1,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        state_of=lambda connection: connection,
    )


class FakeContext:
    """A request's context; `answers` is what it was answered with later."""

    def __init__(self, version: int, listener: str = "PLAINTEXT") -> None:
        self.version = version
        self.client_id = "test"
        self.connection = SimpleNamespace(listener=SimpleNamespace(owner=SimpleNamespace(name=listener)))
        self.answers: list[Any] = []

    def defer(self) -> FakeContext:
        return self

    def answer(self, response: Any) -> None:
        self.answers.append(response)


def call(broker: Any, handler: Any, version: int, **fields: Any) -> Any:
    """The handler's answer to a request, after a round trip through the wire of that version."""
    name = handler.__name__.rpartition(".")[2].title().replace("_", "")
    request = getattr(messages, f"{name}Request")
    context = FakeContext(version)
    received = request.decode(request(**fields).encode(version), version)
    response = handler.handle(broker, received, context)
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
    """What the controller made of these topics; empty while it is under way."""
    planned: list[Any] = []
    broker.controller.create_topics(list(topics), False, planned.extend)
    return planned
