"""What the runtime must know about a kind of machine: where its records are, and what log lines call it."""

from __future__ import annotations

from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.coordinator.runtime.machine import Machine


class MachineKind:
    __slots__ = ("codec", "commit_timeout_ms", "load_buffer_bytes", "log", "new", "noun", "nouns", "topic")

    def __init__(
        self,
        topic: str,
        noun: str,
        new: Callable[[], Machine],
        *,
        load_buffer_bytes: int,
        codec: str = "none",
        commit_timeout_ms: int | None = None,
    ) -> None:
        self.topic = topic  # the internal topic
        self.noun = noun  # what the names in a machine are names of: "group"
        self.nouns = f"{noun}s"
        self.new = new
        self.load_buffer_bytes = load_buffer_bytes  # how much of a log is read at a time
        self.codec = codec  # the compression of batches
        self.commit_timeout_ms = (
            commit_timeout_ms  # how long an answer waits for the followers; None: as long as it takes
        )
        self.log = logger(self.nouns)
