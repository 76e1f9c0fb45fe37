"""What Apache Kafka's tools call an error: the name of Java's exception class stands in their output."""

from __future__ import annotations

from kafkapy.errors import ApiError, Error

_PACKAGE = "org.apache.kafka.common.errors."
# Where the class is not the error's name in camel case.
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
    """The simple name of Java's exception: `GroupIdNotFoundException`."""
    if error in _IRREGULAR:
        return _IRREGULAR[error]
    return "".join(word.capitalize() for word in error.name.split("_")) + "Exception"


def java_text(error: ApiError) -> str:
    """An error as Java prints it: class and message."""
    return f"{_PACKAGE}{java_class(error.error)}: {error.message}"
