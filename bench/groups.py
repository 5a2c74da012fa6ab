"""Measurements of groups: the time to a member's first record and until many members are stable, the costs of commits
and of groups in memory.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import frames
from bench.measures import Numbers, Sizes, Topic, run_client
from bench.members import PROTOCOLS, Seat, join, leave, settle
from bench.sides import Side
from compat_tests.raw import RawClient
from pykafkad.messages import (
    DeleteGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)

METADATA_VERSION = 12
FIND_COORDINATOR_VERSION = 6
OFFSET_FETCH_VERSION = 9
OFFSET_COMMIT_VERSION = 9
DELETE_GROUPS_VERSION = 2
ALTER_CONFIGS_VERSION = 1
GROUP_RESOURCE = 32
LIST_OFFSETS_VERSION = 7
READY_SECONDS = 30
COMMITS_A_SECOND = 10_000
COMMITS_A_TICK = 10
COMMIT_CONNECTION_BYTES = 1 << 16
_numbers = itertools.count()


def new_group() -> str:
    return f"bench-group-{next(_numbers)}"


def topic_id(client: RawClient, topic: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    return bytes(client.ask(request, METADATA_VERSION).topics[0].topic_id)


def find_coordinator(client: RawClient, group: str) -> None:
    """Ask until it is known: the first request waits until __consumer_offsets is created."""
    deadline = time.monotonic() + READY_SECONDS
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while client.ask(request, FIND_COORDINATOR_VERSION).coordinators[0].error_code:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no coordinator after {READY_SECONDS} s")
        time.sleep(0.01)


def set_group_config(client: RawClient, group: str, key: str, value: str) -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.ask(request, ALTER_CONFIGS_VERSION).responses[0]
    if answer.error_code:
        raise RuntimeError(f"{group} cannot have {key}={value}: {answer}")


def delete_groups(client: RawClient, groups: list[str]) -> None:
    answer = client.ask(DeleteGroupsRequest(groups_names=groups), DELETE_GROUPS_VERSION)
    if refused := [result for result in answer.results if result.error_code]:
        raise RuntimeError(f"{len(refused)} groups are not deleted: {refused[0]}")


@contextmanager
def _filled(side: Side) -> Iterator[tuple[RawClient, str]]:
    """A topic with one record in it."""
    with Topic(side) as topic, side.client() as client:
        client.ask(frames.produce_message(topic, 0, frames.batch(1, 100)), frames.PRODUCE_VERSION)
        yield client, topic


def subscribe_client(side: Side, sizes: Sizes) -> Numbers:
    """A stock client, from subscribe() to the first record."""
    result: Numbers = {}
    with _filled(side) as (_, topic):
        for protocol in PROTOCOLS:
            found = run_client(f"subscribe-{protocol}", side, topic, sizes.subscriptions, 0)
            result[f"{protocol}_ms"] = found["p50_ms"]
    return result


def subscribe_raw(side: Side, sizes: Sizes) -> Numbers:
    """The same requests on one raw socket, without a client's timers: the broker's part of that time."""
    result: Numbers = {}
    with _filled(side) as (client, topic):
        for protocol in PROTOCOLS:
            groups = [new_group() for _ in range(sizes.raw_subscriptions)]
            times = [_first_record(client, topic, group, protocol) for group in groups]
            delete_groups(client, groups)
            result[f"{protocol}_ms"] = statistics.median(times) * 1e3
    return result


def _first_record(client: RawClient, topic: str, group: str, protocol: str) -> float:
    began = time.perf_counter()
    member = PROTOCOLS[protocol](group, topic, topic_id(client, topic), 1)
    find_coordinator(client, group)
    join(client, member)
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
    fetched = client.ask(OffsetFetchRequest(groups=[of_group], require_stable=True), OFFSET_FETCH_VERSION)
    if fetched.groups[0].topics[0].partitions[0].committed_offset != -1:
        raise RuntimeError(f"a new group has offsets: {fetched}")
    part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-2)
    first = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[part])
    offset = (
        client.ask(ListOffsetsRequest(topics=[first]), LIST_OFFSETS_VERSION).topics[0].partitions[0].offset
    )
    fetch = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    entry = FetchRequest.FetchTopic(topic=topic, partitions=[fetch])
    answer = client.ask(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[entry]), frames.FETCH_VERSION)
    seconds = time.perf_counter() - began
    if not answer.responses[0].partitions[0].records:
        raise RuntimeError(f"no record for {group}: {answer}")
    leave(client, member)
    return seconds


def settling(side: Side, sizes: Sizes) -> Numbers:
    """Members that all join at once, with one partition for each, until each owns its own."""
    result: Numbers = {}
    with Topic(side, sizes.members) as topic, side.client() as client:
        for protocol in PROTOCOLS:
            result |= _settled(side, client, topic, sizes.members, protocol, protocol)
        result |= _settled(side, client, topic, sizes.members, "consumer", "at_once", interval_ms=0)
    return result


def _settled(
    side: Side,
    client: RawClient,
    topic: str,
    count: int,
    protocol: str,
    name: str,
    interval_ms: int | None = None,
) -> Numbers:
    """`interval_ms` is the shortest time between two assignments, if it is not to be the default of a second."""
    group = new_group()
    find_coordinator(client, group)
    if interval_ms is not None:
        set_group_config(client, group, "consumer.assignment.interval.ms", str(interval_ms))
    identifier = topic_id(client, topic)
    seats = [Seat(side, PROTOCOLS[protocol](group, topic, identifier, count)) for _ in range(count)]
    try:
        cpu = side.cpu()
        seconds = settle(seats)
        cpu = side.cpu() - cpu
    finally:
        for seat in seats:
            seat.client.close()
    for seat in seats:
        leave(client, seat.member)
    delete_groups(client, [group])
    return {f"{name}_seconds": seconds, f"{name}_cpu": cpu}


def _commit_frame(group: str, topic: str, offset: int) -> bytes:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    entry = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[part])
    return frames.framed(OffsetCommitRequest(group_id=group, topics=[entry]), OFFSET_COMMIT_VERSION)


def offset_commits(side: Side, sizes: Sizes) -> Numbers:
    """10,000 commits a second, of one partition each, sent over one connection without waiting for answers."""
    group = new_group()
    with Topic(side) as topic, side.client() as client:
        find_coordinator(client, group)
        ticks = int(sizes.seconds * COMMITS_A_SECOND / COMMITS_A_TICK)
        _pour(client, group, topic, ticks // 4)
        cpu, began = side.cpu(), time.perf_counter()
        lag = _pour(client, group, topic, ticks)
        seconds = time.perf_counter() - began
        commits = ticks * COMMITS_A_TICK
        result = {
            "rate": commits / seconds,
            "cpu_us": (side.cpu() - cpu) / commits * 1e6,
            "lag_ms": lag * 1e3,
        }
        delete_groups(client, [group])
    return result


def _pour(client: RawClient, group: str, topic: str, ticks: int) -> float:
    """Ten commits a millisecond, as long as the socket accepts them; seconds from the last one sent to the last
    answer."""
    error_at = len(_answer_head(topic))
    tick = b"".join(_commit_frame(group, topic, number) for number in range(COMMITS_A_TICK))
    interval = COMMITS_A_TICK / COMMITS_A_SECOND
    heard, answered, began = bytearray(), 0, time.perf_counter()
    client.socket.settimeout(READY_SECONDS)
    for number in range(ticks):
        client.socket.sendall(tick)
        answered += _hear(client, heard, error_at, wait=False)
        time.sleep(max(0.0, began + (number + 1) * interval - time.perf_counter()))
    sent = time.perf_counter()
    while answered < ticks * COMMITS_A_TICK:
        answered += _hear(client, heard, error_at, wait=True)
    return time.perf_counter() - sent


def _answer_head(topic: str) -> bytes:
    """The bytes before the error code: ids and tags, throttle time, counts, the topic's name, the partition."""
    return bytes(4 + 1 + 4 + 1 + 1 + len(topic) + 1 + 4)


