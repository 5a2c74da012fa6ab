"""Damaged files: many at a time, each in a partition of its own, under one broker that recovers them all.

A broker writes twenty batches to partition 0 and is killed; that partition is copied over all others of its topic, and
each copy is damaged in its own way. `kept` is what Apache Kafka 4.3.1 was measured to keep of such a log
(files-and-recovery.md), or what we promise where Kafka throws away more than it has to. A broker that starts on them
must have at least those, each as it was sent, must take another record everywhere, and must have all of it after the
next start. What is damaged in the checkpoints of the whole directory is a `Setting`; each is a start of its own.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import InitProducerIdRequest, ProduceRequest
from pykafkad.testing.client import Client
from tests.torture.cases import Life, Outcome, life
from tests.torture.ledger import Entry, Fault
from tests.torture.verify import check_directories
from tests.torture.workload import fetch, read_entries

BATCHES = 20
SEGMENT_BATCHES = 4
NOW_MS = 1_700_000_000_000
TOPIC = "damaged"
FAR = 1 << 31
CONFIG = {"index.interval.bytes": 300, "retention.ms": -1}


@dataclass(frozen=True)
class Batch:
    position: int
    size: int
    count: int


@dataclass(frozen=True)
class Layout:
    """The segments of the log that is damaged: their names and batches; how many records lie before each batch."""

    segments: tuple[tuple[str, tuple[Batch, ...]], ...]

    def records_before(self, segment: int, batch: int) -> int:
        whole = sum(each.count for _, batches in self.segments[:segment] for each in batches)
        return whole + sum(each.count for each in self.segments[segment][1][:batch])

    @property
    def all(self) -> int:
        return sum(each.count for _, batches in self.segments for each in batches)


@dataclass(frozen=True)
class Damage:
    """`kept`: how many of the records must be there afterwards."""

    name: str
    apply: Callable[[Path], None]
    kept: int
    gap: bool = False  # what comes after it may be there
    served_damaged: bool = False  # as in Kafka: nobody looks at it at a start after a clean stop


def patch(path: Path, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


def flip(path: Path, position: int, mask: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ mask]))


# -- one batch


def kept_with_flip(layout: Layout, segment: int, index: int, byte: int, mask: int, offset: int) -> int:
    """Fields before the attributes are not under the checksum; `offset` is the batch's first."""
    before = layout.records_before(segment, index)
    name, batches = layout.segments[segment]
    is_last = segment == len(layout.segments) - 1 and index == len(batches) - 1
    if byte < 8 and is_last:
        changed = offset ^ mask << 8 * (7 - byte)
        if offset < changed < int(name[:20]) + FAR:
            return layout.all  # an offset further on is as good as any
    return before


