"""The fields of the short forms, which short_forms.py defines."""

from typing import final

from pykafkad.hot.wire import Message

@final
class LoneProduceRequest(Message):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    name: str
    topic_id: bytes
    index: int
    records: memoryview | None

@final
class LoneProduceResponse(Message):
    name: str
    topic_id: bytes
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: bytes = ...,
        index: int = ...,
        error_code: int = ...,
        base_offset: int = ...,
        log_append_time_ms: int = ...,
        log_start_offset: int = ...,
        throttle_time_ms: int = ...,
    ) -> None: ...
