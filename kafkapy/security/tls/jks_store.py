"""Java's key store format JKS: its integrity check and Sun's protection of private keys.

    magic FEEDFEED | version (1, 2) | number of entries | entries | SHA-1

The SHA-1 digest is computed from the password, the fixed text "Mighty Aphrodite" and all bytes before the digest. All
numbers are big-endian; texts have a length of two bytes and Java's modified UTF-8.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

from kafkapy.security.tls.der import NULL, OCTET_STRING, SEQUENCE, DerError, DerReader
from kafkapy.security.tls.key_store import KeyStore, PrivateKey, StoreEntry, StoreError
from kafkapy.security.tls.pem import PRIVATE_KEY, encode_block

JKS_MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"
_PHRASE = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_KEY_ENTRY = 1
_TRUSTED_ENTRY = 2
_X509 = "X.509"


def read_jks(data: bytes, store_password: str | None, key_password: str | None) -> KeyStore:
    """Returns the entries of a JKS file.

    If `store_password` is None, the integrity is not checked, as in Java. `key_password` decrypts the private keys; if
    it is None, the private keys are left out. Raises StoreError.
    """
    if len(data) < 12 + _DIGEST_BYTES or data[:4] != JKS_MAGIC:
        raise StoreError("the file is not a JKS key store")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if store_password is not None:
        expected = hashlib.sha1(_password_bytes(store_password) + _PHRASE + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise StoreError("the password of the store is wrong, or the file is damaged")
    return _Reader(body, key_password).read()


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """A reader of the fields of a JKS file. Raises StoreError when they end too early."""

    def __init__(self, body: bytes, key_password: str | None) -> None:
        self._body = body
        self._position = 4
        self._key_password = key_password
        self._version = 0

    def read(self) -> KeyStore:
        self._version = self._number()
        if self._version not in (1, 2):
            raise StoreError(f"JKS version {self._version} is unknown")
        entries = [self._entry() for _ in range(self._count())]
        if self._position != len(self._body):
            raise StoreError("the JKS file has bytes after its last entry")
        return KeyStore(tuple(entry for entry in entries if entry is not None))

    def _entry(self) -> StoreEntry | None:
        kind = self._number()
        alias = self._text()
        self._bytes(8)  # the date of creation
        if kind == _TRUSTED_ENTRY:
            return StoreEntry(alias, (self._certificate(),))
        if kind != _KEY_ENTRY:
            raise StoreError(f"the JKS file has an entry of the unknown kind {kind}")
        protected = self._bytes(self._number())
        chain = tuple(self._certificate() for _ in range(self._count()))
        if self._key_password is None:
            return StoreEntry(alias, chain) if chain else None
        return StoreEntry(alias, chain, PrivateKey(_open_key(protected, self._key_password, alias)))

    def _certificate(self) -> bytes:
        kind = self._text() if self._version == 2 else _X509
        if kind not in (_X509, "X509"):
            raise StoreError(f"the JKS file has a certificate of the type {kind}; expected is {_X509}")
        return self._bytes(self._number())

    def _bytes(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._body):
            raise StoreError("the JKS file ends within an entry")
        found = self._body[self._position : end]
        self._position = end
        return found

    def _number(self) -> int:
        number: int = struct.unpack(">I", self._bytes(4))[0]
        return number

    def _count(self) -> int:
        """Returns the next number, which says how many elements follow. Raises StoreError if this number is larger than
        the number of bytes that are left, because each element has at least one byte."""
        count = self._number()
        if count > len(self._body) - self._position:
            raise StoreError("the JKS file ends within an entry")
        return count

    def _text(self) -> str:
        length = int.from_bytes(self._bytes(2), "big")
        return self._bytes(length).replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")


def _open_key(protected: bytes, password: str, alias: str) -> bytes:
    """Returns a private key in PEM, given its EncryptedPrivateKeyInfo.

    Sun's protection combines the key with a chain of SHA-1 digests of password and salt by XOR, and appends a digest of
    password and key. Raises StoreError, which names the `alias` of the entry.
    """
    try:
        info = DerReader(protected).enter(SEQUENCE)
        algorithm = info.enter(SEQUENCE)
        kind = algorithm.oid()
        algorithm.skip(NULL)
        content = info.read(OCTET_STRING)
    except DerError as error:
        raise StoreError(f"the private key of {alias} is damaged: {error}") from error
    if kind != _KEY_PROTECTOR:
        raise StoreError(f"the private key of {alias} is protected by an unknown algorithm ({kind})")
    if len(content) < 2 * _DIGEST_BYTES:
        raise StoreError(f"the private key of {alias} is damaged")
    secret = _password_bytes(password)
    digest, covered, check = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    stream = bytearray()
    while len(stream) < len(covered):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    length = len(covered)
    key = (int.from_bytes(covered, "big") ^ int.from_bytes(stream[:length], "big")).to_bytes(length, "big")
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise StoreError(f"the password of the private key of {alias} is wrong")
    return encode_block(PRIVATE_KEY, key)