def _hear(client: RawClient, heard: bytearray, error_at: int, *, wait: bool) -> int:
    """How many answers have arrived; each must be without an error."""
    import socket

    try:
        data = client.socket.recv(COMMIT_CONNECTION_BYTES, 0 if wait else socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0
    heard += data
    count = at = 0
    while len(heard) - at >= 4 and len(heard) - at >= 4 + (size := int.from_bytes(heard[at : at + 4], "big")):
        if heard[at + 4 + error_at : at + 6 + error_at] != b"\0\0":
            raise RuntimeError(f"a commit is refused: {bytes(heard[at : at + 4 + size]).hex()}")
        at += 4 + size
        count += 1
    del heard[:at]
    return count


def group_memory(side: Side, sizes: Sizes) -> Numbers:
    """Groups with one member that owns one partition, and has committed its offset."""
    result: Numbers = {}
    with Topic(side) as topic, side.client() as client:
        identifier = topic_id(client, topic)
        for protocol in PROTOCOLS:
            members = [PROTOCOLS[protocol](new_group(), topic, identifier, 1) for _ in range(sizes.groups)]
            find_coordinator(client, members[0].group)
            before = side.resident()
            for member in members:
                join(client, member)
                _commit(client, topic, member)
            result[f"{protocol}_bytes"] = max(side.resident() - before, 0)
            for member in members:
                leave(client, member)
            delete_groups(client, [member.group for member in members])
    return result


def _commit(client: RawClient, topic: str, member: Any) -> None:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    entry = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[part])
    request = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[entry],
    )
    answer = client.ask(request, OFFSET_COMMIT_VERSION)
    if answer.topics[0].partitions[0].error_code:
        raise RuntimeError(f"a commit is refused: {answer}")
