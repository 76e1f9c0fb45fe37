"""DescribeUserScramCredentials and AlterUserScramCredentials, version 0 (KIP-554).

Credentials are checked and stored in the metadata, as in Apache Kafka. If a kafkapy broker knows the keys of a
credential, but not its salted password, it sends the keys to the controller in a tagged field that only kafkapy has
(`server/scram_keys`). A controller of Apache Kafka ignores this field, and refuses the request because its salted
password is empty.

Permissions: Describe on the cluster to describe credentials, Alter on the cluster to change them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.scram_credentials import ScramDeletion, ScramUpsertion, alter_scram_credentials
from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kafkapy.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext
from kafkapy.server.scram_keys import keys_of

DescribedUser = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def describe_user_scram_credentials_error(
    request: DescribeUserScramCredentialsRequest, version: int, error: Error, message: str | None
) -> DescribeUserScramCredentialsResponse:
    """Returns a response with the error for the whole request, and an entry with this error for each requested user.

    The entries do not contain the names of the users.
    """
    results = [DescribedUser(error_code=error, error_message=message) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=error, error_message=message, results=results)


@serves(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, on_error=describe_user_scram_credentials_error)
def handle_describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describes the named users, or all users that have a credential."""
    check_cluster(context, Operation.DESCRIBE)
    image = context.services.metadata.image
    named = Counter(user.name for user in request.users or ()) or Counter({name: 1 for name, _ in image.scram})
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[_described(image, name, count) for name, count in named.items()]
    )


def _described(image: MetadataImage, name: str, times_named: int) -> DescribedUser:
    if times_named > 1:
        return DescribedUser(
            user=name,
            error_code=Error.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    found = sorted((mechanism, each.iterations) for (user, mechanism), each in image.scram.items() if user == name)
    if not found:
        return DescribedUser(
            user=name,
            error_code=Error.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribedUser(
        user=name,
        error_message="",
        credential_infos=[
            DescribeUserScramCredentialsResponse.CredentialInfo(mechanism=mechanism, iterations=iterations)
            for mechanism, iterations in found
        ],
    )


def alter_user_scram_credentials_error(
    request: AlterUserScramCredentialsRequest, version: int, error: Error, message: str | None
) -> AlterUserScramCredentialsResponse:
    names = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    return _altered(dict.fromkeys(names, ErrorMessage(error, message)))


@serves(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, on_error=alter_user_scram_credentials_error)
def handle_alter_user_scram_credentials(context: RequestContext, request: AlterUserScramCredentialsRequest) -> None:
    check_cluster(context, Operation.ALTER)
    version = context.api_version
    deletions = [ScramDeletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        ScramUpsertion(
            each.name,
            each.mechanism,
            each.iterations,
            bytes(each.salt),
            bytes(each.salted_password),
            keys_of(each),
        )
        for each in request.upsertions
    ]
    answer_when_committed(
        context,
        lambda image: alter_scram_credentials(image, deletions, upsertions),
        _altered,
        lambda error, message: alter_user_scram_credentials_error(request, version, error, message),
    )


def _altered(results: Mapping[str, ErrorMessage]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=name, error_code=result.error, error_message=result.message
            )
            for name, result in results.items()
        ]
    )
