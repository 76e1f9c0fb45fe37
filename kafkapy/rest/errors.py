"""The errors of the REST proxy, with the error codes of Confluent's REST proxy."""

from __future__ import annotations

from kafkapy.client.errors import AuthenticationError, RequestTimedOut
from kafkapy.errors import ApiError, Error
from kafkapy.http.json_api import RequestRefused


def topic_not_found() -> RequestRefused:
    return RequestRefused(40401, "Topic not found.")


def partition_not_found() -> RequestRefused:
    return RequestRefused(40402, "Partition not found.")


def instance_not_found() -> RequestRefused:
    return RequestRefused(40403, "Consumer instance not found.")


def format_mismatch() -> RequestRefused:
    return RequestRefused(
        40601, "The requested embedded data format does not match the deserializer for this consumer instance"
    )


def instance_exists() -> RequestRefused:
    return RequestRefused(40902, "Consumer instance with the specified name already exists.")


def illegal_state(reason: str) -> RequestRefused:
    return RequestRefused(40903, reason)


def key_schema_missing() -> RequestRefused:
    return RequestRefused(42201, "Key schema missing. One of key_schema or key_schema_id is required.")


def value_schema_missing() -> RequestRefused:
    return RequestRefused(42202, "Value schema missing. One of value_schema or value_schema_id is required.")


def conversion_failed(reason: object) -> RequestRefused:
    return RequestRefused(42203, f"Conversion of JSON to the schema failed: {reason}")


def invalid_consumer_config(reason: object) -> RequestRefused:
    return RequestRefused(42204, f"Invalid consumer configuration: {reason}")


def invalid_schema(reason: object) -> RequestRefused:
    return RequestRefused(42205, f"Invalid schema: {reason}")


def unprocessable(reason: str) -> RequestRefused:
    return RequestRefused(422, reason)


def registry_failed(reason: object) -> RequestRefused:
    return RequestRefused(40801, f"Error when registering or looking up a schema: {reason}")


def unknown_topic_or_partition() -> RequestRefused:
    """The error of version 3 for a topic that does not exist; that of version 2 is `topic_not_found`."""
    return RequestRefused(40403, Error.UNKNOWN_TOPIC_OR_PARTITION.message)


_MISSING = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)
_FORBIDDEN = (
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)
_BAD_REQUEST = (
    Error.INVALID_CONFIG,
    Error.INVALID_PARTITIONS,
    Error.INVALID_REPLICATION_FACTOR,
    Error.INVALID_REQUEST,
    Error.INVALID_TOPIC_EXCEPTION,
    Error.POLICY_VIOLATION,
    Error.SECURITY_DISABLED,
    Error.TOPIC_ALREADY_EXISTS,
    Error.TOPIC_DELETION_DISABLED,
    Error.UNKNOWN_SERVER_ERROR,
    Error.UNSUPPORTED_VERSION,
)


def of_cluster(error: Exception) -> RequestRefused:
    """Returns the RequestRefused to raise for an error of the Kafka cluster. It has an error code of Confluent's
    proxy."""
    if isinstance(error, RequestTimedOut):
        return RequestRefused(50003, str(error))
    if isinstance(error, AuthenticationError):
        return RequestRefused(40101, error.message)
    if isinstance(error, ApiError):
        if error.error in _MISSING:
            return topic_not_found()
        if error.error in _FORBIDDEN:
            return RequestRefused(40301, error.message)
        if error.error in _BAD_REQUEST:
            return RequestRefused(40002, error.message)
        if error.error is Error.THROTTLING_QUOTA_EXCEEDED:
            return RequestRefused(42901, error.message)
        if error.error is Error.BROKER_NOT_AVAILABLE:
            return RequestRefused(50302, error.message)
        return RequestRefused(50003 if error.error.retriable else 50002, f"Kafka error: {error.message}")
    return RequestRefused(50002, f"Kafka error: {error}")
