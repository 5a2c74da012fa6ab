"""Topics that are created when the broker starts, as wurstmeister's image does it: `pykafkad.create.topics`, from
KAFKA_CREATE_TOPICS. The form is NAME:PARTITIONS:REPLICAS[:CLEANUP.POLICY], several of them separated by commas.
"""

from __future__ import annotations

from pykafkad.config_def import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.controller import Controller, CreatableTopic
    from pykafkad.cluster.topic_creation import Planned

KEY = "pykafkad.create.topics"
FORM = "NAME:PARTITIONS:REPLICAS[:CLEANUP.POLICY], several of them separated by commas"
AS_BY_DEFAULT = -1
MOST_DIGITS = 4


def parse(text: str) -> list[CreatableTopic]:
    """The topics as CreateTopics has them; ConfigError for another form."""
    from pykafkad.messages import CreateTopicsRequest

    topics = []
    for entry in filter(None, (each.strip() for each in text.split(","))):
        name, *rest = entry.split(":")
        counts, policies = rest[:2], rest[2:]
        if not name or len(policies) > 1 or not all(_is_count(each) for each in counts):
            raise ConfigError(KEY, entry, f"Invalid value {entry} for configuration {KEY}", FORM)
        partitions, replicas = [*map(int, counts), AS_BY_DEFAULT, AS_BY_DEFAULT][:2]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas
        )
        if policies and policies[0]:
            setting = CreateTopicsRequest.CreatableTopicConfig
            topic.configs = [setting(name="cleanup.policy", value=policies[0])]
        topics.append(topic)
    return topics


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) > 0


def create(text: str, controller: Controller, run_pass: Callable[[int], object]) -> None:
    """Returns when those that are not there yet can be used, or cannot be made."""
    from pykafkad.errors import TOPIC_ALREADY_EXISTS
    from pykafkad.logs import logger

    done: list[Sequence[Planned]] = []
    controller.create_topics(parse(text), False, done.append)
    while not done:
        run_pass(100)
    log = logger("controller")
    for topic in done[0]:
        if topic.error is None:
            log.info(f"created topic {topic.name}, {len(topic.replicas)} partition(s)")
        elif topic.error.code != TOPIC_ALREADY_EXISTS:
            log.error(f"topic {topic.name} of {KEY} could not be created: {topic.error}")
