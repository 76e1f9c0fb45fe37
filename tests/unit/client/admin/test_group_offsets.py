"""Committed offsets of groups: listing, setting and deleting them, by version and with errors of partitions."""

from __future__ import annotations

import pytest

from kafkapy.client import OffsetAndMetadata, TopicPartition
from kafkapy.client.admin import Admin
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_delete import OffsetDeleteResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchResponse
from tests.harness.client_log import LogBrokers

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def brokers():
    harness = LogBrokers(node_ids=(1, 2))
    harness.committed = {T0: OffsetAndMetadata(5, "half", 2), T1: OffsetAndMetadata(7)}
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin() as made:
        yield made


def old_response(error: Error = Error.NONE) -> OffsetFetchResponse:
    partition = OffsetFetchResponse.OffsetFetchResponsePartition
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    partition(partition_index=0, committed_offset=5, metadata="half"),
                    partition(partition_index=1, committed_offset=-1, metadata="", error_code=int(error)),
                ],
            )
        ]
    )


def test_the_offsets_of_given_partitions_are_listed(brokers, admin: Admin):
    results = admin.list_group_offsets({"g": [T0, ("t", 9)]}, require_stable=True)
    assert results.check() == {"g": {T0: OffsetAndMetadata(5, "half", 2)}}
    (request,) = brokers.of(ApiKey.OFFSET_FETCH)
    assert request.require_stable
    ((group,),) = (request.groups,)
    assert (group.group_id, [(each.name, each.partition_indexes) for each in group.topics]) == ("g", [("t", [0, 9])])


def test_an_offset_of_0_is_committed(brokers, admin: Admin):
    brokers.committed = {T0: OffsetAndMetadata(0)}
    assert admin.list_group_offsets({"g": [T0, T1]}).check() == {"g": {T0: OffsetAndMetadata(0)}}


@pytest.mark.parametrize("groups", [["g", "h"], {"g": None, "h": None}])
def test_all_offsets_of_groups_are_listed_by_a_request_each(brokers, admin: Admin, groups):
    def fetch(request, version):
        (group,) = request.groups
        response = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id)
        if group.group_id == "h":
            response.error_code = int(Error.GROUP_ID_NOT_FOUND)
        return OffsetFetchResponse(groups=[response])

    brokers.answers[ApiKey.OFFSET_FETCH] = fetch
    results = admin.list_group_offsets(groups)
    assert results.values == {"g": {}} and results.errors["h"].error is Error.GROUP_ID_NOT_FOUND
    requests = brokers.of(ApiKey.OFFSET_FETCH)
    assert [each.groups[0].group_id for each in requests] == ["g", "h"]
    assert all(each.groups[0].topics is None and not each.require_stable for each in requests)


def test_older_brokers_are_asked_for_one_group(brokers, admin: Admin):
    brokers.versions[ApiKey.OFFSET_FETCH] = (1, 7)
    brokers.answers[ApiKey.OFFSET_FETCH] = lambda request, version: old_response()
    assert admin.list_group_offsets({"g": [T0, T1]})["g"] == {T0: OffsetAndMetadata(5, "half", -1)}
    assert admin.list_group_offsets(["g"])["g"] == {T0: OffsetAndMetadata(5, "half", -1)}
    named, everything = brokers.of(ApiKey.OFFSET_FETCH)
    assert (named.group_id, [(each.name, each.partition_indexes) for each in named.topics]) == ("g", [("t", [0, 1])])
    assert everything.topics is None


def test_an_error_of_a_partition_is_that_of_its_group(brokers, admin: Admin):
    brokers.versions[ApiKey.OFFSET_FETCH] = (1, 7)
    brokers.answers[ApiKey.OFFSET_FETCH] = lambda request, version: old_response(Error.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError) as raised:
        admin.list_group_offsets(["g"])["g"]
    assert raised.value.error is Error.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("highest", "groups", "require_stable", "text"),
    [(6, {"g": [T0]}, True, "cannot wait for transactions"), (1, ["g"], False, "cannot list all offsets")],
)
def test_what_a_broker_is_too_old_for_is_refused(brokers, admin: Admin, highest, groups, require_stable, text):
    brokers.versions[ApiKey.OFFSET_FETCH] = (1, highest)
    with pytest.raises(ApiError, match=text) as raised:
        admin.list_group_offsets(groups, require_stable=require_stable).check()
    assert raised.value.error is Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("highest", "require_stable"), [(7, True), (2, False)])
