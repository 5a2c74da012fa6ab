"""`status`: what a broker has and does, a row for each: broker, topics, groups, connections, what waits for what."""

from __future__ import annotations

import os

from pykafkad import __version__
from pykafkad.control import group_facts
from pykafkad.control.lines import check_known
from pykafkad.message_views import cut
from pykafkad.pure.fetch_session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.server import Broker

    Row = dict[str, Any]

PARTITIONS_SHOWN = 8  # that a request waits for


def rows(broker: Broker, client: object, arguments: Row) -> Iterator[Row | None]:
    check_known(arguments)
    yield {"broker": broker_facts(broker)}
    for name in sorted(broker.image.topics):
        yield from topic(broker, name)
    for group in group_facts.groups(broker):
        yield from group_row(broker, group)
    for connection in list(broker.reactor.connections):
        if connection.protocol is broker.reactor.protocol and not connection.closed:
            yield {"connection": connection_facts(broker, connection)}
    yield from waiting(broker)


def broker_facts(broker: Broker) -> Row:
    return {
        "node_id": broker.node_id,
        "cluster_id": broker.cluster_id,
        "version": __version__,
        "pid": os.getpid(),
        "listeners": [str(each) for each in broker.listeners.endpoints],
        "advertised": [[each.name, each.host, each.port] for each in broker.listeners.advertised],
        "directories": [{"path": each.path, "failure": each.failure} for each in broker.storage.directories],
        "connections": sum(broker.listeners.counts.values()),
        "requests": broker.reactor.frames,
        "received_bytes": broker.reactor.received_bytes,
        "sent_bytes": broker.reactor.sent_bytes,
        "loop_held": {"times": broker.reactor.holds.count, "longest_us": broker.reactor.holds.longest_us},
    }


def topic(broker: Broker, name: str) -> Iterator[Row | None]:
    found = broker.image.topics.get(name)
    if found is None:
        return
    size = records = offline = 0
    count = len(found.partitions)
    for index in range(count):
        replica = broker.replicas.get((name, index))
        if replica is None or not replica.is_online:
            offline += 1
        else:
            size += replica.log.size
            records += replica.high_watermark - replica.log_start_offset
        yield None
    row = {"name": name, "partitions": count, "records": records, "bytes": size, "offline": offline}
    yield {"topic": {**row, "internal": found.is_internal}}


def group_row(broker: Broker, group: Any) -> Iterator[Row | None]:
    lag = 0
    for committed in group_facts.committed(broker, group):
        lag += committed["lag"] or 0 if committed is not None else 0
        yield None
    yield {"group": {**group_facts.group_facts(group), "lag": lag}}


def connection_facts(broker: Broker, connection: Any) -> Row:
    host, port = connection.peer
    state = connection.state
    name, version = state.software or ("", "") if state is not None else ("", "")
    return {
        "address": f"{host}:{port}",
        "listener": connection.listener.owner.name,
        "client_id": cut(state.client_id) if state is not None else "",
        "software": name,
        "software_version": version,
        "idle_ms": max(0, broker.reactor.now_ms - connection.received_at_ms),
        "unfinished_bytes": connection.frame_bytes,
        "queued_bytes": connection.queued_bytes,
    }


# -- what waits for what


def waiting(broker: Broker) -> Iterator[Row | None]:
    for waiter in broker.waiting:
        partitions = [each for each in waiter.partitions if not isinstance(each, Session)]
        names = [each.name for each in partitions[:PARTITIONS_SHOWN]]
        fetch: Any = waiter.request
        row = {"what": waiter.what, "partitions": names, "partition_count": len(partitions)}
        if fetch is not None:
            row |= {"client_id": cut(fetch.context.client_id), "max_wait_ms": fetch.request.max_wait_ms}
            row["address"] = "{}:{}".format(*fetch.context.connection.peer)
        yield {
            "waiting": {
                **row,
                "for": f"{fetch.request.min_bytes} bytes of records" if fetch else "their commit",
            }
        }
    for group in group_facts.groups(broker):
        for member in group_facts.waiting_members(group):
            yield {"waiting": member}
        yield None
    for name, count in broker.promises.held_by():
        yield {"waiting": {"what": "append", "partitions": [name], "answers": count, "for": "the disk"}}
