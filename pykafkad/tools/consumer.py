"""A consumer on the blocking client: what kafka-console-consumer and kafka-consumer-perf-test need of one.

Owns which partitions are read (given ones, or those that the group's membership assigns), where reading starts, and
what is committed. A position is consumed when the caller says so, and only then it is committed: every
auto.commit.interval.ms, when partitions are revoked and at the end.
"""

from __future__ import annotations

import time

from pykafkad import errors
from pykafkad.net.client import ClientError, Cluster, api_timeouts
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import admin, admin_groups, output, settings, times
from pykafkad.tools.fetching import READ_COMMITTED, READ_UNCOMMITTED, Chunk, Fetcher, FetchSettings
from pykafkad.tools.membership import ClassicMembership, MemberSettings
from pykafkad.tools.membership_consumer import ConsumerMembership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from re import Pattern

    from pykafkad.tools.admin import Partition

STEP_S = 0.1  # how long a poll waits at most before it looks after the membership again
UNASSIGNED_REFRESH_S = 1.0


class Consumer:
    """subscribe() or assign(), then poll() again and again, then close()."""

    def __init__(self, bootstrap: str, configs: Mapping[str, str]) -> None:
        settings.check_security(configs)
        self._configs = configs
        self._bootstrap = bootstrap
        self._cluster = self._new_cluster()
        self._fetcher = Fetcher(self._cluster, _fetch_settings(configs))
        self._isolation = _isolation(configs)
        self._reset = configs.get("auto.offset.reset", "latest")
        check_reset(self._reset)
        self._auto_commits = settings.boolean(configs, "enable.auto.commit", True)
        self._commit_interval_s = settings.number(configs, "auto.commit.interval.ms", 5000) / 1000
        self._metadata_max_age_s = settings.number(configs, "metadata.max.age.ms", 300_000) / 1000
        self._auto_creates = settings.boolean(configs, "allow.auto.create.topics", True)
        self._committed_at = time.monotonic()
        self._refreshed_at = float("-inf")
        self._topics: list[str] = []
        self._missing: dict[str, int] = {}  # topic -> how often it was looked for in vain
        self._pattern: Pattern[str] | None = None
        self._membership: ClassicMembership | ConsumerMembership | None = None
        self.consumed: dict[Partition, int] = {}  # what the caller is through with
        self._committed: dict[Partition, int] = {}
        self.on_assigned: Callable[[Sequence[Partition]], object] = lambda partitions: None
        self.on_revoked: Callable[[Sequence[Partition]], object] = lambda partitions: None

    def _new_cluster(self) -> Cluster:
        client_id = self._configs.get("client.id", "consumer-1")
        return Cluster(self._bootstrap, client_id=client_id, **api_timeouts(self._configs))

    # -- what is read

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Partitions without a group; -1 and -2 are the end and the start."""
        wanted = dict(offsets)
        named = {key: offset for key, offset in wanted.items() if offset < 0}
        if named:
            wanted |= self._log_offsets(named)
        self._fetcher.assign(wanted)

    def subscribe(self, topics: Sequence[str] = (), pattern: Pattern[str] | None = None) -> None:
        """Topics through the group of group.id."""
        self._topics = list(topics)
        self._pattern = pattern
        member = MemberSettings(self._configs)
        protocol = self._configs.get("group.protocol", "classic").lower()
        if protocol not in ("classic", "consumer"):
            raise ClientError(
                f"Invalid value {protocol} for configuration group.protocol: String must be one of (case "
                "insensitive): CLASSIC, CONSUMER"
            )
        kind = ConsumerMembership if protocol == "consumer" else ClassicMembership
        self._membership = kind(self._cluster, self._new_cluster(), member)

    def poll(self, timeout_s: float) -> list[Chunk]:
        """Some chunks, or none when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._look_after_group()
            self._reset_lost()
            left = deadline - time.monotonic()
            chunks = self._fetcher.poll(max(0.0, min(left, STEP_S)))
            if chunks or left <= STEP_S:
                return chunks

    # -- the group

    def _look_after_group(self) -> None:
        membership = self._membership
        if membership is None:
            return
        self._refresh_topics(membership)
        if membership.poll(self._give_up):
            self._take_over(membership.assigned or [])
        now = time.monotonic()
        if self._auto_commits and now - self._committed_at >= self._commit_interval_s:
            self._commit()

    def _refresh_topics(self, membership: ClassicMembership | ConsumerMembership) -> None:
        """The topics that match, and their numbers of partitions."""
        age_s = self._metadata_max_age_s
        if not self._fetcher.positions:
            age_s = min(age_s, UNASSIGNED_REFRESH_S)
        if time.monotonic() - self._refreshed_at < age_s:
            return
        names = None if self._pattern is not None else self._topics
        try:
            rows = self._cluster.metadata(names, auto_create=self._auto_creates).topics
        except (OSError, errors.KafkaError):
            return
        self._refreshed_at = time.monotonic()
        known = {row.name: len(row.partitions) for row in rows if not row.error_code}
        for row in rows:
            if row.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION:
                self._miss(row.name)
            if row.error_code in (errors.INVALID_TOPIC_EXCEPTION, errors.TOPIC_AUTHORIZATION_FAILED):
                raise errors.KafkaError(row.error_code, _topic_fault(row.error_code, row.name))
        if self._pattern is not None:
            excludes = settings.boolean(self._configs, "exclude.internal.topics", True)
            wanted = [
                row.name
                for row in rows
                if self._pattern.fullmatch(row.name) and not (excludes and row.is_internal)
            ]
            membership.subscribe(wanted)
        else:
            membership.subscribe(self._topics)
        membership.check_counts(known)

    def _miss(self, topic: str) -> None:
        """Asking for it may create it, so it is told the second time."""
        self._missing[topic] = self._missing.get(topic, 0) + 1
        if self._missing[topic] == 2:
            output.error(f"WARN topic {topic} does not exist yet: waiting for it")

    def _give_up(self, partitions: Sequence[Partition]) -> None:
        if self._auto_commits:
            self._commit()
        self.on_revoked(partitions)
        gone = set(partitions)
        self._fetcher.assign(
            {key: offset for key, offset in self._fetcher.positions.items() if key not in gone}
        )
        for key in gone:
            self.consumed.pop(key, None)
            self._committed.pop(key, None)

    def _take_over(self, partitions: Sequence[Partition]) -> None:
        new = [key for key in partitions if key not in self._fetcher.positions]
        start = self._starts(new) if new else {}
        kept = {key: self._fetcher.positions[key] for key in partitions if key in self._fetcher.positions}
        self._fetcher.assign(kept | start)
        self.on_assigned(partitions)

    def _starts(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The committed positions, or else what auto.offset.reset says."""
        assert self._membership is not None
        committed = admin_groups.committed_offsets(self._cluster, self._configs["group.id"], partitions)
        found = {key: committed[key].offset for key in partitions if key in committed}
        self._committed |= found
        return found | self._by_reset([key for key in partitions if key not in found])

    # -- positions

    def _by_reset(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        if not partitions:
            return {}
        if self._reset == "none":
            shown = ", ".join(f"{topic}-{index}" for topic, index in partitions)
            raise ClientError(f"Undefined offset with no reset policy for partitions: [{shown}]")
        if self._reset.startswith("by_duration:"):
            timestamp = times.now_ms() - times.parse_duration_ms(self._reset.partition(":")[2])
            found = self._log_offsets(dict.fromkeys(partitions, timestamp))
            later = [key for key in partitions if found[key] < 0]
            return found | (self._log_offsets(dict.fromkeys(later, admin.LATEST)) if later else {})
        time_stamp = admin.EARLIEST if self._reset == "earliest" else admin.LATEST
        return self._log_offsets(dict.fromkeys(partitions, time_stamp))

    def _log_offsets(self, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
        found = {}
        for key, offset in admin.list_offsets(self._cluster, wanted, isolation=self._isolation).items():
            if isinstance(offset, errors.KafkaError):
                raise errors.KafkaError(offset.code, f"{key[0]}-{key[1]}: {offset.text}")
            found[key] = offset
        return found

    def _reset_lost(self) -> None:
        """Reset positions that are not, or no longer, in the log."""
        lost = [key for key in self._fetcher.lost if key in self._fetcher.positions]
        if not lost:
            return
        for key, offset in self._by_reset(lost).items():
            self._fetcher.positions[key] = offset
        self._fetcher.lost.clear()

    def _commit(self) -> None:
        self._committed_at = time.monotonic()
        membership = self._membership
        changed = {key: offset for key, offset in self.consumed.items() if self._committed.get(key) != offset}
        if membership is None or not changed or membership.generation < 0:
            return
        try:
            codes = admin_groups.commit_offsets(
                self._cluster,
                self._configs["group.id"],
                changed,
                member_id=membership.member_id,
                generation=membership.generation,
                instance_id=membership.instance_id,
                timeout_ms=int(self._commit_interval_s * 1000),
            )
        except (errors.KafkaError, OSError, Unreachable):
            return  # the next commit has later positions
        self._committed |= {key: changed[key] for key, code in codes.items() if not code}

    def through_with(self, partitions: Iterable[tuple[Partition, int]]) -> None:
        self.consumed.update(partitions)

    def close(self) -> None:
        if self._membership is not None:
            if self._auto_commits:
                self._commit()
            self._membership.leave()
        self._fetcher.close()
        self._cluster.close()


def check_reset(text: str) -> None:
    if text in ("earliest", "latest", "none"):
        return
    kind, _, duration = text.partition(":")
    try:
        if kind == "by_duration" and times.parse_duration_ms(duration) >= 0:
            return
    except ValueError:
        pass
    raise ClientError(
        f"Invalid value {text} for configuration auto.offset.reset: the value must be either 'earliest', "
        "'latest', 'none' or of the format 'by_duration:<PnDTnHnMn.nS>'"
    )


def _isolation(configs: Mapping[str, str]) -> int:
    text = configs.get("isolation.level", "read_uncommitted").lower()
    if text not in ("read_uncommitted", "read_committed"):
        raise ClientError(
            f"Invalid value {text} for configuration isolation.level: String must be one of: read_committed, "
            "read_uncommitted"
        )
    return READ_COMMITTED if text == "read_committed" else READ_UNCOMMITTED


def _fetch_settings(configs: Mapping[str, str]) -> FetchSettings:
    found = FetchSettings()
    found.max_wait_ms = settings.number(configs, "fetch.max.wait.ms", found.max_wait_ms)
    found.min_bytes = settings.number(configs, "fetch.min.bytes", found.min_bytes)
    found.max_bytes = settings.number(configs, "fetch.max.bytes", found.max_bytes)
    found.partition_bytes = settings.number(configs, "max.partition.fetch.bytes", found.partition_bytes)
    found.check_crcs = settings.boolean(configs, "check.crcs", True)
    found.isolation = _isolation(configs)
    return found


def _topic_fault(code: int, name: str) -> str:
    if code == errors.INVALID_TOPIC_EXCEPTION:
        return f"Invalid topics: [{name}]"
    return f"Not authorized to access topics: [{name}]"
