"""What the test kit raises."""

from __future__ import annotations


class BrokerError(RuntimeError):
    """The broker did not start, stopped too early, or refused a request of the test kit."""


class BrokerTimeout(BrokerError, TimeoutError):
    """What was waited for did not come in time; str() says what was there instead."""
