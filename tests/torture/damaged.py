"""Damaged partitions: many at a time, under one broker that recovers them all.

A broker writes twenty batches to a partition and is killed, or stopped. That partition is copied over all others of a
topic, and each copy is damaged in its own way (damages.py). A broker that starts with them must have enough records of
each, as they were sent, must accept another record everywhere, and must have all of it after the next start. A damage
of the checkpoints of the whole directory is a `Setting`; each needs a start of its own.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import InitProducerIdRequest, ProduceRequest
from pykafkad.testing.client import Client
from tests.torture.cases import Life, Outcome, life
from tests.torture.damages import Batch, Damage, Layout, cuts, fields, flips, other_files, tails
from tests.torture.ledger import Entry, Fault
from tests.torture.verify import check_directories
from tests.torture.workload import fetch, read_entries

BATCHES = 20
NOW_MS = 1_700_000_000_000
TOPIC = "damaged"
CONFIG = {"index.interval.bytes": 300, "retention.ms": -1}

# -- the whole directory


@dataclass(frozen=True)
class Setting:
    """How the broker left the directory: its checkpoints, clean or not, one segment or several."""

    name: str
    checkpoints: tuple[tuple[str, str], ...] = ()
    rolled: bool = False
    clean: bool = False
    codec: str = "none"
    per_batch: int = 1


GARBAGE = "\0\1garbage\nno checkpoint"
RECOVERY_POINTS, HIGH_WATERMARKS = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
SETTINGS = {
    each.name: each
    for each in (
        Setting("killed"),
        Setting("killed-with-segments", rolled=True),
        Setting("killed-with-lz4", codec="lz4", per_batch=3),
        Setting("killed-with-segments-of-zstd", codec="zstd", per_batch=7, rolled=True),
        Setting("recovery-points-at-the-end", ((RECOVERY_POINTS, "20"), (HIGH_WATERMARKS, "20"))),
        Setting("checkpoints-beyond-the-end", ((RECOVERY_POINTS, "9999"), (HIGH_WATERMARKS, "9999"))),
        Setting("recovery-points-unreadable", ((RECOVERY_POINTS, GARBAGE),)),
        Setting("high-watermarks-unreadable", ((HIGH_WATERMARKS, GARBAGE),)),
        Setting("log-starts-unreadable", (("log-start-offset-checkpoint", GARBAGE),)),
        Setting("cleaner-offsets-unreadable", (("cleaner-offset-checkpoint", GARBAGE),)),
        Setting("stopped", clean=True),
        Setting("stopped-with-segments", clean=True, rolled=True),
    )
}


def damages(setting: Setting, layout: Layout, chance: random.Random) -> list[Damage]:
    nothing = Damage("nothing", lambda home: None, layout.all)
    if not setting.clean:
        found = [*flips(layout, chance), *cuts(layout), *tails(layout, chance), *fields(layout, chance)]
        return [nothing, *found, *other_files(layout, chance)]
    # After a clean stop only the end is checked; damage before it is served as it is, as in Kafka.
    unseen = [
        Damage(each.name, each.apply, each.kept, served_damaged=True)
        for each in chance.sample(list(flips(layout, chance)), 10)
    ]
    whole = [each for each in other_files(layout, chance) if ".swap" not in each.name]
    return [nothing, *cuts(layout), *whole, *unseen]


# -- a case: one setting with all its damages


@dataclass(frozen=True)
class Damaged:
    setting: str
    seed: int
    only: int = -1  # only these damages; otherwise all of them
    at_most: int = 1 << 30

    @property
    def command(self) -> str:
        only = f" --only {self.only}" if self.only >= 0 else ""
        return f"python -m tests.torture damage --setting {self.setting} --seed {self.seed}{only}"

    def run(self, where: str | None = None) -> Outcome:
        outcome = Outcome(self.command)
        with life("usual", self.seed, where, outcome) as one:
            run_setting(one, self, outcome)
        return outcome


def run_setting(one: Life, case: Damaged, outcome: Outcome) -> None:
    setting = SETTINGS[case.setting]
    chance = random.Random(case.seed)
    template = one.home / "template"
    sent = make_template(one, setting, template)
    layout = layout_of(template)
    chosen = list(enumerate(damages(setting, layout, chance)))
    if case.only >= 0:
        chosen = [chosen[case.only]]
    elif len(chosen) > case.at_most:
        chosen = [chosen[0], *chance.sample(chosen[1:], case.at_most - 1)]
    put_damages(one, setting, template, [damage for _, damage in chosen])
    outcome.notes["damages"] = len(chosen)
    broker = one.begin()
    broker.start()
    found: list[list[Entry]] = []
    with broker.client() as client:
        for index, (number, damage) in enumerate(chosen):
            try:
                found.append(check_one(client, index, damage, sent))
            except Fault as fault:
                raise Fault(f"{damage.name}: {fault}\nalone: {case.command} --only {number}") from fault
    finish(one, chosen, found)


def make_template(one: Life, setting: Setting, template: Path) -> list[Entry]:
    """One partition as a kill or a stop leaves it, with the checkpoints of its directory; the records in it."""
    broker = one.begin()
    broker.start()
    segment_bytes = {"internal.segment.bytes": 1000} if setting.rolled else {}
    broker.create_topic("template", 1, CONFIG | segment_bytes)
    sent: list[Entry] = []
    with broker.client() as client:
        producer_id = client.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4
        ).producer_id
        for _ in range(BATCHES):
            entries = [Entry(None, len(sent) + index, True) for index in range(setting.per_batch)]
            produce(client, "template", 0, build(entries, setting.codec, producer_id, len(sent)), len(sent))
            sent += entries
    if setting.clean:
        one.stop()
    else:
        broker.kill()
    shutil.copytree(one.home / "data" / "template-0", template)
    return sent


def build(entries: list[Entry], codec: str, producer_id: int = -1, sequence: int = -1) -> bytes:
    return records.build(
        [(entry.key, entry.value, [("n", b"%d" % entry.number)], NOW_MS) for entry in entries],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )


def layout_of(template: Path) -> Layout:
    segments = []
    for path in sorted(template.glob("*.log")):
        batches = tuple(
            Batch(each.position, each.size, each.count) for each in records.scan(path.read_bytes())
        )
        if batches:
            segments.append((path.name, batches))
    return Layout(tuple(segments))


def put_damages(one: Life, setting: Setting, template: Path, chosen: list[Damage]) -> None:
    """A topic with a partition for each damage; returns what the broker should find when it starts."""
    broker = one.begin()
    broker.start()
    segment_bytes = {"internal.segment.bytes": 1000} if setting.rolled else {}
    broker.create_topic(TOPIC, len(chosen), CONFIG | segment_bytes)
    data = one.home / "data"
    if setting.clean:
        one.stop()
    else:
        broker.kill()
    topic_id = (data / f"{TOPIC}-0" / "partition.metadata").read_bytes() if setting.clean else None
    for index, damage in enumerate(chosen):
        home = data / f"{TOPIC}-{index}"
        shutil.rmtree(home)
        shutil.copytree(template, home)
        if topic_id is not None:
            (home / "partition.metadata").write_bytes(topic_id)
        else:
            (home / "partition.metadata").unlink(missing_ok=True)
        damage.apply(home)
    for name, text in setting.checkpoints:
        lines = [f"{TOPIC} {index} {text}" for index in range(len(chosen))]
        (data / name).write_text(text if text == GARBAGE else "\n".join(["0", str(len(lines)), *lines, ""]))


def check_one(client: Client, index: int, damage: Damage, sent: list[Entry]) -> list[Entry]:
    """The partition has enough records, all as they were sent, and accepts one more. Returns what it has then."""
    if damage.served_damaged:
        row = client.call(fetch(TOPIC, 0, index=index), 12).responses[0].partitions[0]
        if row.error_code not in (errors.NONE, errors.CORRUPT_MESSAGE):
            raise Fault(f"Fetch was answered {errors.NAMES.get(row.error_code)}")
        return []
    found, end = read_all(client, index)
    if len(found) < damage.kept:
        raise Fault(f"{len(found)} records are left, {damage.kept} should be")
    expected = [sent[entry.number] for entry in found] if damage.gap else sent[: len(found)]
    if found != expected or sorted(found) != found:
        raise Fault(f"these are not the first {len(found)} records that were sent: {found[-3:]}")
    more = Entry(None, 1_000_000 + index, True)
    produce(client, TOPIC, index, build([more], "none"), end)
    again, _ = read_all(client, index)
    if again != [*found, more]:
        raise Fault(f"after another record there are {len(again)}, there were {len(found)}")
    return again


def read_all(client: Client, index: int) -> tuple[list[Entry], int]:
    found: list[Entry] = []
    offset = 0
    while True:
        row = client.call(fetch(TOPIC, offset, index=index), 12).responses[0].partitions[0]
        if row.error_code != errors.NONE:
            raise Fault(f"Fetch at {offset} was answered {errors.NAMES.get(row.error_code)}")
        batches = records.scan(row.records or b"")
        if not batches:
            return found, row.high_watermark
        found += [entry for at, entry in read_entries(f"{TOPIC}-{index}", row.records) if at >= offset]
        offset = batches[-1].last_offset + 1


def produce(client: Client, topic: str, index: int, batch: bytes, expected: int) -> None:
    item = ProduceRequest.PartitionProduceData(index=index, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[item])]
    row: Any = client.call(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics), 9)
    row = row.responses[0].partition_responses[0]
    if (row.error_code, row.base_offset) != (errors.NONE, expected):
        said = errors.NAMES.get(row.error_code)
        raise Fault(f"Produce was answered {said} and offset {row.base_offset}, the log ended at {expected}")


def finish(one: Life, chosen: list[tuple[int, Damage]], found: list[list[Entry]]) -> None:
    """After a stop the directory is whole, as far as that is possible, and the next broker has the same records."""
    one.stop()
    if not any(damage.served_damaged for _, damage in chosen):
        check_directories(one.directories)
    broker = one.begin()
    broker.start()
    with broker.client() as client:
        for index, (_, damage) in enumerate(chosen):
            if not damage.served_damaged and read_all(client, index)[0] != found[index]:
                raise Fault(f"{damage.name}: not the same records after another start")
    one.stop()
    one.check_log(errors=any(damage.served_damaged for _, damage in chosen))