def test_the_first_version_that_has_a_feature_is_used(brokers, admin: Admin, highest, require_stable):
    brokers.versions[ApiKey.OFFSET_FETCH] = (1, highest)
    response = OffsetFetchResponse(topics=[])
    brokers.answers[ApiKey.OFFSET_FETCH] = lambda request, version: response
    assert admin.list_group_offsets(["g"], require_stable=require_stable).check() == {"g": {}}
    assert brokers.of(ApiKey.OFFSET_FETCH)[0].require_stable is require_stable


def test_offsets_are_set_with_metadata_and_epoch(brokers, admin: Admin):
    results = admin.alter_group_offsets("g", {T0: 12, ("u", 0): OffsetAndMetadata(3, "note", 4)})
    assert results.check() == {T0: None, U0: None}
    assert brokers.committed[T0] == OffsetAndMetadata(12) and brokers.committed[U0] == OffsetAndMetadata(3, "note", 4)
    (request,) = brokers.of(ApiKey.OFFSET_COMMIT)
    assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "", -1)


def test_older_brokers_get_no_leader_epoch(brokers, admin: Admin):
    brokers.versions[ApiKey.OFFSET_COMMIT] = (2, 5)
    admin.alter_group_offsets("g", {T0: OffsetAndMetadata(3, "", 4)}).check()
    assert brokers.committed[T0].leader_epoch == -1
    brokers.versions[ApiKey.OFFSET_COMMIT] = (2, 6)
    with brokers.admin() as newer:
        newer.alter_group_offsets("g", {T0: OffsetAndMetadata(3, "", 4)}).check()
    assert brokers.committed[T0].leader_epoch == 4


def test_setting_offsets_is_repeated_after_errors_of_the_coordinator(brokers, admin: Admin):
    brokers.commit_errors = [
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.NOT_COORDINATOR,
        Error.COORDINATOR_NOT_AVAILABLE,
    ]
    assert admin.alter_group_offsets("g", {T0: 1}).check() == {T0: None}
    assert len(brokers.of(ApiKey.OFFSET_COMMIT)) == 4
    assert len(brokers.of(ApiKey.FIND_COORDINATOR)) == 4


def test_an_error_of_a_partition_is_in_the_results(brokers, admin: Admin):
    brokers.commit_errors = [Error.UNKNOWN_MEMBER_ID]
    results = admin.alter_group_offsets("g", {T0: 1})
    assert results.errors[T0].error is Error.UNKNOWN_MEMBER_ID and not results.values


def test_offsets_are_deleted_by_partition(brokers, admin: Admin):
    def delete(request, version):
        assert request.group_id == "g"
        topics = []
        for topic in request.topics:
            partitions = [
                OffsetDeleteResponse.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index,
                    error_code=int(Error.GROUP_SUBSCRIBED_TO_TOPIC) if each.partition_index else 0,
                )
                for each in topic.partitions
            ]
            topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        return OffsetDeleteResponse(topics=topics)

    brokers.answers[ApiKey.OFFSET_DELETE] = delete
    results = admin.delete_group_offsets("g", [T0, ("t", 1), U0])
    assert results.values == {T0: None, U0: None}
    assert results.errors[T1].error is Error.GROUP_SUBSCRIBED_TO_TOPIC


def test_deleting_offsets_of_a_group_that_does_not_exist_is_an_error(brokers, admin: Admin):
    brokers.answers[ApiKey.OFFSET_DELETE] = lambda request, version: OffsetDeleteResponse(
        error_code=int(Error.GROUP_ID_NOT_FOUND)
    )
    with pytest.raises(ApiError) as raised:
        admin.delete_group_offsets("g", [T0])
    assert raised.value.error is Error.GROUP_ID_NOT_FOUND
