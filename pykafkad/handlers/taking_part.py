"""Whether what a producer sends may be appended as part of its transaction: its transaction coordinator knows (KIP-890).

Asked before the first batch of a transaction in a partition. Older clients have added the partition themselves, and it is
only verified; newer ones have it added here (transaction version 2). What comes after that batch needs no question, since
the transaction is under way in the partition.

Invariant: nothing is appended on an answer that an end marker has overtaken (pure.producer_state.Verification), so no
transaction begins in a partition of which the coordinator does not know that it must end it there.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.records import RecordsError, check_produce
from pykafkad.slices import GO_ON, Wait, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from pykafkad.cluster.replica import Replica
    from pykafkad.handlers.broker import Broker
    from pykafkad.pure.producer_state import Verification
    from pykafkad.slices import Work

    class Batch(Protocol):
        """What a Produce request has for one partition."""

        @property
        def index(self) -> int: ...
        @property
        def records(self) -> memoryview | None: ...

    Partition = tuple[str, int]  # topic and index
    Codes = dict[Partition, int]

FEW = 64
FIRST_PAUSE_MS = 1

# The fields of a batch's header that are looked at: a byte of attributes; then producer id, epoch, first sequence.
ATTRIBUTES = 22
TRANSACTIONAL = 0x10
PRODUCER = Struct(">qhi")
PRODUCER_AT = 43
HEADER_BYTES = 61
NO_SEQUENCE = -1  # of what our own coordinators append

# What a client that knows no better takes for a reason to send the batch again, without asking for metadata first.
TO_BE_SENT_AGAIN = (
    errors.NETWORK_EXCEPTION,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)


class Client(NamedTuple):
    """What the version of a request says of its client."""

    adds: bool  # it leaves it to us to add its partitions
    knows_abortable: bool  # the error TRANSACTION_ABORTABLE


class Verified:
    """What is known of the partitions of one request."""

    __slots__ = ("begun", "refusals")

    def __init__(self) -> None:
        self.begun: dict[Replica, Verification] = {}  # and answered well, unless there is a refusal
        self.refusals: dict[Partition, KafkaError] = {}

    def begin(
        self, replica: Replica, producer: tuple[int, int], sequence: int, adds: bool, now_ms: int
    ) -> bool:
        """Whether the coordinator has to be asked. KafkaError: the producer is fenced."""
        begun = replica.producers.begin_verification(*producer, sequence, adds, now_ms)
        if begun is None:
            return False
        self.begun[replica] = begun
        return True

    def begin_again(
        self, producer: tuple[int, int], sequences: Iterable[int], adds: bool, now_ms: int
    ) -> None:
        """Before the coordinator is asked again: what it says then counts after an end marker that has come since
        the first time. Whoever is fenced by now is told when he appends."""
        for replica, sequence in zip(list(self.begun), sequences, strict=True):
            with suppress(KafkaError):
                self.begin(replica, producer, sequence, adds, now_ms)

    def holds(self, replica: Replica, producer_id: int) -> bool:
        """Whether the answer still counts in this partition."""
        begun = self.begun.get(replica)
        return begun is not None and replica.producers.verifying.get(producer_id) is begun

    def check(self, replica: Replica, producer: tuple[int, int]) -> None:
        """Raise KafkaError if the transaction is neither under way here nor verified. Where clients append the log looks
        itself."""
        if not self.holds(replica, producer[0]) and not replica.producers.is_under_way(*producer):
            raise KafkaError(errors.INVALID_TXN_STATE)


def of_produce(
    broker: Broker, transactional_id: str | None, batches: Iterable[tuple[str | None, Batch]], version: int
) -> Work[Verified]:
    """For a Produce request, given the names of its topics with their partitions. KafkaError refuses it as a whole."""
    client = Client(adds=version >= 12, knows_abortable=version >= 11)
    if not is_asked(broker, client):
        return Verified()
    sequences: dict[tuple[int, int], dict[Partition, int]] = {}  # of the first records, by producer
    last: dict[Partition, tuple[int, int]] = {}  # of a partition that is named twice the last entry counts
    for pause, (topic, item) in each(batches, FEW):
        if pause:
            yield GO_ON
        if topic is None:
            continue
        before = last.pop((topic, item.index), None)
        if before is not None:
            del sequences[before][topic, item.index]
        found = transactional(item.records, version)
        if found is not None:
            producer = last[topic, item.index] = found[:2]
            sequences.setdefault(producer, {})[topic, item.index] = found[2]
    producers = [producer for producer, parts in sequences.items() if parts]
    if len(producers) > 1:
        raise KafkaError(
            errors.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    if not producers:
        return Verified()
    return (yield from verified(broker, transactional_id, producers[0], sequences[producers[0]], client))


def of_offsets(
    broker: Broker, transactional_id: str, producer: tuple[int, int], replica: Replica, version: int
) -> Work[Verified | None]:
    """For a TxnOffsetCommit request of a group whose offsets are in this replica; None: nothing is verified. KafkaError:
    the coordinator refuses it."""
    client = Client(adds=version >= 5, knows_abortable=version >= 4)
    if not is_asked(broker, client):
        return None
    known = Verified()
    now_ms = broker.clock.now_ms()
    if known.begin(replica, producer, NO_SEQUENCE, client.adds, now_ms):
        asked = {(replica.topic, replica.index): NO_SEQUENCE}
        codes = yield from told(broker, transactional_id, producer, asked, client, known)
        code = in_words_of(client, codes[replica.topic, replica.index])
        if code:
            raise KafkaError(code)
    return known


def is_asked(broker: Broker, client: Client) -> bool:
    enabled: bool = broker.config["transaction.partition.verification.enable"]
    return client.adds or enabled


def is_transactional(data: memoryview | None) -> bool:
    """Whether a batch says that it is part of a transaction, whatever else may be wrong with it."""
    return data is not None and len(data) > ATTRIBUTES and bool(data[ATTRIBUTES] & TRANSACTIONAL)


def transactional(data: memoryview | None, version: int) -> tuple[int, int, int] | None:
    """Producer id, epoch and first sequence of a batch that is part of a transaction. What is wrong with it otherwise is
    said when it is to be appended."""
    try:
        check_produce(data, version)
    except RecordsError:
        return None
    if data is None or len(data) < HEADER_BYTES or not data[ATTRIBUTES] & TRANSACTIONAL:
        return None
    found: tuple[int, int, int] = PRODUCER.unpack_from(data, PRODUCER_AT)
    return found if found[0] >= 0 else None


def verified(
    broker: Broker,
    transactional_id: str | None,
    producer: tuple[int, int],
    sequences: dict[Partition, int],
    client: Client,
) -> Work[Verified]:
    """Ask the coordinator about the partitions in which the transaction is not under way."""
    known = Verified()
    asked: dict[Partition, int] = {}
    now_ms = broker.clock.now_ms()
    for pause, (partition, sequence) in each(sequences.items(), FEW):
        if pause:
            yield GO_ON
        replica = broker.replicas.get(partition)
        if replica is None or replica.leadership is None:
            continue  # which the append says
        try:
            if known.begin(replica, producer, sequence, client.adds, now_ms):
                asked[partition] = sequence
        except KafkaError as error:
            known.refusals[partition] = KafkaError(error.code)
    if asked:
        codes = yield from told(broker, transactional_id, producer, asked, client, known)
        for pause, (partition, code) in each(codes.items(), FEW):
            if pause:
                yield GO_ON
            if code:
                known.refusals[partition] = refusal(code, client)
    return known


def told(
    broker: Broker,
    transactional_id: str | None,
    producer: tuple[int, int],
    asked: dict[Partition, int],
    client: Client,
    known: Verified,
) -> Work[Codes]:
    """What the coordinator says of the partitions that are asked about, with the sequences of their batches, in the order
    in which they were begun. While it still ends the transaction before, it is asked again where we add: to have the
    batch sent again would take the client longer."""
    if not transactional_id:
        return dict.fromkeys(asked, errors.INVALID_REQUEST)
    config, now_ms = broker.config, broker.clock.monotonic_ms
    left_ms = min(config["add.partitions.to.txn.retry.backoff.max.ms"], config["request.timeout.ms"])
    end_ms = now_ms() + left_ms
    pause_ms = FIRST_PAUSE_MS
    while True:
        wait = Wait()
        broker.takes_part.take_part(transactional_id, *producer, list(asked), client.adds, wait.come)
        codes: Codes = yield from wait.result()
        if not client.adds or errors.CONCURRENT_TRANSACTIONS not in codes.values() or now_ms() >= end_ms:
            return codes
        wait = Wait()
        broker.coordinator_loop.call_later(pause_ms, wait.come)
        yield from wait.result()
        pause_ms = min(2 * pause_ms, config["add.partitions.to.txn.retry.backoff.ms"])
        known.begin_again(producer, asked.values(), client.adds, broker.clock.now_ms())


def in_words_of(client: Client, code: int) -> int:
    """What the coordinator said, as an error that the client expects here."""
    if code == errors.PRODUCER_FENCED:
        return errors.INVALID_PRODUCER_EPOCH
    if code == errors.TRANSACTION_ABORTABLE and not client.knows_abortable:
        return errors.INVALID_TXN_STATE
    return code


def refusal(code: int, client: Client) -> KafkaError:
    """What a Produce request is told."""
    code = in_words_of(client, code)
    if code == errors.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction")
    if code in TO_BE_SENT_AGAIN or (code == errors.CONCURRENT_TRANSACTIONS and not client.adds):
        return KafkaError(
            errors.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction."
            f" Underlying error: {errors.NAMES[code]}",
        )
    return KafkaError(code)
