"""The errors of a page: what is wrong, in words, and the HTTP status."""

from __future__ import annotations

from kafkapy.client import AuthenticationError, RequestTimedOut
from kafkapy.errors import ApiError, ConfigError, Error, KafkapyError

_STATUS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: 404,
    Error.UNKNOWN_TOPIC_ID: 404,
    Error.GROUP_ID_NOT_FOUND: 404,
    Error.TRANSACTIONAL_ID_NOT_FOUND: 404,
    Error.TOPIC_AUTHORIZATION_FAILED: 403,
    Error.GROUP_AUTHORIZATION_FAILED: 403,
    Error.CLUSTER_AUTHORIZATION_FAILED: 403,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    Error.UNSUPPORTED_VERSION: 501,
    Error.SECURITY_DISABLED: 501,
}


class Problem(Exception):
    """An error that is shown to the user as a page: an HTTP status and a full sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def problem_of(error: Exception, cluster: str = "") -> Problem | None:
    """Returns the Problem that describes an exception to the user, or None if the exception is a defect of the program.

    `cluster` is the name of the cluster for the text.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, AuthenticationError):
        return Problem(403, f"The cluster {cluster} refused the credentials: {error}")
    if isinstance(error, RequestTimedOut | TimeoutError):
        return Problem(504, f"The cluster {cluster} does not respond: {error}")
    if isinstance(error, ApiError):
        return Problem(_STATUS.get(error.error, 502), f"{error.message} ({error.error.name})")
    if isinstance(error, ConfigError | ValueError | KafkapyError):
        return Problem(502 if isinstance(error, KafkapyError) else 400, str(error))
    if isinstance(error, OSError):
        return Problem(504, f"The cluster {cluster} cannot be reached: {error.strerror or error}")
    return None
