"""The broker of this machine that a tool is about: found by its data directory, or by where it listens.

With --data, the one that runs in this directory. With --bootstrap-server, the one that listens there: it is asked for its
log directories, and its control socket is in one of them, if it runs on this machine and is the user's own. With neither,
the one in the default data directory, or else the one at $KAFKA_BOOTSTRAP_SERVERS or localhost:9092.
"""

from __future__ import annotations

import os
import time

from pykafkad import errors
from pykafkad.control.client import ControlClient, ControlError
from pykafkad.messages import DescribeClusterRequest, DescribeLogDirsRequest
from pykafkad.net.client import addresses
from pykafkad.net.connection import Connection
from pykafkad.places import data_directory
from pykafkad.tools.options import Option, Options, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

DEADLINE_S = 5.0
DEFAULT_SERVERS = "localhost:9092"

OPTIONS: tuple[Option, ...] = (
    value("data", "directory", "The broker that runs in this data directory; by default the usual one."),
    value(
        "bootstrap-server",
        "host:port,...",
        "The broker that listens there, on this machine; by default $KAFKA_BOOTSTRAP_SERVERS, or else localhost:9092.",
    ),
)


def connect(options: Options) -> ControlClient:
    """Its control socket; ControlError."""
    data, servers = options.value("data"), options.value("bootstrap-server")
    if data is not None:
        return ControlClient(os.path.abspath(data))
    if servers is not None:
        return by_address(servers)
    usual = data_directory()
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or DEFAULT_SERVERS
    try:
        return ControlClient(usual or "")
    except ControlError as problem:
        try:
            return by_address(servers)
        except ControlError as other:
            raise ControlError(
                f"{problem}; {other}. Name one with --data DIR or --bootstrap-server"
            ) from None


def by_address(servers: str) -> ControlClient:
    """The one that listens at the first of these addresses where somebody does."""
    problem: Exception = ControlError("no address")
    for host, port in addresses(servers):
        try:
            cluster_id, directories = ask(host, port)
        except (OSError, UnicodeError, errors.KafkaError) as error:
            problem = error
            continue
        for client in clients(directories):
            if is_of(client, cluster_id, port):
                return client
            client.close()
        raise ControlError(
            f"the broker at {host}:{port} has no control socket that can be opened from here: is it on this machine,"
            " yours, and pykafkad?"
        )
    raise ControlError(f"no broker answers at {servers}: {getattr(problem, 'strerror', None) or problem}")


def ask(host: str, port: int) -> tuple[str, list[str]]:
    """The id of its cluster, and its log directories. It is asked right there: where it tells clients to connect may be
    what is wrong."""
    deadline = time.monotonic() + DEADLINE_S
    connection = Connection(host, port, "pykafkad-tools")
    try:
        connection.learn_versions(deadline)
        cluster: Any = connection.call(DescribeClusterRequest(), deadline)
        found: Any = connection.call(DescribeLogDirsRequest(topics=[]), deadline)
    finally:
        connection.close()
    return cluster.cluster_id, [row.log_dir for row in found.results]


def clients(directories: list[str]) -> Iterator[ControlClient]:
    for directory in directories:
        try:
            yield ControlClient(directory)
        except ControlError:
            continue


def is_of(client: ControlClient, cluster_id: str, port: int) -> bool:
    """Whether that is the broker which listens at this port; on another machine there may be the same directories."""
    rows = list(client.ask("status"))
    broker = rows[0]["broker"]
    ports = [int(each.rpartition(":")[2]) for each in broker["listeners"]]
    return broker["cluster_id"] == cluster_id and port in ports
