"""Errors in the words of Kafka's Java tools.

Owns the names of the Java exceptions, which are in some lines that the tools print, and the message for an error of any
kind. Except for a few, the names follow from those of the error codes.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.tools import output
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PACKAGE = "org.apache.kafka.common.errors"

_IRREGULAR = {
    errors.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    errors.CORRUPT_MESSAGE: "CorruptRecordException",
    errors.REQUEST_TIMED_OUT: "TimeoutException",
    errors.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    errors.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    errors.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    errors.NETWORK_EXCEPTION: "NetworkException",
    errors.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    errors.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    errors.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    errors.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    errors.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    errors.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    errors.INVALID_CONFIG: "InvalidConfigurationException",
    errors.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    errors.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    errors.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    errors.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    errors.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    errors.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    errors.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    errors.NON_EMPTY_GROUP: "GroupNotEmptyException",
    errors.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    errors.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    errors.FEATURE_UPDATE_FAILED: "FeatureUpdateFailedException",
    errors.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}


def class_name(code: int) -> str:
    """The simple name of the Java exception of an error code."""
    irregular = _IRREGULAR.get(code)
    if irregular is not None:
        return irregular
    return "".join(word.capitalize() for word in errors.NAMES[code].split("_")) + "Exception"


def message_of(problem: BaseException) -> str:
    """What Java's getMessage() returns for this error."""
    if isinstance(problem, errors.KafkaError):
        return problem.text or class_name(problem.code)
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename} ({problem.strerror})"
    return str(problem) or type(problem).__name__


def described(problem: BaseException) -> str:
    """What Java's toString() returns: the class, then the message."""
    if isinstance(problem, errors.KafkaError):
        return f"{PACKAGE}.{class_name(problem.code)}: {message_of(problem)}"
    return message_of(problem)


def as_json(problem: BaseException) -> dict[str, dict[str, str]]:
    """What --json shows of an error: the name of Kafka's error code, or what kind of error it is."""
    if isinstance(problem, errors.KafkaError):
        name = errors.NAMES[problem.code]
    else:
        name = getattr(problem, "kind", "FAILED")
    return {"error": {"name": name, "message": message_of(problem).strip()}}


def hint(name: str, known: Iterable[str]) -> None:
    """Ask whether another name was meant, on standard error, where the message itself is Kafka's."""
    names = list(known)
    question = nearest(name, names) if name not in names else ""
    if question:
        output.error(f"WARN no such name: {name}{question}")


class Told(Exception):
    """An error whose message is complete."""


class Telling:
    """`with Telling(wrapped):` raises errors from inside again with the message that `wrapped` makes of them."""

    __slots__ = ("_words",)

    def __init__(self, words: Callable[[BaseException], str]) -> None:
        self._words = words

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, errors.KafkaError):
            raise Told(self._words(problem)) from problem


class Failing:
    """`with Failing("Failed to list"):` has an error from inside say so, in the words of kafka-transactions."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, errors.KafkaError):
            text = f"{self._what}: {message_of(problem)}. Enable debug logging for additional detail."
            raise errors.KafkaError(problem.code, text) from problem


def wrapped(problem: BaseException) -> str:
    """What getMessage() returns for an error that comes out of a future, inside another exception."""
    return f"java.util.concurrent.ExecutionException: {described(problem)}"
