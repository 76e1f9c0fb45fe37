"""A writer of Java's key store format, for tests without Java."""

from __future__ import annotations

import hashlib
import os
import struct

from kafkapy.security.tls.der import NULL, OCTET_STRING, element, oid, sequence

_PHRASE = b"Mighty Aphrodite"
_DATE = struct.pack(">Q", 1_700_000_000_000)


def key_entry(alias: str, key: bytes, password: str, chain: list[bytes]) -> bytes:
    """Returns an entry with a private key (DER of PKCS #8) that `password` protects, and its certificates."""
    secret = password.encode("utf-16-be")
    salt = os.urandom(20)
    digest, stream = salt, b""
    while len(stream) < len(key):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    covered = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    content = salt + covered + hashlib.sha1(secret + key).digest()
    protected = sequence(sequence(oid("1.3.6.1.4.1.42.2.17.1.1"), element(NULL)), element(OCTET_STRING, content))
    head = struct.pack(">I", 1) + _text(alias) + _DATE + struct.pack(">I", len(protected)) + protected
    return head + struct.pack(">I", len(chain)) + b"".join(map(_certificate, chain))


def trusted_entry(alias: str, certificate: bytes) -> bytes:
    return struct.pack(">I", 2) + _text(alias) + _DATE + _certificate(certificate)


def jks_file(password: str, *entries: bytes) -> bytes:
    """Returns the content of a JKS key store with these entries, whose integrity `password` protects."""
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(password.encode("utf-16-be") + _PHRASE + body).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _certificate(der: bytes) -> bytes:
    return _text("X.509") + struct.pack(">I", len(der)) + der
