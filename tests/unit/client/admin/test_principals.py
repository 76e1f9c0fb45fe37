"""Client quotas and SCRAM credentials: the requests that they make and the results that they read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kafkapy.client.admin import (
    ANY_NAME,
    Admin,
    NewScramCredential,
    ScramCredential,
    ScramMechanism,
    quota_entity,
)
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from kafkapy.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from kafkapy.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from kafkapy.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from tests.harness.client import MemoryBrokers

ADA, EVERYBODY = quota_entity(user="ada", client_id="app"), quota_entity(user=None)


@pytest.fixture
def brokers():
    harness = MemoryBrokers(node_ids=(1, 2))
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin() as made:
        yield made


def nodes_of(brokers: MemoryBrokers, key: ApiKey) -> list[int]:
    return [each.node_id for each in brokers.asked if each.key == key]


def quota_response(entities: dict[Any, dict[str, float]]) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in entities.items()
        ]
    )


def test_an_entity_is_sorted_and_has_the_names_of_the_protocol():
    assert ADA == (("client-id", "app"), ("user", "ada"))
    assert EVERYBODY == (("user", None),)
    assert repr(ANY_NAME) == "ANY_NAME"


def test_quotas_are_described_by_filters(brokers, admin: Admin):
    answer = {ADA: {"producer_byte_rate": 1000.0}, EVERYBODY: {"consumer_byte_rate": 5.0, "request_percentage": 2.0}}
    brokers.answers[ApiKey.DESCRIBE_CLIENT_QUOTAS] = lambda request, version: quota_response(answer)
    components = [("user", "ada"), ("client-id", None), ("ip", ANY_NAME)]
    assert admin.describe_client_quotas(components, strict=True) == answer
    (request,) = brokers.of(ApiKey.DESCRIBE_CLIENT_QUOTAS)
    assert request.strict
    assert [(each.entity_type, each.match_type, each.match) for each in request.components] == [
        ("user", 0, "ada"),
        ("client-id", 1, None),
        ("ip", 2, None),
    ]


def test_quotas_without_a_filter_are_all_quotas(brokers, admin: Admin):
    brokers.answers[ApiKey.DESCRIBE_CLIENT_QUOTAS] = lambda request, version: DescribeClientQuotasResponse(entries=None)
    assert admin.describe_client_quotas() == {}
    (request,) = brokers.of(ApiKey.DESCRIBE_CLIENT_QUOTAS)
    assert request.components == [] and not request.strict


def test_an_error_of_the_whole_response_is_raised(brokers, admin: Admin):
    brokers.answers[ApiKey.DESCRIBE_CLIENT_QUOTAS] = lambda request, version: DescribeClientQuotasResponse(
        error_code=int(Error.CLUSTER_AUTHORIZATION_FAILED), error_message="no", entries=None
    )
    with pytest.raises(ApiError, match="no") as raised:
        admin.describe_client_quotas()
    assert raised.value.error is Error.CLUSTER_AUTHORIZATION_FAILED


def test_quotas_are_set_and_removed_at_the_controller(brokers, admin: Admin):
    def alter(request, version):
        return AlterClientQuotasResponse(
            entries=[
                AlterClientQuotasResponse.EntryData(
                    entity=[
                        AlterClientQuotasResponse.EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                        for each in entry.entity
                    ],
                    error_code=int(Error.INVALID_REQUEST) if len(entry.entity) == 1 else 0,
                )
                for entry in request.entries
            ]
        )

    brokers.answers[ApiKey.ALTER_CLIENT_QUOTAS] = alter
    quotas = {ADA: {"producer_byte_rate": 1000.5, "consumer_byte_rate": None}, EVERYBODY: {"x": 1}}
    results = admin.alter_client_quotas(quotas, validate_only=True)
    assert results.values == {ADA: None}
    assert {key: error.error for key, error in results.errors.items()} == {EVERYBODY: Error.INVALID_REQUEST}
    (request,) = brokers.of(ApiKey.ALTER_CLIENT_QUOTAS)
    assert request.validate_only
    assert [(each.key, each.value, each.remove) for each in request.entries[0].ops] == [
        ("producer_byte_rate", 1000.5, False),
        ("consumer_byte_rate", 0.0, True),
    ]
    assert nodes_of(brokers, ApiKey.ALTER_CLIENT_QUOTAS) == [1]


def test_credentials_are_described_by_user_or_all(brokers, admin: Admin):
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    info = DescribeUserScramCredentialsResponse.CredentialInfo
    brokers.answers[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS] = lambda request, version: (
        DescribeUserScramCredentialsResponse(
            results=[
                result(
                    user="ada",
                    credential_infos=[info(mechanism=1, iterations=4096), info(mechanism=2, iterations=9000)],
                ),
                result(user="bob", error_code=int(Error.RESOURCE_NOT_FOUND), error_message="none"),
            ]
        )
    )
    results = admin.describe_user_scram_credentials(["ada", "bob"])
    assert results["ada"] == [
        ScramCredential(ScramMechanism.SCRAM_SHA_256, 4096),
        ScramCredential(ScramMechanism.SCRAM_SHA_512, 9000),
    ]
    with pytest.raises(ApiError, match="none"):
        results["bob"]
    admin.describe_user_scram_credentials()
    named, everybody = brokers.of(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
    assert [each.name for each in named.users] == ["ada", "bob"] and everybody.users is None


def alter_credentials(request, version):
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return AlterUserScramCredentialsResponse(
        results=[result(user=each.name) for each in (*request.deletions, *request.upsertions)]
    )


def test_the_broker_gets_the_salted_password_only(brokers, admin: Admin):
    brokers.answers[ApiKey.ALTER_USER_SCRAM_CREDENTIALS] = alter_credentials
    new = NewScramCredential("ada", ScramMechanism.SCRAM_SHA_512, "secret", 5000, b"salt")
    results = admin.alter_user_scram_credentials([new], [("bob", ScramMechanism.SCRAM_SHA_256)])
    assert results.values == {"bob": None, "ada": None}
    (request,) = brokers.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    (upsertion,), (deletion,) = request.upsertions, request.deletions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations, bytes(upsertion.salt)) == (
        "ada",
        2,
        5000,
        b"salt",
    )
    assert bytes(upsertion.salted_password) == hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 5000)
    assert (deletion.name, deletion.mechanism) == ("bob", 1)


def test_a_salt_is_drawn_for_every_credential(brokers, admin: Admin):
    brokers.answers[ApiKey.ALTER_USER_SCRAM_CREDENTIALS] = alter_credentials
    new = [NewScramCredential(user, ScramMechanism.SCRAM_SHA_256, b"secret") for user in ("ada", "bob")]
    admin.alter_user_scram_credentials(new)
    (request,) = brokers.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    first, second = (bytes(each.salt) for each in request.upsertions)
    assert first != second and len(first) == 32
    assert request.upsertions[0].iterations == 4096


def test_an_alteration_is_sent_again_after_the_controller_has_moved(brokers, admin: Admin):
    responses = [
        AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                    user="bob", error_code=int(Error.NOT_CONTROLLER)
                )
            ]
        )
    ]
    brokers.answers[ApiKey.ALTER_USER_SCRAM_CREDENTIALS] = lambda request, version: (
        responses.pop() if responses else alter_credentials(request, version)
    )
    results = admin.alter_user_scram_credentials(deletions=[("bob", ScramMechanism.SCRAM_SHA_256)])
    assert results.check() == {"bob": None}
    assert len(brokers.of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)) == 2
