"""`pykafkad open DIR... --read-only`: serve copied Kafka data directories without writing a byte into them.

They may come from a broker of any size of cluster, with KRaft or ZooKeeper, stopped or killed. Each DIR is an entry of
a log.dirs, and several may be of one broker or of several. The partitions in them are served, from overlays in a
temporary directory (storage/overlay/overlay.py); what groups commit is kept there too, and is gone at the end.

Requests that would change something are refused with POLICY_VIOLATION and a message rather than left out of
ApiVersions: clients that miss an API report that the broker is too old, while the message gives the real reason. Asking
for a topic does not create it, and offsets do not expire. Transactions that were open or prepared stay so.
"""

from __future__ import annotations

import os
import sys

from pykafkad import cli
from pykafkad.cli import EXIT_USAGE, Options, UsageError
from pykafkad.cluster import opened
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.config import BrokerConfig
from pykafkad.coordinator.opened_transactions import OpenedTransactions
from pykafkad.errors import StartupError
from pykafkad.server import Broker, serve
from pykafkad.storage.directories import LogDirectory
from pykafkad.storage.overlay import overlay
from pykafkad.storage.overlay.opened import OpenedLogs
from pykafkad.uuids import random_uuid, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.controller import RunningController
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.opened import OpenedTopic
    from pykafkad.storage.manager import LogManager
    from pykafkad.storage.overlay.overlay import Source

USAGE = """\
usage: pykafkad open DIR... --read-only [options]

Serves copied Kafka data directories (entries of a log.dirs) without changing them: the partitions that are there,
with the groups and their offsets. What groups commit meanwhile is gone at the end.

  --host HOST           listen there (0.0.0.0: on every interface); also what clients are told, unless
                        advertised.listeners says otherwise
  --port PORT           0: any free one; the ready line names it
  --override KEY=VALUE  any config key; may be given again and again
  --log-level LEVEL     trace, debug, info, warn, error or off
  --log-format FORMAT   pykafkad, or kafka: lines as Kafka's images write them

TMPDIR needs room for the directories' small files and __consumer_offsets.
"""

OF_START = ("--data", "--remove-at-eof")
SETTERS = {name: setter for name, setter in cli.SETTERS.items() if name not in OF_START}


class OpenOptions(Options):
    __slots__ = ("directories", "read_only")

    def __init__(self) -> None:
        super().__init__()
        self.directories: list[str] = []
        self.read_only = False


def main(arguments: Sequence[str]) -> int:
    """The command; returns its exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write(USAGE)
        return 0
    try:
        options = parse(arguments)
    except UsageError as problem:
        return cli.fail(str(problem), EXIT_USAGE)
    return cli.guarded(options, _open, with_directory=True)


def parse(arguments: Sequence[str]) -> OpenOptions:
    options = OpenOptions()
    cli.read_options(options, arguments, _take, SETTERS)
    if not options.directories:
        raise UsageError("which directory? pykafkad open DIR... --read-only")
    if not options.read_only:
        raise UsageError("directories can only be opened as they are: pykafkad open DIR... --read-only")
    return options


def _take(options: OpenOptions, argument: str) -> bool:
    if argument == "--read-only":
        options.read_only = True
    elif argument.startswith("-"):
        return False
    else:
        options.directories.append(argument)
    return True


def _open(options: Options, temporary: str | None) -> int:
    assert isinstance(options, OpenOptions) and temporary is not None
    for path in options.directories:
        if not os.path.isdir(path):
            raise UsageError(f"{path} is no directory")
    sources = [overlay.read_source(path) for path in options.directories]
    if not any(source.partitions or source.metadata for source in sources):
        raise UsageError(f"{sources[0].path} is no Kafka data directory: there are no partitions in it")
    targets = [f"{temporary}/{number}" for number in range(len(sources))]
    config = config_of(options, sources, targets)
    cli.say_notes(config)
    shown = overlay.shown(sources)
    topics = opened.catalogue(shown, opened.read_images(sources), config)
    cluster_id = config["pykafkad.cluster.id"] or to_text(random_uuid())
    for source, target in zip(sources, targets, strict=True):
        keys = [key for key, chosen in shown.items() if chosen is source]
        try:
            overlay.build(source, target, keys, [CONSUMER_OFFSETS])
        except OSError as error:
            raise StartupError(f"{source.path} cannot be opened: {error}") from error
        LogDirectory(target).write_identity(cluster_id, config.node_id)
    return serve(OpenedBroker(config, topics), opened.describe(topics, sources))


def config_of(options: OpenOptions, sources: Sequence[Source], targets: Sequence[str]) -> BrokerConfig:
    """The config from the command line and what read-only serving requires; the node id is that of the directories."""
    node_id = next((source.node_id for source in sources if source.node_id is not None), None)
    cluster_id = next((source.cluster_id for source in sources if source.cluster_id), None)
    overrides = {
        **({"node.id": str(node_id)} if node_id is not None else {}),
        **({"pykafkad.cluster.id": cluster_id} if cluster_id is not None else {}),
        "pykafkad.create.topics": "",
        **options.overrides,
        "log.dirs": ",".join(targets),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",  # whatever it was where the directories come from
    }
    return BrokerConfig.from_sources(None, os.environ, overrides, host=options.host, port=options.port)


class OpenedBroker(Broker):
    _transactions = OpenedTransactions

    def __init__(self, config: BrokerConfig, topics: dict[str, OpenedTopic]) -> None:
        super().__init__(config)
        self._topics = topics

    def _begin_jobs(self) -> None:
        """None: nothing is deleted by retention, compacted or checkpointed, and no offset expires."""

    def _open_storage(self, kind: Callable[..., LogManager] = OpenedLogs) -> LogManager:
        return super()._open_storage(kind)

    def _open_controller(self, metadata: MetadataLog) -> RunningController:
        controller = opened.OpenedController(
            self.config, metadata, self.storage, self.node_id, self.submit, self.reactor.call_soon
        )
        controller.topics = self._topics
        return controller
