"""A producer's configs: their defaults, and which exclude one another."""

from __future__ import annotations

from pykafkad.net.client import ClientError
from pykafkad.tools import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class ProducerSettings:
    """A producer's configs, read and checked."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        number = settings.number
        self.batch_bytes = number(configs, "batch.size", 16384)
        self.linger_s = number(configs, "linger.ms", 5) / 1000
        self.request_timeout_ms = number(configs, "request.timeout.ms", 30_000)
        self.delivery_timeout_s = number(configs, "delivery.timeout.ms", 120_000) / 1000
        self.max_block_s = number(configs, "max.block.ms", 60_000) / 1000
        self.max_request_bytes = number(configs, "max.request.size", 1_048_576)
        self.buffer_bytes = number(configs, "buffer.memory", 33_554_432)
        self.retries = number(configs, "retries", 2**31 - 1)
        self.retry_backoff_s = number(configs, "retry.backoff.ms", 100) / 1000
        self.metadata_max_age_s = number(configs, "metadata.max.age.ms", 300_000) / 1000
        self.max_in_flight = number(configs, "max.in.flight.requests.per.connection", 5)
        self.transaction_timeout_ms = number(configs, "transaction.timeout.ms", 60_000)
        self.transactional_id = configs.get("transactional.id") or None
        self.ignores_keys = settings.boolean(configs, "partitioner.ignore.keys", False)
        self.acks = self._acks(configs.get("acks", "all"))
        self.codec, self.level = self._codec(configs)
        self.is_idempotent = self._idempotence(configs)

    @staticmethod
    def _acks(text: str) -> int:
        acks = {"all": -1, "-1": -1, "0": 0, "1": 1}.get(text.strip().lower())
        if acks is None:
            raise ClientError(
                f"Invalid value {text} for configuration acks: String must be one of: all, -1, 0, 1"
            )
        return acks

    @staticmethod
    def _codec(configs: Mapping[str, str]) -> tuple[str, int | None]:
        codec = configs.get("compression.type", "none")
        if codec not in CODECS:
            raise ClientError(
                f"Invalid value {codec} for configuration compression.type: String must be one of: "
                + ", ".join(CODECS)
            )
        key = f"compression.{codec}.level"
        return codec, settings.number(configs, key, 0) if key in configs else None

    def _idempotence(self, configs: Mapping[str, str]) -> bool:
        """On, unless another config excludes it. If it is set explicitly, such a config is an error."""
        is_asked = "enable.idempotence" in configs
        wanted = settings.boolean(configs, "enable.idempotence", True)
        if self.transactional_id is not None and not wanted:
            raise ClientError("Cannot set a transactional.id without also enabling idempotence.")
        if not wanted:
            return False
        reason = None
        if self.retries == 0:
            reason = "Must set retries to non-zero when using the idempotent producer."
        elif self.acks != -1:
            reason = (
                "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee "
                "idempotence."
            )
        elif self.max_in_flight > 5:
            reason = (
                "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer."
            )
        if reason is not None and (is_asked or self.transactional_id is not None):
            raise ClientError(reason)
        return reason is None
