"""Topics that this broker needs itself, made by the active controller (CreateTopics), for cluster/auto_creation.py.

A topic is made when the image has it, which comes a moment after the controller's answer.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.topic_creation import Planned
from pykafkad.cluster.turns import tell
from pykafkad.errors import KafkaError
from pykafkad.messages import CreateTopicsRequest
from pykafkad.net.peers import Purpose
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.cluster.controller import Created
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.kraft.controllers import Controllers
    from pykafkad.slices import Work

CREATE_TOPICS, NEWEST = 19, 7
PATIENCE_MS = 10_000  # for the controller, and for the image after it
NOBODY_LEADS = errors.TOPIC_ALREADY_EXISTS


class Creating:
    def __init__(
        self, node_id: int, image: Image, controllers: Controllers, call_later: Callable[..., Any]
    ) -> None:
        self._image, self._controllers, self._call_later = image, controllers, call_later
        self._purpose = Purpose(f"broker-{node_id}-creation", asks_versions=True)
        self._awaited: list[tuple[list[str], Wait]] = []

    def create(
        self, topics: Sequence[Any], validate_only: bool, done: Created, in_image: Created | None = None
    ) -> Work:
        """As LocalController's: `in_image` is told before `done`."""
        if not topics:
            tell(done, [])
            return
        asked = Wait()
        request = CreateTopicsRequest(
            topics=list(topics), timeout_ms=PATIENCE_MS, validate_only=validate_only
        )
        self._controllers.ask(
            self._purpose,
            CREATE_TOPICS,
            NEWEST,
            lambda version: request,
            asked.come,
            patience_ms=PATIENCE_MS,
        )
        answer = yield from asked.result()
        planned = [outcome(topic.name, answer) for topic in topics]
        made = [each.name for each in planned if each.error is None or each.error.code == NOBODY_LEADS]
        if not validate_only:
            yield from self._until_in_image(made)
        if in_image is not None:
            in_image([each for each in planned if each.error is None])
        tell(done, planned)

    def _until_in_image(self, names: list[str]) -> Work:
        if any(name not in self._image.topics for name in names):
            wait = Wait()
            entry = names, wait
            self._awaited.append(entry)
            self._call_later(PATIENCE_MS, self._give_up, entry)
            yield from wait.result()

    def look(self) -> None:
        """The image has changed."""
        for entry in list(self._awaited):
            if all(name in self._image.topics for name in entry[0]):
                self._give_up(entry)

    def _give_up(self, entry: tuple[list[str], Wait]) -> None:
        if any(each is entry for each in self._awaited):
            self._awaited = [each for each in self._awaited if each is not entry]
            entry[1].come()


def outcome(name: str, answer: Any) -> Planned:
    planned = Planned(name)
    if isinstance(answer, OSError):
        planned.error = KafkaError(errors.REQUEST_TIMED_OUT, str(answer))
        return planned
    row = next((each for each in answer.topics if each.name == name), None)
    if row is None:
        planned.error = KafkaError(errors.UNKNOWN_SERVER_ERROR)
    elif row.error_code:
        planned.error = KafkaError(row.error_code, row.error_message)
    return planned
