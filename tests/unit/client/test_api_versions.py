"""The choice of a version that both the client and a broker support."""

from __future__ import annotations

import pytest

from kafkapy.client.api_versions import SPOKEN, choose_version, finalized_features, served_versions
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse

LOW, HIGH = SPOKEN[ApiKey.FETCH]


def test_the_newest_common_version_is_chosen():
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (0, HIGH + 5)}) == HIGH
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (0, HIGH - 1)}) == HIGH - 1
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (HIGH, HIGH + 1)}) == HIGH
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (0, LOW)}) == LOW


def test_the_version_is_at_most_the_highest_that_is_allowed():
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (0, HIGH)}, highest=LOW + 1) == LOW + 1
    assert choose_version(ApiKey.FETCH, {ApiKey.FETCH: (0, HIGH)}, highest=HIGH + 1) == HIGH
    with pytest.raises(ApiError):
        choose_version(ApiKey.FETCH, {ApiKey.FETCH: (LOW + 2, HIGH)}, highest=LOW + 1)


@pytest.mark.parametrize("served", [(0, LOW - 1), (HIGH + 1, HIGH + 2)])
def test_without_a_common_version_both_ranges_are_named(served):
    with pytest.raises(
        ApiError, match=f"versions {served[0]} to {served[1]}, the client supports {LOW} to {HIGH}"
    ) as error:
        choose_version(ApiKey.FETCH, {ApiKey.FETCH: served})
    assert error.value.error is Error.UNSUPPORTED_VERSION


def test_an_api_that_the_broker_does_not_have_is_refused():
    with pytest.raises(ApiError, match="The broker does not support Fetch") as error:
        choose_version(ApiKey.FETCH, {})
    assert error.value.error is Error.UNSUPPORTED_VERSION


def test_an_api_that_is_not_listed_is_supported_in_all_stable_versions():
    api = API_TABLE[ApiKey.LIST_GROUPS]
    assert (
        choose_version(ApiKey.LIST_GROUPS, {ApiKey.LIST_GROUPS: (0, 99)}) == api.highest - api.latest_version_unstable
    )


def test_versions_and_features_are_read_from_the_response():
    response = ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=1, min_version=2, max_version=3)],
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name="f", max_version_level=4, min_version_level=1)
        ],
    )
    assert served_versions(response) == {1: (2, 3)}
    assert finalized_features(response) == {"f": 4}
