"""Reads a broker that came back, and compares it with the ledger."""

from __future__ import annotations

import os
import time
from typing import Any

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import MetadataRequest, OffsetFetchRequest
from pykafkad.testing.client import Client
from tests.torture import transactional
from tests.torture.ledger import After, Entry, Fault, Ledger, Read
from tests.torture.workload import fetch, find_coordinator, read_entries

LOADED_SECONDS = 20.0
FETCH_VERSION = 12


def verify(client: Client, ledger: Ledger, after: After) -> None:
    """Check topics, records and committed offsets, and settle the ledger with what was found."""
    settle_topics(client, ledger)
    for log in ledger.logs.values():
        if log.state == "there" and log.name not in transactional.TOPICS:
            log.settle(read_log(client, log.name), after)
    settle_groups(client, ledger, after)
    if ledger.producers and all(ledger.logs[topic].state == "there" for topic in transactional.TOPICS):
        transactional.settle(client, ledger.producers, committed)


def settle_topics(client: Client, ledger: Ledger) -> None:
    answer = client.call(MetadataRequest(topics=None), 9)
    there = {topic.name for topic in answer.topics}
    for topic in answer.topics:
        if topic.error_code != errors.NONE or any(row.error_code for row in topic.partitions):
            raise Fault(f"Metadata says {topic}")
    for log in ledger.logs.values():
        if log.state == "there" and log.name not in there:
            raise Fault(f"topic {log.name} was created and is gone")
        if log.state == "deleted" and log.name in there:
            raise Fault(f"topic {log.name} was deleted and is there")
        if log.state == "creating":
            log.state = "there" if log.name in there else "absent"
        if log.state == "deleting":
            log.state = "there" if log.name in there else "deleted"


def read_log(client: Client, topic: str, index: int = 0) -> Read:
    """From the first offset to the last, like a consumer that begins with the earliest record."""
    offset, start, size = 0, -1, 0
    entries: dict[int, Entry] = {}
    while True:
        row = ask(client, topic, offset)
        if row.error_code == errors.OFFSET_OUT_OF_RANGE and offset < row.log_start_offset:
            offset = row.log_start_offset
            continue
        if row.error_code != errors.NONE:
            raise Fault(f"{topic}: Fetch at {offset} was answered {errors.NAMES.get(row.error_code)}")
        start = row.log_start_offset if start < 0 else start
        data = row.records or b""
        batches = records.scan(data)
        if not batches:
            if offset < row.high_watermark and data:
                raise Fault(f"{topic}: no whole batch at {offset} of {row.high_watermark}")
            return Read(start, row.high_watermark, entries, size)
        for found, entry in read_entries(topic, data):
            if found >= offset:
                entries[found] = entry
        size += sum(batch.size for batch in batches)
        offset = batches[-1].last_offset + 1


def ask(client: Client, topic: str, offset: int) -> Any:
    row = client.call(fetch(topic, offset), FETCH_VERSION).responses[0].partitions[0]
    if row.error_code == errors.OFFSET_OUT_OF_RANGE and row.log_start_offset < 0:
        row.log_start_offset = earliest(client, topic)
    return row


def earliest(client: Client, topic: str) -> int:
    from pykafkad.messages import ListOffsetsRequest

    kind = ListOffsetsRequest
    asked = [kind.ListOffsetsPartition(partition_index=0, timestamp=-2)]
    request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=topic, partitions=asked)])
    row = client.call(request, 7).topics[0].partitions[0]
    if row.error_code != errors.NONE:
        raise Fault(f"{topic}: ListOffsets was answered {errors.NAMES.get(row.error_code)}")
    return int(row.offset)


def settle_groups(client: Client, ledger: Ledger, after: After) -> None:
    client.call(find_coordinator().request, 4)
    for name, group in ledger.groups.items():
        offset = committed(client, name)
        if not (group.acknowledged <= offset or after == "a power cut") or offset > group.sent:
            raise Fault(
                f"{name} has committed {offset}; acknowledged was {group.acknowledged}, sent {group.sent}"
            )
        group.acknowledged = offset


def committed(client: Client, group: str) -> int:
    """The group's committed offset, once its coordinator has loaded it; -1: none."""
    kind = OffsetFetchRequest
    request = kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=None)])
    deadline = time.monotonic() + LOADED_SECONDS
    while True:
        answer = client.call(request, 8).groups[0]
        if answer.error_code not in (
            errors.COORDINATOR_LOAD_IN_PROGRESS,
            errors.NOT_COORDINATOR,
            errors.COORDINATOR_NOT_AVAILABLE,
        ):
            break
        if time.monotonic() > deadline:
            raise Fault(f"{group} is not loaded after {LOADED_SECONDS} s")
        time.sleep(0.005)
    if answer.error_code != errors.NONE:
        raise Fault(f"OffsetFetch of {group} was answered {errors.NAMES.get(answer.error_code)}")
    return max((row.committed_offset for topic in answer.topics for row in topic.partitions), default=-1)


def check_directories(directories: list[str], ledger: Ledger | None = None) -> None:
    """`pykafkad check` after a clean stop; files may only be set aside if they belonged to topics that were deleted."""
    from pykafkad.tools.check import Check, Options

    options = Options()
    options.paths = directories
    found = Check(options)
    found.run()
    if found.problems:
        raise Fault("pykafkad check finds:\n" + "\n".join(str(problem) for problem in found.problems))
    there = (
        {log.name for log in ledger.logs.values() if log.state == "there"} if ledger is not None else set()
    )
    names = [name for path in directories for name in os.listdir(path) if name.endswith("-stray")]
    strays = [name for name in names if ledger is None or name.rpartition("-")[0].rpartition("-")[0] in there]
    if strays:
        raise Fault(f"set aside: {', '.join(strays)}")
