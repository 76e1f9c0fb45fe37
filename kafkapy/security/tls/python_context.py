"""TLS contexts of Python's `ssl`, for clients and for sockets outside the reactor."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from kafkapy.errors import ConfigError
from kafkapy.security.tls.cipher_suites import TLS_1_2, TLS_1_3
from kafkapy.security.tls.tls_material import TlsMaterial

_VERSIONS = {
    TLS_1_2: ssl.TLSVersion.TLSv1_2,
    TLS_1_3: ssl.TLSVersion.TLSv1_3,
}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_HTTPS = "https"


def server_context(material: TlsMaterial) -> ssl.SSLContext:
    """Returns the context of a listener. Raises ConfigError if OpenSSL does not accept the key, a certificate or the
    cipher suites."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, material)
    context.verify_mode = _CLIENT_AUTH[material.settings.client_auth]
    return context


def client_context(material: TlsMaterial) -> ssl.SSLContext:
    """Returns the TLS context of a client. It verifies the server's certificate.

    It also verifies that the certificate is for the server's name, unless `ssl.endpoint.identification.algorithm` is
    empty. Raises ConfigError for a value of this key other than https and "", and if OpenSSL does not accept the key, a
    certificate or the cipher suites.
    """
    algorithm = material.settings.endpoint_identification_algorithm
    if algorithm.lower() not in ("", _HTTPS):
        raise ConfigError(
            f"Invalid value {algorithm} for configuration {material.settings.prefix}"
            "ssl.endpoint.identification.algorithm: accepted are https and the empty value"
        )
    context = _context(ssl.PROTOCOL_TLS_CLIENT, material)
    context.check_hostname = bool(algorithm)
    return context


def _context(protocol: int, material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    suites = material.suites
    context.minimum_version = min(_VERSIONS[name] for name in suites.protocols)
    context.maximum_version = max(_VERSIONS[name] for name in suites.protocols)
    if suites.tls_1_2:
        try:
            context.set_ciphers(":".join(suites.tls_1_2))
        except ssl.SSLError as error:
            raise ConfigError(
                f"{material.settings.prefix}ssl.cipher.suites: OpenSSL offers none of the suites"
            ) from error
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    # As in Java, a trusted certificate need not be that of an authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _load_identity(context, material)
    _load_trusted(context, material)
    return context


def _load_identity(context: ssl.SSLContext, material: TlsMaterial) -> None:
    key, chain = material.private_key, material.chain_pem
    if key is None or chain is None:
        return
    with _as_file(chain + key.pem) as path:
        try:
            context.load_cert_chain(path, password=key.password or "")
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"{material.settings.prefix}ssl.keystore: {_identity_problem(error)}") from None


def _identity_problem(error: OSError) -> str:
    reason = getattr(error, "reason", "") or ""
    if reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the certificate"
    if "DECRYPT" in reason or "PASSWORD" in reason or "PADDING" in reason:
        return "the password of the private key is wrong; correct ssl.key.password"
    detail = reason.lower().replace("_", " ") or "the password of the private key is wrong, or the key is damaged"
    return f"private key or certificate cannot be used: {detail}"


def _load_trusted(context: ssl.SSLContext, material: TlsMaterial) -> None:
    trusted = material.trusted_pem
    try:
        if trusted is None:
            context.load_default_certs(
                ssl.Purpose.SERVER_AUTH if context.protocol == ssl.PROTOCOL_TLS_CLIENT else ssl.Purpose.CLIENT_AUTH
            )
        elif trusted:
            context.load_verify_locations(cadata=trusted.decode())
        if material.revocations_pem is not None:
            with _as_file(material.revocations_pem) as path:
                context.load_verify_locations(cafile=path)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"{material.settings.prefix}ssl.truststore: a certificate cannot be used: {error}") from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yields the path of a temporary file with `content`, for functions that accept paths only.

    The file is in memory if /proc exists. It is deleted at the end of the `with` block.
    """
    descriptor = os.memfd_create("kafkapy", os.MFD_CLOEXEC)
    try:
        path = f"/proc/self/fd/{descriptor}"
        if os.path.exists(path):
            os.write(descriptor, content)
            yield path
            return
    finally:
        os.close(descriptor)
    with tempfile.NamedTemporaryFile() as file:  # its mode is 0600
        file.write(content)
        file.flush()
        yield file.name
