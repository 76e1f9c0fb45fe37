"""A certificate authority for `kafkapy security init`: keys on P-256, certificates signed by ECDSA with SHA-256."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.certificate import BASIC_CONSTRAINTS, SUBJECT_ALTERNATIVE_NAME
from kafkapy.security.tls.der import (
    BOOLEAN,
    GENERALIZED_TIME,
    OCTET_STRING,
    UTC_TIME,
    UTF8_STRING,
    bit_string,
    context,
    element,
    integer,
    oid,
    sequence,
    set_of,
)
from kafkapy.security.tls.distinguished_name import KEYWORDS
from kafkapy.security.tls.libcrypto import GeneratedKey
from kafkapy.security.tls.pem import CERTIFICATE, PRIVATE_KEY, encode_block

# A certificate is valid from an hour before its creation, because the clocks of clients may be slow.
_BACKDATED_S = 3_600
_SERIAL_BYTES = 16
_FIRST_GENERALIZED_YEAR = 2050
_ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2"
_KEY_USAGE = "2.5.29.15"
_EXTENDED_KEY_USAGE = "2.5.29.37"
_SUBJECT_KEY_IDENTIFIER = "2.5.29.14"
_AUTHORITY_KEY_IDENTIFIER = "2.5.29.35"
SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"
_DNS_TAG, _ADDRESS_TAG, _KEY_IDENTIFIER_TAG = 0x82, 0x87, 0x80
_TRUE = element(BOOLEAN, b"\xff")
# Bits of KeyUsage: keyCertSign and cRLSign; digitalSignature.
_AUTHORITY_USAGE = bit_string(b"\x06", 1)
_END_USAGE = bit_string(b"\x80", 7)
_NUMBERS = {keyword: number for number, keyword in KEYWORDS.items()}

Name = Sequence[tuple[str, str]]


class IssuedCertificate(NamedTuple):
    """A certificate and its private key as PEM. `repr` does not show them."""

    certificate: bytes
    private_key: bytes

    def __repr__(self) -> str:
        return "IssuedCertificate([hidden])"


class CertificateAuthority:
    """A certificate authority: a private key and its certificate. It issues certificates and lists of revoked
    certificates.
    """

    def __init__(self, name: Name, days: int, *, now_s: float | None = None) -> None:
        """Generates a key and its certificate, which is valid for `days` from `now_s` (seconds since 1970) on.

        `name` has pairs such as ("CN", "example"); `now_s` None means the present. Raises LibcryptoError if
        OpenSSL is missing.
        """
        self._now_s = int(time.time() if now_s is None else now_s)
        self._key = GeneratedKey()
        self._name = _name(name)
        extensions = (
            _extension(BASIC_CONSTRAINTS, sequence(_TRUE), is_critical=True),
            _extension(_KEY_USAGE, _AUTHORITY_USAGE, is_critical=True),
        )
        self._certificate = self._signed(self._name, self._key.public_key, days, extensions)

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate as PEM."""
        return encode_block(CERTIFICATE, self._certificate)

    @property
    def private_key(self) -> bytes:
        """The authority's private key as PEM (PKCS #8)."""
        return encode_block(PRIVATE_KEY, self._key.private_key)

    def issue(
        self, name: Name, days: float, *, hosts: Sequence[str] = (), usages: Sequence[str] = (CLIENT_AUTH,)
    ) -> IssuedCertificate:
        """Returns a certificate with a new key. `name` has pairs such as ("CN", "alice").

        `hosts` are host names and IP addresses; `usages` are object identifiers of extended key usages. If `days` is
        negative, the certificate has expired already.
        """
        key = GeneratedKey()
        extensions = [
            _extension(_KEY_USAGE, _END_USAGE, is_critical=True),
            _extension(_EXTENDED_KEY_USAGE, sequence(*map(oid, usages))),
        ]
        if hosts:
            extensions.append(_extension(SUBJECT_ALTERNATIVE_NAME, sequence(*map(_general_name, hosts))))
        certificate = self._signed(_name(name), key.public_key, days, extensions)
        return IssuedCertificate(encode_block(CERTIFICATE, certificate), encode_block(PRIVATE_KEY, key.private_key))

    def revocation_list(self, serials: Sequence[int], days: int) -> bytes:
        """Returns a certificate revocation list with the serial numbers, valid for `days`, as PEM."""
        algorithm = sequence(oid(_ECDSA_WITH_SHA256))
        now, end = _time(self._now_s), _time(self._now_s + int(timedelta(days=days).total_seconds()))
        revoked = [sequence(*(sequence(integer(serial), now) for serial in serials))] if serials else []
        content = sequence(integer(1), algorithm, self._name, now, end, *revoked)
        signed = sequence(content, algorithm, bit_string(self._key.sign(content)))
        return encode_block("X509 CRL", signed)

    def _signed(self, subject: bytes, public_key: bytes, days: float, extensions: Sequence[bytes]) -> bytes:
        algorithm = sequence(oid(_ECDSA_WITH_SHA256))
        identifiers = (
            _extension(_SUBJECT_KEY_IDENTIFIER, element(OCTET_STRING, _key_identifier(public_key))),
            _extension(
                _AUTHORITY_KEY_IDENTIFIER,
                sequence(element(_KEY_IDENTIFIER_TAG, _key_identifier(self._key.public_key))),
            ),
        )
        end_s = self._now_s + int(timedelta(days=days).total_seconds())
        start_s = min(self._now_s - _BACKDATED_S, end_s - _BACKDATED_S)
        content = sequence(
            element(context(0), integer(2)),
            integer(secrets.randbits(8 * _SERIAL_BYTES - 1)),
            algorithm,
            self._name,
            sequence(_time(start_s), _time(end_s)),
            subject,
            public_key,
            element(context(3), sequence(*identifiers, *extensions)),
        )
        return sequence(content, algorithm, bit_string(self._key.sign(content)))


def _key_identifier(public_key: bytes) -> bytes:
    """Returns a short identifier of a public key, by which strict verifiers find the issuer (RFC 5280, 4.2.1.2)."""
    return hashlib.sha256(public_key).digest()[:20]


def _name(parts: Name) -> bytes:
    return sequence(
        *(set_of([sequence(oid(_NUMBERS[keyword]), element(UTF8_STRING, value.encode()))]) for keyword, value in parts)
    )


def _extension(kind: str, value: bytes, *, is_critical: bool = False) -> bytes:
    return sequence(oid(kind), *([_TRUE] if is_critical else []), element(OCTET_STRING, value))


def _general_name(host: str) -> bytes:
    try:
        return element(_ADDRESS_TAG, ipaddress.ip_address(host).packed)
    except ValueError:
        return element(_DNS_TAG, host.encode("idna"))


def _time(time_s: int) -> bytes:
    moment = time.gmtime(time_s)
    if moment.tm_year < _FIRST_GENERALIZED_YEAR:
        return element(UTC_TIME, time.strftime("%y%m%d%H%M%SZ", moment).encode())
    return element(GENERALIZED_TIME, time.strftime("%Y%m%d%H%M%SZ", moment).encode())
