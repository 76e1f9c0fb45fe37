"""Errors of the cluster have the status and the code of Confluent's proxy (KafkaExceptionMapper)."""

from __future__ import annotations

import pytest

from kafkapy.client.errors import AuthenticationError
from kafkapy.errors import ApiError, Error
from kafkapy.rest import errors


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ApiError(Error.INVALID_TOPIC_EXCEPTION), 40002, 400),
        (ApiError(Error.INVALID_CONFIG), 40002, 400),
        (ApiError(Error.INVALID_PARTITIONS), 40002, 400),
        (ApiError(Error.INVALID_REPLICATION_FACTOR), 40002, 400),
        (ApiError(Error.POLICY_VIOLATION), 40002, 400),
        (ApiError(Error.TOPIC_ALREADY_EXISTS), 40002, 400),
        (ApiError(Error.TOPIC_DELETION_DISABLED), 40002, 400),
        (ApiError(Error.UNKNOWN_SERVER_ERROR), 40002, 400),
        (AuthenticationError("wrong password"), 40101, 401),
        (ApiError(Error.TOPIC_AUTHORIZATION_FAILED), 40301, 403),
        (ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION), 40401, 404),
        (ApiError(Error.THROTTLING_QUOTA_EXCEEDED), 42901, 429),
        (ApiError(Error.BROKER_NOT_AVAILABLE), 50302, 503),
        (ApiError(Error.NOT_ENOUGH_REPLICAS), 50003, 500),
        (ApiError(Error.INVALID_TXN_STATE), 50002, 500),
    ],
)
def test_an_error_of_the_cluster_has_a_code_of_the_proxy(error, code, status):
    refused = errors.of_cluster(error)
    assert (refused.code, refused.status) == (code, status)
