"""Clients' telemetry (KIP-714): subscriptions, when a client may ask and push, and what is refused.

Owns the subscriptions (CLIENT_METRICS resources) and the state of each client instance. No clock, no randomness: times
are passed in. The subscriptions that a client matches are determined once for an instance, and again when subscriptions
change: that is `evaluate`, a generator that yields in between.

Patterns are those of java.util.regex as far as pure/regex/java_syntax supports them. A subscription with a pattern that
needs backtracking, such as backreferences and lookaround, is refused.

Invariants: matching a pattern takes at most STEPS_MAX steps; an attribute for which it would take more does not match.
At most INSTANCES_MAX instances are remembered, of which the one that was silent for longest is forgotten first. An
instance's subscription id changes when its subscriptions do. Like a Kafka without a telemetry plugin, we accept metrics
and drop them, after counting them.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure import java
from pykafkad.uuids import ONE
from pykafkad.uuids import ZERO as NO_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pykafkad.pure.regex.automaton import Steps

INSTANCES_MAX = 16_384
STEPS_MAX = 1_000_000
DEFAULT_INTERVAL_MS = 300_000
SHORTEST_MEMORY_MS = 60_000
INTERVALS_REMEMBERED = 3
COMPRESSIONS = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, in the order in which Kafka offers them
KNOWN_COMPRESSIONS = range(5)
# After these errors a client needs to know its subscriptions and how to push at once.
ASK_AGAIN = frozenset({errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE})
ALL_METRICS = "*"
RESERVED_IDS = (NO_ID, ONE)

CLIENT_INSTANCE_ID = "client_instance_id"
Attributes = dict[str, str | None]
ATTRIBUTES = frozenset({
    CLIENT_INSTANCE_ID, "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
})  # fmt: skip


class MatchError(ValueError):
    """Not a list of ATTRIBUTE=REGULAR EXPRESSION; str() is Kafka's text."""


class Match:
    """Which clients a subscription is for: those whose attributes match all of its patterns, each as a whole."""

    __slots__ = ("patterns",)

    def __init__(self, texts: Sequence[str]) -> None:
        self.patterns: dict[str, str] = {}
        for text in texts:
            attribute, pattern = self._parse(text)
            self.patterns[attribute] = pattern

    @staticmethod
    def _parse(text: str) -> tuple[str, str]:
        from pykafkad.pure.regex.java_syntax import Unsupported, parse
        from pykafkad.pure.regex.parsing import InvalidPattern

        parts = text.split("=")
        while len(parts) > 1 and not parts[-1]:  # Java's split() drops empty strings at the end
            parts.pop()
        why = ""
        if len(parts) == 2 and parts[0].strip() in ATTRIBUTES:
            attribute, pattern = (part.strip() for part in parts)
            try:
                parse(pattern)
            except Unsupported as problem:
                why = f": {problem}"
            except InvalidPattern:
                pass
            else:
                return attribute, pattern
        raise MatchError(f"Illegal client matching pattern: {text}{why}")

    def takes(self, attributes: Attributes) -> Steps[bool]:
        from pykafkad.pure.regex.automaton import TooMuchWork, for_text

        for name, pattern in self.patterns.items():
            value = attributes.get(name)
            if value is None:
                return False
            automaton = yield from for_text(pattern)
            automaton.most_steps = STEPS_MAX
            try:
                if not (yield from automaton.matches(value)):
                    return False
            except TooMuchWork:
                return False
        return True


class Subscription:
    __slots__ = ("interval_ms", "match", "metrics")

    def __init__(self, metrics: Sequence[str], interval_ms: int, match: Match) -> None:
        self.metrics = tuple(metrics)
        self.interval_ms = interval_ms
        self.match = match


def refused(instance: Instance, code: int) -> KafkaError:
    instance.last_error = code
    return KafkaError(code)


class Instance:
    """A client instance: its subscriptions, and when it was last heard of."""

    __slots__ = (
        "attributes",
        "connection",
        "expires_ms",
        "interval_ms",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "metrics",
        "subscription_id",
        "version",
    )

    def __init__(self, attributes: Attributes, connection: Hashable) -> None:
        self.attributes = attributes
        self.connection = connection
        self.metrics: list[str] = []
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.subscription_id = 0
        self.version = -1
        self.last_get_ms = self.last_push_ms = 0
        self.last_error = errors.NONE  # of its last request, of either kind
        self.is_terminating = False
        self.expires_ms = 0


class Evaluated:
    """The subscriptions that a client with these attributes matches, of those that there were at `version`."""

    __slots__ = ("attributes", "subscriptions", "version")

    def __init__(self, attributes: Attributes, subscriptions: list[Subscription], version: int) -> None:
        self.attributes = attributes
        self.subscriptions = subscriptions
        self.version = version


