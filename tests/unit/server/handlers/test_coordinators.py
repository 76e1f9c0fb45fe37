"""FindCoordinator on the wire, in every version. The answers are Apache Kafka 4.3's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.server.handlers.coordinators import handle_find_coordinator
from tests.harness.group_handler import PARTITIONS, GroupHandlerHarness
from tests.harness.replica import NODE_ID, partition_image

HERE = (0, NODE_ID, "here", 9092)
GROUP, TRANSACTION, SHARE, UNHEARD_OF = 0, 1, 2, 9


def find(harness: GroupHandlerHarness, version: int, key: str, key_type: int = GROUP) -> tuple[Any, ...]:
    fields: dict[str, Any] = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
    request = FindCoordinatorRequest(**fields, **({"key_type": key_type} if version >= 1 else {}))
    response = harness.send(handle_find_coordinator, request, version).response
    answer = response.coordinators[0] if version >= 4 else response
    return answer.error_code, answer.node_id, answer.host, answer.port


@pytest.mark.parametrize("version", range(7))
def test_a_group_has_its_coordinator_here(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    assert find(harness, version, "g") == HERE
    assert find(harness, version, "") == HERE


@pytest.mark.parametrize("version", range(7))
def test_the_topic_is_created_when_first_needed(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path, with_offsets_topic=False)
    assert find(harness, version, "g") == (Error.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    assert len(harness.submitted) == 1
    harness.put_offsets_topic()
    assert find(harness, version, "g") == HERE


def test_one_request_for_many_coordinators_requests_the_topic_once(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path, with_offsets_topic=False)
    request = FindCoordinatorRequest(coordinator_keys=[str(number) for number in range(100)])
    response = harness.send(handle_find_coordinator, request, 6).response
    assert {each.error_code for each in response.coordinators} == {Error.COORDINATOR_NOT_AVAILABLE}
    assert len(harness.submitted) == 1


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_that_do_not_exist_and_unknown_key_types_have_no_coordinator(tmp_path: Path, version: int) -> None:
    harness = GroupHandlerHarness(tmp_path)
    nowhere = (-1, "", -1)
    assert find(harness, version, "t", TRANSACTION) == (Error.COORDINATOR_NOT_AVAILABLE, *nowhere)
    assert find(harness, version, "not-a-share-partition", SHARE) == (Error.INVALID_REQUEST, *nowhere)
    assert find(harness, version, "x", UNHEARD_OF) == (Error.INVALID_REQUEST, *nowhere)


def test_error_messages_depend_on_the_version(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path)
    single = harness.send(handle_find_coordinator, FindCoordinatorRequest(key="g"), 3).response
    assert single.error_message == "NONE"
    several = harness.send(handle_find_coordinator, FindCoordinatorRequest(coordinator_keys=["a", "b"]), 6).response
    assert [(found.key, found.error_message) for found in several.coordinators] == [("a", ""), ("b", "")]
    assert (
        harness.send(handle_find_coordinator, FindCoordinatorRequest(coordinator_keys=[]), 6).response.coordinators
        == []
    )


def test_the_coordinator_is_named_once_it_leads_its_partition(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path, with_offsets_topic=False)
    harness.put_topic(GROUP_METADATA_TOPIC, [partition_image() for _ in range(PARTITIONS)])
    assert find(harness, 6, "g") == (Error.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    harness.notify_coordinator()
    assert find(harness, 6, "g") == HERE


def test_a_fenced_broker_coordinates_nothing(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path)
    image = harness.metadata.image
    fenced = image.brokers[NODE_ID]._replace(fenced=True)
    harness.metadata.image = image._replace(brokers={NODE_ID: fenced})
    assert find(harness, 6, "g")[0] == Error.COORDINATOR_NOT_AVAILABLE
