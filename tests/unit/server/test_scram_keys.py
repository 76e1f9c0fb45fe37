"""Keys of SCRAM credentials in a tagged field of AlterUserScramCredentials."""

from __future__ import annotations

import pytest

from kafkapy.controller.scram_credentials import ScramUpsertion, alter_scram_credentials
from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import ScramCredential
from kafkapy.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkapy.server.scram_keys import keys_of, keys_request
from tests.harness.metadata import bootstrapped, commit

CREDENTIAL = ScramCredential(b"salt", b"s" * 64, b"v" * 64, 8192)


def sent(request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsRequest:
    """Returns what the receiver decodes."""
    return AlterUserScramCredentialsRequest.decode(request.encode(0), 0)


def test_the_keys_arrive_and_are_stored() -> None:
    (upsertion,) = sent(keys_request("u", 2, CREDENTIAL)).upsertions
    keys = keys_of(upsertion)
    assert keys == (CREDENTIAL.stored_key, CREDENTIAL.server_key)
    image = bootstrapped(elr=False)
    stored = ScramUpsertion("u", 2, upsertion.iterations, bytes(upsertion.salt), b"", keys)
    assert commit(image, alter_scram_credentials(image, [], [stored])).scram == {("u", 2): CREDENTIAL}


def test_a_deletion_needs_no_keys() -> None:
    request = sent(keys_request("u", 1, None))
    assert [(each.name, each.mechanism) for each in request.deletions] == [("u", 1)]
    assert not request.upsertions


@pytest.mark.parametrize("mechanism", [0, 1, 3])
def test_keys_of_another_size_or_mechanism_are_ignored(mechanism: int) -> None:
    """The credential is refused, because its salted password is empty."""
    (upsertion,) = sent(keys_request("u", mechanism, CREDENTIAL)).upsertions
    assert keys_of(upsertion) is None
    image = bootstrapped(elr=False)
    result = alter_scram_credentials(image, [], [ScramUpsertion("u", mechanism, 8192, b"salt", b"")])
    assert result.response["u"].error is not Error.NONE


def test_a_salted_password_has_precedence() -> None:
    (upsertion,) = keys_request("u", 2, CREDENTIAL).upsertions
    upsertion.salted_password = b"password"
    assert keys_of(upsertion) is None
