"""The names of Java's exception classes, which Apache Kafka's tools print for errors."""

from __future__ import annotations

from kafkapy.errors import ApiError, Error

_PACKAGE = "org.apache.kafka.common.errors."
# Classes whose name is not the error's name in camel case.
_IRREGULAR = {
    Error.NON_EMPTY_GROUP: "GroupNotEmptyException",
    Error.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    Error.INVALID_CONFIG: "InvalidConfigurationException",
    Error.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    Error.REQUEST_TIMED_OUT: "TimeoutException",
    Error.NETWORK_EXCEPTION: "NetworkException",
    Error.MESSAGE_TOO_LARGE: "RecordTooLargeException",
}


def java_class(error: Error) -> str:
    """Returns the simple name of Java's exception, such as `GroupIdNotFoundException`."""
    if error in _IRREGULAR:
        return _IRREGULAR[error]
    return "".join(word.capitalize() for word in error.name.split("_")) + "Exception"


def java_text(error: ApiError) -> str:
    """Returns the class and the message of an error, as Java prints it."""
    return f"{_PACKAGE}{java_class(error.error)}: {error.message}"
