"""`facts`: what is known about one group, one topic, or both, for `pykafkad explain` (pure/explaining.py has the rules).

Rows: the broker, the topics that are asked for (or that the group subscribes to or has committed offsets of) with their
partitions, the group with its members and offsets, and who fetches from these topics: fetches that wait, and fetch
sessions, which tell when they were last used.
"""

from __future__ import annotations

from pykafkad.control import group_facts
from pykafkad.control.lines import CommandError, check_known, text
from pykafkad.control.status import broker_facts
from pykafkad.errors import KafkaError
from pykafkad.message_views import cut
from pykafkad.pure.hosts import java_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.cluster.replica import Replica
    from pykafkad.pure.fetch_session import Followed
    from pykafkad.server import Broker

    Row = dict[str, Any]

READ_COMMITTED = 1
TOPICS_MAX = 100
PARTITIONS_MAX = 1_000  # of a topic
SIMILAR_MAX = 2_000  # names of topics that are told where one is not found


def rows(broker: Broker, client: object, arguments: Row) -> Iterator[Row | None]:
    check_known(arguments, "group", "topic")
    group_id, topic = text(arguments, "group"), text(arguments, "topic")
    if group_id is None and topic is None:
        raise CommandError("facts about what? group, topic, or both")
    yield {"broker": broker_facts(broker)}
    topics = dict.fromkeys([topic] if topic is not None else [])
    if group_id is not None:
        for row in group_rows(broker, group_id):
            if topic is None and row is not None:
                topics.update(dict.fromkeys(topics_in(row)))
            yield row
    names = list(topics)[:TOPICS_MAX]
    for name in names:
        yield from topic_rows(broker, name)
    yield from fetches(broker, set(names))


def topics_in(row: Row) -> Iterable[str]:
    """That the group is about."""
    if "member" in row:
        return [*(row["member"]["topics"] or ()), *(row["member"]["assigned"] or ())]
    return [row["committed"]["topic"]] if "committed" in row else []


def group_rows(broker: Broker, group_id: str) -> Iterator[Row | None]:
    group = group_facts.find(broker, group_id)
    if group is None:
        if group_facts.are_loading(broker):
            yield {"coordinator": "loading"}
        return
    yield {"group": group_facts.group_facts(group)}
    for member in list(group_facts.members_of(group).values()):
        yield {"member": group_facts.member_facts(broker, group, member)}
    for row in group_facts.committed(broker, group):
        yield None if row is None else {"committed": row}


def topic_rows(broker: Broker, name: str) -> Iterator[Row | None]:
    found = broker.image.topics.get(name)
    if found is None:
        others = [each for each, topic in broker.image.topics.items() if not topic.is_internal]
        yield {"topic": {"name": name, "exists": False, "others": others[:SIMILAR_MAX]}}
        return
    yield {"topic": {"name": name, "exists": True, "partitions": len(found.partitions)}}
    for index in range(min(len(found.partitions), PARTITIONS_MAX)):
        replica = broker.replicas.get((name, index))
        info = found.partitions[index]
        row: Row = {"topic": name, "index": index, "leader": info.leader, "leads": False}
        if replica is not None and replica.is_online and replica.leadership is not None:
            row |= {"leads": True, **log_facts(replica)}
        yield {"partition": row}


def log_facts(replica: Replica) -> Row:
    return {
        "start": replica.log_start_offset,
        "high_watermark": replica.high_watermark,
        "end": replica.log_end_offset,
        "last_stable": replica.last_stable_offset,
        "transaction": open_transaction(replica),
    }


def open_transaction(replica: Replica) -> Row | None:
    """The one that holds the last stable offset, if any does."""
    ongoing = replica.producers.ongoing
    if not ongoing or replica.last_stable_offset >= replica.high_watermark:
        return None
    first_offset = min(ongoing)
    producer_id = ongoing[first_offset]
    entry = replica.producers.producers.get(producer_id)
    last_ms = entry.last_timestamp if entry is not None else -1
    return {"producer_id": producer_id, "first_offset": first_offset, "last_timestamp_ms": last_ms}


# -- who fetches


def fetches(broker: Broker, topics: set[str]) -> Iterator[Row | None]:
    connected = {"{}:{}".format(*each.peer) for each in broker.reactor.connections}
    parked = set()
    for waiter in broker.waiting:
        fetch: Any = waiter.request
        if fetch is not None:
            host, port = fetch.context.connection.peer
            who = client_facts(fetch.context.client_id, f"{host}:{port}")
            who["committed_only"] = fetch.request.isolation_level == READ_COMMITTED
            parked.add(who["address"])
            session = fetch.decision.session
            everything = fetch.followed if session is None else session.followed()
            yield from followed_rows(broker, topics, who, everything)
    for session in broker.fetch_sessions:
        client_id, address, committed_only = session.client
        if address not in parked:
            idle_ms = max(0, broker.clock.monotonic_ms() - session.last_used_ms)
            who = client_facts(client_id, address, idle_ms=idle_ms, connected=address in connected)
            who["committed_only"] = committed_only
            yield from followed_rows(broker, topics, who, session.followed())


def client_facts(client_id: str, address: str, *, idle_ms: int = 0, connected: bool = True) -> Row:
    """`host`: as groups have it of their members."""
    host = java_text(address.rpartition(":")[0])
    return {
        "client_id": cut(client_id),
        "address": address,
        "host": host,
        "connected": connected,
        "idle_ms": idle_ms,
    }


def followed_rows(
    broker: Broker, topics: set[str], who: Row, all_followed: list[Followed]
) -> Iterator[Row | None]:
    for followed in all_followed:
        name = followed.topic
        if isinstance(name, bytes):
            known = broker.image.topics_by_id.get(name)
            name = known.name if known is not None else ""
        if name in topics:
            yield {"fetch": {**who, **fetch_facts(broker, str(name), followed)}}
        yield None


def fetch_facts(broker: Broker, topic: str, followed: Followed) -> Row:
    return {
        "topic": topic,
        "partition": followed.index,
        "offset": followed.fetch_offset,
        "max_bytes": followed.max_bytes,
        "next_bytes": next_bytes(broker.replicas.get((topic, followed.index)), followed.fetch_offset),
    }


def next_bytes(replica: Replica | None, offset: int) -> int:
    """The size of the batch that the fetch would be given; 0 if there is none."""
    if (
        replica is None
        or not replica.is_online
        or not replica.log_start_offset <= offset < replica.high_watermark
    ):
        return 0
    try:
        found = replica.read(offset, 1, limit_offset=replica.high_watermark, at_least_one=True)
    except KafkaError:
        return 0
    return found.size if found is not None else 0
