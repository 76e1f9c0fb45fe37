"""Certificates of clients: none, requested or required; expired, foreign, for another purpose, revoked."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.tls.tls_context import CLIENT_AUTH_NONE, CLIENT_AUTH_REQUESTED, CLIENT_AUTH_REQUIRED
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import frame, receive_frame
from tests.tls_harness import TlsHarness, client_context, running, server_context

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def alice(authority: CertificateAuthority) -> Identity:
    return authority.issue("alice", subject="/CN=alice/OU=clients/O=Test", usage="clientAuth")


def exchange(harness: TlsHarness, context: ssl.SSLContext) -> bytes:
    """Returns the answer to a request. Raises OSError if the server refuses the handshake or ends the connection."""
    client = harness.connect_tls(context)
    client.sendall(frame(b"a request"))
    return receive_frame(client)


def refusal(harness: TlsHarness, context: ssl.SSLContext) -> str:
    """Returns the server's reason to refuse a client. The client gets an alert, or finds the connection closed."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        exchange(harness, context)
    _, error = harness.wait_handshake()
    assert error is not None
    return error


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", [CLIENT_AUTH_NONE, CLIENT_AUTH_REQUESTED, CLIENT_AUTH_REQUIRED])
def test_a_certificate_reaches_python_if_the_server_asks_for_it(
    authority: CertificateAuthority, broker: Identity, alice: Identity, mode: int, version: ssl.TLSVersion
) -> None:
    context = client_context(authority, alice)
    context.maximum_version = version
    with running(server_context(broker, client_auth=mode, trusted_pem=authority.certificate_pem)) as harness:
        client = harness.connect_tls(context)
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == b"a request"
        connection, _ = harness.wait_handshake()
        expected = ssl.PEM_cert_to_DER_cert(alice.chain_pem.decode()) if mode else None
        assert harness.call(connection.peer_certificate) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_only_a_required_certificate_may_not_be_missing(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion
) -> None:
    context = client_context(authority)
    context.maximum_version = version
    for mode in (CLIENT_AUTH_NONE, CLIENT_AUTH_REQUESTED, CLIENT_AUTH_REQUIRED):
        options = {"client_auth": mode, "trusted_pem": authority.certificate_pem}
        with running(server_context(broker, **options)) as harness:
            if mode != CLIENT_AUTH_REQUIRED:
                assert exchange(harness, context) == b"a request"
            else:
                assert refusal(harness, context) == "peer did not return a certificate"


def test_certificates_that_are_not_accepted_are_described(
    authority: CertificateAuthority, broker: Identity, tmp_path: Path
) -> None:
    stranger = CertificateAuthority(tmp_path / "stranger", "Stranger")
    cases = [
        (authority.issue("late", usage="clientAuth", days=(-9, -2)), "certificate has expired", "/CN=late"),
        (authority.issue("early", usage="clientAuth", days=(2, 9)), "certificate is not yet valid", "/CN=early"),
        (authority.issue("purpose", usage="serverAuth"), "unsuitable certificate purpose", "/CN=purpose"),
        (stranger.issue("foreign"), "unable to get local issuer certificate", "/CN=foreign"),
    ]
    options = {"client_auth": CLIENT_AUTH_REQUESTED, "trusted_pem": authority.certificate_pem}
    for identity, reason, subject in cases:
        with running(server_context(broker, **options)) as harness:
            error = refusal(harness, client_context(authority, identity))
            assert error == f"certificate verify failed: {reason} in the certificate of {subject}"


def test_revoked_certificates_are_refused(authority: CertificateAuthority, broker: Identity, alice: Identity) -> None:
    mallory = authority.issue("mallory", usage="clientAuth")
    revoked = authority.revoke(mallory)
    options: dict[str, Any] = {"client_auth": CLIENT_AUTH_REQUIRED, "trusted_pem": authority.certificate_pem}
    with running(server_context(broker, crl_pem=revoked, **options)) as harness:
        assert exchange(harness, client_context(authority, alice)) == b"a request"
    with running(server_context(broker, crl_pem=revoked, **options)) as harness:
        error = refusal(harness, client_context(authority, mallory))
        assert error == "certificate verify failed: certificate revoked in the certificate of /CN=mallory"


def test_a_revocation_list_of_the_issuer_is_required_and_one_of_the_root_is_not(
    authority: CertificateAuthority, broker: Identity, tmp_path: Path
) -> None:
    team = CertificateAuthority(tmp_path / "team", "Team", parent=authority)
    member, revoked = team.issue("member"), team.issue("revoked")
    context = client_context(authority, member)
    options: dict[str, Any] = {"client_auth": CLIENT_AUTH_REQUIRED, "trusted_pem": authority.certificate_pem}
    with running(server_context(broker, crl_pem=authority.revoke(), **options)) as harness:
        assert "unable to get certificate CRL" in refusal(harness, context)
    with running(server_context(broker, crl_pem=team.revoke(revoked), **options)) as harness:
        assert exchange(harness, context) == b"a request"
    with running(server_context(broker, crl_pem=team.revoke(), **options)) as harness:
        assert "certificate revoked" in refusal(harness, client_context(authority, revoked))


def test_a_trusted_certificate_need_not_be_self_signed(
    authority: CertificateAuthority, broker: Identity, tmp_path: Path
) -> None:
    team = CertificateAuthority(tmp_path / "team", "Team", parent=authority)
    context = server_context(broker, client_auth=CLIENT_AUTH_REQUIRED, trusted_pem=team.certificate_pem)
    with running(context) as harness:
        assert exchange(harness, client_context(authority, team.issue("member"))) == b"a request"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_resumed_session_still_has_its_certificate(
    authority: CertificateAuthority, broker: Identity, alice: Identity, version: ssl.TLSVersion
) -> None:
    context = client_context(authority, alice)
    context.maximum_version = version
    server = server_context(broker, client_auth=CLIENT_AUTH_REQUIRED, trusted_pem=authority.certificate_pem)
    with running(server) as harness:
        session = None
        for count in (1, 2):
            client = harness.connect_tls(context, session)
            client.sendall(frame(b"a request"))
            receive_frame(client)
            session = client.session
            connection, _ = harness.wait_handshake(count)
            assert connection.tls_is_resumed == (count == 2)
            assert harness.call(connection.peer_certificate) == ssl.PEM_cert_to_DER_cert(alice.chain_pem.decode())


def test_an_expired_certificate_does_not_resume_its_session(authority: CertificateAuthority, broker: Identity) -> None:
    """The certificate is valid for a few seconds; connections resume the session until they are over."""
    brief = authority.issue("brief", usage="clientAuth", days=(-1, 6 / 86400))
    context = client_context(authority, brief)
    server = server_context(broker, client_auth=CLIENT_AUTH_REQUIRED, trusted_pem=authority.certificate_pem)
    with running(server) as harness:
        session = None
        for count in range(1, 1000):
            try:
                client = harness.connect_tls(context, session)
                client.sendall(frame(b"a request"))
                receive_frame(client)
            except OSError:
                break
            session = client.session
            threading.Event().wait(0.1)
            assert harness.wait_handshake(count)[1] is None
        assert harness.wait_handshake(count)[1] == "the certificate of the resumed session has expired"
