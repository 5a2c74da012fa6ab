"""The error code that a client gets if a coordinator's records could not be written. Codes not listed here stay as they
are.
"""

from pykafkad import errors

TOLD_AS = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.INVALID_FETCH_SIZE: errors.UNKNOWN_SERVER_ERROR,
}


def told_as(error_code: int) -> int:
    return TOLD_AS.get(error_code, error_code)