def flips(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Every byte of the last batch, and as many bytes of other ones."""
    segment = len(layout.segments) - 1
    last = len(layout.segments[segment][1]) - 1
    for byte in range(layout.segments[segment][1][last].size):
        yield flip_of(layout, segment, last, byte, chance)
    for _ in range(layout.segments[segment][1][last].size):
        segment = chance.randrange(len(layout.segments))
        index = chance.randrange(len(layout.segments[segment][1]))
        byte = chance.randrange(layout.segments[segment][1][index].size)
        yield flip_of(layout, segment, index, byte, chance)


def flip_of(layout: Layout, segment: int, index: int, byte: int, chance: random.Random) -> Damage:
    name, batches = layout.segments[segment]
    batch = batches[index]
    mask = 1 << chance.randrange(8)
    kept = kept_with_flip(layout, segment, index, byte, mask, layout.records_before(segment, index))
    return Damage(
        f"byte {byte} of batch {index} of {name} xor {mask:#x}",
        lambda home: flip(home / name, batch.position + byte, mask),
        kept,
    )


def cuts(layout: Layout) -> Iterator[Damage]:
    name, batches = layout.segments[-1]
    last = batches[-1]
    for size in range(last.size):
        yield Damage(
            f"{name} cut at byte {size} of its last batch",
            lambda home, size=size: os.truncate(home / name, last.position + size),  # type: ignore[misc]
            layout.all - last.count,
        )


def tails(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """Something behind the end: zeroes, noise, older batches once more."""
    name, batches = layout.segments[-1]

    def append(data: bytes) -> Callable[[Path], None]:
        def apply(home: Path) -> None:
            with open(home / name, "ab") as file:
                file.write(data)

        return apply

    for size in (1, 11, 12, 17, 60, 61, 4096):
        yield Damage(f"{size} zeroes behind the end", append(bytes(size)), layout.all)
        yield Damage(f"{size} random bytes behind the end", append(chance.randbytes(size)), layout.all)
    for index, batch in enumerate(batches):

        def again(home: Path, batch: Batch = batch) -> None:
            data = (home / name).read_bytes()
            append(data[batch.position : batch.position + batch.size])(home)

        yield Damage(f"batch {index} once more behind the end", again, layout.all)


def fields(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """The rows of the table that write a whole field of a batch in the middle, and zeroed stretches."""
    segment = len(layout.segments) // 2
    name, batches = layout.segments[segment]
    for index in {len(batches) // 2, chance.randrange(1, len(batches))}:
        at, before = batches[index].position, layout.records_before(segment, index)
        offset = before
        rows = {
            "lower base offset": (0, max(0, offset - 2).to_bytes(8, "big")),
            "far base offset": (0, (offset + (1 << 40)).to_bytes(8, "big")),
            "negative base offset": (0, (-5).to_bytes(8, "big", signed=True)),
            "giant length": (8, b"\x7f\xff\xff\xff"),
            "negative length": (8, b"\xff\xff\xff\xff"),
            "no length": (8, bytes(4)),
            "leader epoch 99": (12, (99).to_bytes(4, "big")),
            "magic 9": (16, b"\x09"),
            "magic 1": (16, b"\x01"),
            "zeroes": (0, bytes(batches[index].size)),
        }
        for what, (byte, data) in rows.items():
            yield Damage(
                f"{what} in batch {index} of {name}",
                lambda home, at=at + byte, data=data: patch(home / name, at, data),  # type: ignore[misc]
                before,
            )
    first, last = sorted(chance.sample(range(len(batches)), 2))
    start, end = batches[first].position, batches[last].position
    yield Damage(
        f"batches {first}..{last} of {name} zeroed",
        lambda home: patch(home / name, start, bytes(end - start)),
        layout.records_before(segment, first),
    )
    before = layout.records_before(segment, 0)
    yield Damage(f"{name} emptied", lambda home: os.truncate(home / name, 0), before, gap=True)


# -- the files beside the log


def other_files(layout: Layout, chance: random.Random) -> Iterator[Damage]:
    """What can be made anew is: nothing is lost by it."""
    stems = [name.removesuffix(".log") for name, _ in layout.segments]
    files = [f"{stem}.{kind}" for stem in stems for kind in ("index", "timeindex", "txnindex", "snapshot")]
    for name in (*files, "leader-epoch-checkpoint", "partition.metadata"):
        for what, data in (
            ("gone", None),
            ("empty", b""),
            ("noise", chance.randbytes(chance.randint(1, 200))),
            ("zeroes", bytes(96)),
        ):
            if name == "partition.metadata" and what in ("noise", "zeroes"):
                continue  # another topic's id is not to be told from a damaged one

            def apply(home: Path, name: str = name, data: bytes | None = data) -> None:
                if data is None:
                    (home / name).unlink(missing_ok=True)
                else:
                    (home / name).write_bytes(data)

            yield Damage(f"{name} {what}", apply, layout.all)
    yield from leftovers(stems[-1], layout)


def leftovers(stem: str, layout: Layout) -> Iterator[Damage]:
    """What a crash leaves beside them."""
    for name in (
        f"{stem}.log.cleaned",
        f"{stem}.index.cleaned",
        f"{stem}.log.deleted",
        "leader-epoch-checkpoint.tmp",
        f"{777:020d}.index",
        f"{777:020d}.timeindex",
        f"{777:020d}.snapshot",
        f"{3:020d}.snapshot",
    ):
        yield Damage(
            f"a left over {name}",
            lambda home, name=name: (home / name).write_bytes(b"left over") and None,  # type: ignore[misc]
            layout.all,
        )

    def swapped(home: Path) -> None:
        shutil.copy(home / f"{stem}.log", home / f"{stem}.log.swap")

    yield Damage("a finished swap that was not renamed", swapped, layout.all)


# -- the whole directory


@dataclass(frozen=True)
class Setting:
    """How the broker was left: checkpoints of the directory, clean or not, one segment or several."""

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
    # After a clean stop only the end is looked at; what is damaged before it is served as it is, as Kafka does.
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
    only: int = -1  # of the damages; all of them otherwise
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
    """One partition as a kill or a stop leaves it, with its checkpoints' directory; the records in it."""
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
    """A topic with a partition for each damage, and what the broker finds when it starts."""
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
    """The partition has enough, all of it as it was sent, and takes one more; what it has then."""
    if damage.served_damaged:
        row = client.call(fetch(TOPIC, 0, index=index), 12).responses[0].partitions[0]
        if row.error_code != errors.NONE:
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
    """After a stop the directory is whole, where it could be made so; the next broker has the same."""
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
    one.check_log()
