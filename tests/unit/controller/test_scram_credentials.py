"""SCRAM credentials: the stored keys verify the password (RFC 7677's example); a user is changed once in a request."""

import base64
import hashlib
import hmac

from kafkapy.controller.scram_credentials import ScramDeletion, ScramUpsertion, alter_scram_credentials
from kafkapy.errors import Error
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import EMPTY_IMAGE

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)


def upsertion(name="user", mechanism=1, iterations=4096, salted_password=SALTED):
    return ScramUpsertion(name, mechanism, iterations, SALT, salted_password)


def codes(result):
    return {name: error.error for name, error in result.response.items()}


def replayed(image, result):
    delta = MetadataDelta(image)
    for message, _ in result.records:
        delta.replay(message)
    return delta.to_image(image.offset + len(result.records), 1)


def test_what_is_kept_verifies_a_client_of_the_rfc():
    image = replayed(EMPTY_IMAGE, alter_scram_credentials(EMPTY_IMAGE, [], [upsertion()]))
    credential = image.scram["user", 1]
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(credential.stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == credential.stored_key
    server_signature = hmac.digest(credential.server_key, message, "sha256")
    assert base64.b64encode(server_signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_refusals_leave_the_other_users_alone():
    result = alter_scram_credentials(
        EMPTY_IMAGE,
        [ScramDeletion("gone", 1)],
        [upsertion("good"), upsertion("few", iterations=4095), upsertion("many", iterations=16385), upsertion("", 1),
         upsertion("odd", 3), upsertion("twice"), upsertion("twice", 2), upsertion("blank", salted_password=b"")],
    )  # fmt: skip
    assert codes(result) == {
        "good": 0,
        "gone": Error.RESOURCE_NOT_FOUND,
        "few": Error.UNACCEPTABLE_CREDENTIAL,
        "many": Error.UNACCEPTABLE_CREDENTIAL,
        "": Error.UNACCEPTABLE_CREDENTIAL,
        "odd": Error.UNSUPPORTED_SASL_MECHANISM,
        "twice": Error.DUPLICATE_RESOURCE,
        "blank": Error.UNKNOWN_SERVER_ERROR,
    }
    assert [message.name for message, _ in result.records] == ["good"]


def test_a_deleted_credential_is_gone():
    image = replayed(EMPTY_IMAGE, alter_scram_credentials(EMPTY_IMAGE, [], [upsertion()]))
    result = alter_scram_credentials(image, [ScramDeletion("user", 1)], [])
    assert codes(result) == {"user": 0}
    assert replayed(image, result).scram == {}
