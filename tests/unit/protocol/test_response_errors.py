"""An error is found in the whole response and in its parts, whichever array the API has."""

from __future__ import annotations

import pytest

from kafkapy._core.bytes.message import Message
from kafkapy.errors import Error
from kafkapy.protocol.messages.alter_partition import AlterPartitionResponse
from kafkapy.protocol.messages.create_acls import CreateAclsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsResponse
from kafkapy.protocol.messages.delete_acls import DeleteAclsResponse
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kafkapy.protocol.response_errors import part_with_error

MOVED = int(Error.NOT_CONTROLLER)
RESPONSES = [
    AlterPartitionResponse(error_code=MOVED),
    CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="t", error_code=MOVED)]),
    CreateAclsResponse(results=[CreateAclsResponse.AclCreationResult(error_code=MOVED)]),
    DeleteAclsResponse(filter_results=[DeleteAclsResponse.DeleteAclsFilterResult(error_code=MOVED)]),
    IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(resource_name="a"),
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(resource_name="b", error_code=MOVED),
        ]
    ),
]


@pytest.mark.parametrize("response", RESPONSES, ids=lambda each: type(each).__name__)
def test_the_part_with_the_error_is_found(response: Message) -> None:
    found = part_with_error(response, Error.NOT_CONTROLLER)
    assert found is not None
    assert found.error_code == Error.NOT_CONTROLLER  # type: ignore[attr-defined]
    assert part_with_error(response, Error.NOT_COORDINATOR) is None


def test_a_response_without_errors_has_no_such_part() -> None:
    topics = [CreateTopicsResponse.CreatableTopicResult(name="t")]
    assert part_with_error(CreateTopicsResponse(topics=topics), Error.NOT_CONTROLLER) is None