class Telemetry:
    """The state of all clients. `checksum` is CRC-32C."""

    def __init__(self, max_bytes: int, checksum: Callable[[bytes], int]) -> None:
        self.max_bytes = max_bytes
        self.subscriptions: dict[str, Subscription] = {}
        self.instances: dict[bytes, Instance] = {}  # the one that was silent for longest comes first
        self.pushes = 0
        self.pushed_bytes = 0
        self._of_connection: dict[Hashable, bytes] = {}
        self._checksum = checksum
        self._version = 0

    # -- subscriptions

    def subscribe(self, name: str, subscription: Subscription | None) -> None:
        """Add or change a subscription, or delete it (None)."""
        if subscription is not None:
            self.subscriptions[name] = subscription
        elif self.subscriptions.pop(name, None) is None:
            return
        self._version += 1

    # -- requests; `evaluated` is given if the instance is new, or if the subscriptions have changed since its last
    # request

    def knows(self, instance_id: bytes, now_ms: int) -> bool:
        self._forget_silent(now_ms)
        instance = self.instances.get(instance_id)
        return instance is not None and instance.version == self._version

    def evaluate(self, instance_id: bytes, attributes: Attributes) -> Steps[Evaluated]:
        """Match the subscriptions with the attributes that the instance first sent, if it is known."""
        instance = self.instances.get(instance_id)
        if instance is not None:
            attributes = instance.attributes
        version = self._version
        taken = []
        for subscription in list(self.subscriptions.values()):
            if (yield from subscription.match.takes(attributes)):
                taken.append(subscription)
            yield
        return Evaluated(attributes, taken, version)

    def get(
        self, instance_id: bytes, evaluated: Evaluated | None, connection: Hashable, now_ms: int
    ) -> Instance:
        """The subscriptions of a client; KafkaError if it asks too soon."""
        instance = self._instance(instance_id, evaluated, connection, now_ms)
        since_ms = now_ms - max(instance.last_get_ms, instance.last_push_ms)
        if since_ms >= instance.interval_ms:
            instance.last_get_ms = now_ms
        elif instance.last_error not in ASK_AGAIN:
            raise refused(instance, errors.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = errors.NONE
        return instance

    def push(
        self,
        instance_id: bytes,
        evaluated: Evaluated | None,
        connection: Hashable,
        now_ms: int,
        *,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        """Check a push of metrics; raises KafkaError if it is refused."""
        if instance_id in RESERVED_IDS:
            raise KafkaError(errors.INVALID_REQUEST)
        instance = self._instance(instance_id, evaluated, connection, now_ms)
        try:
            self._check_push(instance, now_ms, subscription_id, is_terminating, compression, size)
        finally:
            instance.is_terminating = is_terminating

    def count(self, size: int) -> None:
        """Metrics of this size were accepted."""
        self.pushes += 1
        self.pushed_bytes += size

    def _check_push(
        self,
        instance: Instance,
        now_ms: int,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        if instance.is_terminating:
            raise KafkaError(errors.INVALID_REQUEST)
        # The first push after a request for subscriptions may come early, since clients vary the first interval.
        after_question = instance.last_get_ms > instance.last_push_ms
        if after_question or now_ms - instance.last_push_ms >= instance.interval_ms:
            instance.last_push_ms = now_ms
        elif not is_terminating:
            raise refused(instance, errors.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            raise refused(instance, errors.UNKNOWN_SUBSCRIPTION_ID)
        if compression not in KNOWN_COMPRESSIONS:
            raise refused(instance, errors.UNSUPPORTED_COMPRESSION_TYPE)
        if size > self.max_bytes:
            raise refused(instance, errors.TELEMETRY_TOO_LARGE)

    def disconnected(self, connection: Hashable) -> None:
        """The client disconnected, so its state is dropped."""
        instance_id = self._of_connection.pop(connection, None)
        if instance_id is not None:
            self.instances.pop(instance_id, None)

    # -- instances

    def _instance(
        self, instance_id: bytes, evaluated: Evaluated | None, connection: Hashable, now_ms: int
    ) -> Instance:
        self._forget_silent(now_ms)
        instance = self.instances.pop(instance_id, None)
        if evaluated is not None and (instance is None or instance.version < evaluated.version):
            # As for a new instance: the client may ask at once for its subscriptions.
            instance = Instance(evaluated.attributes, connection)
            self._subscribe(instance, instance_id, evaluated)
            self._of_connection[connection] = instance_id
        assert instance is not None
        self.instances[instance_id] = instance
        instance.expires_ms = now_ms + max(SHORTEST_MEMORY_MS, instance.interval_ms * INTERVALS_REMEMBERED)
        if len(self.instances) > INSTANCES_MAX:
            self._forget(next(iter(self.instances)))
        return instance

    def _subscribe(self, instance: Instance, instance_id: bytes, evaluated: Evaluated) -> None:
        metrics: list[str] = []
        for subscription in evaluated.subscriptions:
            metrics += subscription.metrics
            instance.interval_ms = min(instance.interval_ms, subscription.interval_ms)
        instance.metrics = [ALL_METRICS] if ALL_METRICS in metrics else java.set_order(metrics)
        said = f"[{', '.join(instance.metrics)}]{instance.interval_ms}".encode()
        instance.subscription_id = java.as_int(self._checksum(said) ^ java.uuid_hash_code(instance_id))
        instance.version = evaluated.version

    def _forget_silent(self, now_ms: int) -> None:
        while self.instances:
            instance_id = next(iter(self.instances))
            if self.instances[instance_id].expires_ms > now_ms:
                return
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        connection = self.instances.pop(instance_id).connection
        if self._of_connection.get(connection) == instance_id:
            del self._of_connection[connection]
