"""Key stores and trust stores in PKCS #12 (RFC 7292), as keytool and OpenSSL write them.

A trusted certificate need not have the attribute by which Java marks it as trusted.

PFX { 3, authenticated safe: contents, each plain or encrypted; MAC }      contents -> bags: key, certificate
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TypeVar

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.certificate import Certificate, in_chain_order, parse_certificate
from kafkapy.security.tls.der import BMP_STRING, INTEGER_TAG, NULL, OCTET_STRING, SEQUENCE, SET, DerError, DerReader
from kafkapy.security.tls.der import context as context_tag
from kafkapy.security.tls.key_store import KeyStore, PrivateKey, StoreEntry, StoreError
from kafkapy.security.tls.libcrypto import LibcryptoError, decrypt
from kafkapy.security.tls.pem import PRIVATE_KEY, encode_block

_DATA = "1.2.840.113549.1.7.1"
_ENCRYPTED_DATA = "1.2.840.113549.1.7.6"
_KEY_BAG = "1.2.840.113549.1.12.10.1.1"
_SHROUDED_KEY_BAG = "1.2.840.113549.1.12.10.1.2"
_CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3"
_SAFE_CONTENTS_BAG = "1.2.840.113549.1.12.10.1.6"
_X509_CERTIFICATE = "1.2.840.113549.1.9.22.1"
_FRIENDLY_NAME = "1.2.840.113549.1.9.20"
_LOCAL_KEY_ID = "1.2.840.113549.1.9.21"
_PBES2 = "1.2.840.113549.1.5.13"
_PBKDF2 = "1.2.840.113549.1.5.12"
_PBMAC1 = "1.2.840.113549.1.5.14"

# Object identifier -> (the names of the cipher in OpenSSL, bytes of the key, bytes of the IV): PKCS #12's own.
_OWN_CIPHERS = {
    "1.2.840.113549.1.12.1.3": (("DES-EDE3-CBC",), 24, 8),
    "1.2.840.113549.1.12.1.5": (("RC2-CBC",), 16, 8),
    "1.2.840.113549.1.12.1.6": (("RC2-40-CBC",), 5, 8),
}
# The same for the ciphers of PBES2, whose IV is a parameter.
_CIPHERS = {
    "2.16.840.1.101.3.4.1.2": (("AES-128-CBC",), 16),
    "2.16.840.1.101.3.4.1.22": (("AES-192-CBC",), 24),
    "2.16.840.1.101.3.4.1.42": (("AES-256-CBC",), 32),
    "1.2.840.113549.3.7": (("DES-EDE3-CBC",), 24),
}
_DIGESTS = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.4": "sha224",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
_HMAC_DIGESTS = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
}
_T = TypeVar("_T")
_KEY_PURPOSE, _IV_PURPOSE, _MAC_PURPOSE = 1, 2, 3
# Java's limit. keytool uses 10,000 iterations, OpenSSL 2,048.
_MAXIMUM_ITERATIONS = 5_000_000
_MAXIMUM_DEPTH = 4


class _Bag(NamedTuple):
    """A key or a certificate of the file with its attributes; a key and its certificate have the same `key_id`. Exactly
    one of the last three fields is set: the certificate, an encrypted key (`protected`, an EncryptedPrivateKeyInfo), or
    a key that is not encrypted (`plain_key`, a PrivateKeyInfo).
    """

    alias: str | None
    key_id: bytes | None
    certificate: Certificate | None = None
    protected: bytes | None = None
    plain_key: bytes | None = None


def read_pkcs12(data: bytes, store_password: str | None, key_password: str | None) -> KeyStore:
    """Returns the entries of a PKCS #12 file: first the entries with a private key, then the other certificates.

    If `store_password` is None, only a file whose certificates are not encrypted can be read, and its integrity is not
    checked. `key_password` decrypts the private keys; if it is None, they are left out. Raises StoreError.
    """
    try:
        bags = _bags(data, store_password)
        return KeyStore(tuple(_entries(bags, key_password)))
    except DerError as error:
        raise StoreError(f"the PKCS #12 file is damaged: {error}") from error
    except LibcryptoError as error:
        raise StoreError(f"{error}; write the store again by `keytool -importkeystore`") from error


def _bags(data: bytes, password: str | None) -> list[_Bag]:
    file = DerReader(data).enter(SEQUENCE)
    if file.integer() != 3:
        raise DerError("its version is not 3")
    outer = file.enter(SEQUENCE)
    if outer.oid() != _DATA:
        raise DerError("it is signed by a public key, which is not supported")
    safe = outer.enter(context_tag(0)).read(OCTET_STRING)
    if password is not None and not file.is_at_end:
        _check_mac(file.enter(SEQUENCE), safe, password)
    bags: list[_Bag] = []
    contents = DerReader(safe).enter(SEQUENCE)
    while not contents.is_at_end:
        content = contents.enter(SEQUENCE)
        kind = content.oid()
        if kind == _DATA:
            bags += _safe_contents(content.enter(context_tag(0)).read(OCTET_STRING), 0)
        elif kind == _ENCRYPTED_DATA:
            bags += _safe_contents(_encrypted_data(content.enter(context_tag(0)), password), 0)
        else:
            raise DerError(f"its content is of the unknown type {kind}")
    return bags


def _encrypted_data(reader: DerReader, password: str | None) -> bytes:
    if password is None:
        raise StoreError("the certificates of the store are encrypted; set the password of the store")
    encrypted = reader.enter(SEQUENCE)
    encrypted.integer()
    info = encrypted.enter(SEQUENCE)
    info.oid()
    algorithm = info.enter(SEQUENCE)
    if info.tag() == context_tag(0):  # some programs divide the content into several strings
        parts = info.enter(context_tag(0))
        content = b""
        while not parts.is_at_end:
            content += parts.read(OCTET_STRING)
    else:
        content = info.read(0x80)
    return _decrypt(algorithm, content, password)


def _safe_contents(content: bytes, depth: int) -> list[_Bag]:
    if depth > _MAXIMUM_DEPTH:
        raise DerError("its contents are nested too deeply")
    bags: list[_Bag] = []
    reader = DerReader(content).enter(SEQUENCE)
    while not reader.is_at_end:
        bag = reader.enter(SEQUENCE)
        kind = bag.oid()
        value = bag.enter(context_tag(0))
        alias, key_id = _attributes(bag)
        if kind == _CERTIFICATE_BAG:
            certificate = value.enter(SEQUENCE)
            if certificate.oid() == _X509_CERTIFICATE:
                der = certificate.enter(context_tag(0)).read(OCTET_STRING)
                bags.append(_Bag(alias, key_id, certificate=parse_certificate(der)))
        elif kind == _SHROUDED_KEY_BAG:
            bags.append(_Bag(alias, key_id, protected=value.element()))
        elif kind == _KEY_BAG:
            bags.append(_Bag(alias, key_id, plain_key=value.element()))
        elif kind == _SAFE_CONTENTS_BAG:
            bags += _safe_contents(value.element(), depth + 1)
    return bags


def _attributes(bag: DerReader) -> tuple[str | None, bytes | None]:
    alias: str | None = None
    key_id: bytes | None = None
    if bag.tag() == SET:
        attributes = bag.enter(SET)
        while not attributes.is_at_end:
            attribute = attributes.enter(SEQUENCE)
            kind = attribute.oid()
            values = attribute.enter(SET)
            if kind == _FRIENDLY_NAME:
                alias = values.read(BMP_STRING).decode("utf-16-be", "replace")
            elif kind == _LOCAL_KEY_ID:
                key_id = values.read(OCTET_STRING)
    return alias, key_id


def _entries(bags: list[_Bag], key_password: str | None) -> list[StoreEntry]:
    certificates = [bag for bag in bags if bag.certificate is not None]
    entries: list[StoreEntry] = []
    used: set[int] = set()
    for number, bag in enumerate((bag for bag in bags if bag.certificate is None), 1):
        alias = bag.alias or str(number)
        leaf = next((each for each in certificates if bag.key_id is not None and each.key_id == bag.key_id), None)
        if leaf is None:  # a store without identifiers has one key, whose certificate comes first
            leaf = next((each for each in certificates if each.key_id is None and id(each) not in used), None)
        if leaf is None or leaf.certificate is None:
            continue
        others = [each.certificate for each in certificates if each is not leaf and each.certificate is not None]
        chain = in_chain_order(leaf.certificate, others)
        in_chain = {each.der for each in chain}
        used.update(id(each) for each in certificates if each.certificate and each.certificate.der in in_chain)
        ders = tuple(each.der for each in chain)
        key = _private_key(bag, key_password, alias)
        entries.append(StoreEntry(alias, ders, key))
    for number, bag in enumerate(certificates, 1):
        if id(bag) not in used and bag.certificate is not None:
            entries.append(StoreEntry(bag.alias or str(number), (bag.certificate.der,)))
    return entries


def _private_key(bag: _Bag, password: str | None, alias: str) -> PrivateKey | None:
    if bag.plain_key is not None:
        return PrivateKey(encode_block(PRIVATE_KEY, bag.plain_key))
    if password is None or bag.protected is None:
        return None
    info = DerReader(bag.protected).enter(SEQUENCE)
    algorithm = info.enter(SEQUENCE)
    try:
        key = _decrypt(algorithm, info.read(OCTET_STRING), password)
        return PrivateKey(encode_block(PRIVATE_KEY, DerReader(key).element()))
    except (StoreError, DerError):
        raise StoreError(f"the password of the private key of {alias} is wrong") from None


# -- passwords


def _check_mac(mac: DerReader, content: bytes, password: str) -> None:
    digest_info = mac.enter(SEQUENCE)
    algorithm = digest_info.enter(SEQUENCE)
    kind = algorithm.oid()
    expected = digest_info.read(OCTET_STRING)
    if kind == _PBMAC1:
        parameters = algorithm.enter(SEQUENCE)
        key = _pbkdf2(parameters.enter(SEQUENCE), password, None)
        digest = _known(_HMAC_DIGESTS, parameters.enter(SEQUENCE).oid(), "integrity check")
    else:
        digest = _known(_DIGESTS, kind, "integrity check")
        salt = mac.read(OCTET_STRING)
        iterations = 1 if mac.is_at_end else _iterations(mac)
        key = _derive(digest, _MAC_PURPOSE, password, salt, iterations, hashlib.new(digest).digest_size)
    if not hmac.compare_digest(hmac.digest(key, content, digest), expected):
        raise StoreError("the password of the store is wrong, or the file is damaged")


def _decrypt(algorithm: DerReader, content: bytes, password: str) -> bytes:
    """Returns the plain text of `content`. `algorithm` reads the content of the AlgorithmIdentifier, which names the
    cipher and its parameters. Raises StoreError if the password is wrong or the algorithm is not supported.
    """
    kind = algorithm.oid()
    if kind == _PBES2:
        parameters = algorithm.enter(SEQUENCE)
        derivation, encryption = parameters.enter(SEQUENCE), parameters.enter(SEQUENCE)
        names, key_bytes = _known(_CIPHERS, encryption.oid(), "cipher")
        key = _pbkdf2(derivation, password, key_bytes)
        iv = encryption.read(OCTET_STRING)
        iv_bytes = 8 if key_bytes == 24 and names[0].startswith("DES") else 16
        if len(iv) != iv_bytes:
            raise DerError("an initialization vector has the wrong size")
    else:
        names, key_bytes, iv_bytes = _known(_OWN_CIPHERS, kind, "cipher")
        parameters = algorithm.enter(SEQUENCE)
        salt = parameters.read(OCTET_STRING)
        iterations = _iterations(parameters)
        key = _derive("sha1", _KEY_PURPOSE, password, salt, iterations, key_bytes)
        iv = _derive("sha1", _IV_PURPOSE, password, salt, iterations, iv_bytes)
    try:
        return decrypt(names, key, iv, content)
    except ValueError:
        raise StoreError("the password of the store is wrong, or the file is damaged") from None


def _pbkdf2(derivation: DerReader, password: str, key_bytes: int | None) -> bytes:
    if derivation.oid() != _PBKDF2:
        raise DerError("a key is derived by an unknown function; PBKDF2 is known")
    parameters = derivation.enter(SEQUENCE)
    salt = parameters.read(OCTET_STRING)
    iterations = _iterations(parameters)
    length = parameters.integer() if parameters.tag() == INTEGER_TAG else key_bytes
    if length is None or not 0 < length <= 1024 or (key_bytes is not None and length != key_bytes):
        raise DerError("a derived key has the wrong length")
    digest = "sha1"
    if parameters.tag() == SEQUENCE:
        function = parameters.enter(SEQUENCE)
        digest = _known(_HMAC_DIGESTS, function.oid(), "function of PBKDF2")
        function.skip(NULL)
    return hashlib.pbkdf2_hmac(digest, password.encode("utf-8", "surrogatepass"), salt, iterations, length)


def _iterations(reader: DerReader) -> int:
    iterations = reader.integer()
    if not 1 <= iterations <= _MAXIMUM_ITERATIONS:
        raise DerError(f"a number of iterations is {iterations}")
    return iterations


def _known(table: dict[str, _T], kind: str, what: str) -> _T:
    found = table.get(kind)
    if found is None:
        raise StoreError(f"the PKCS #12 file has a {what} that is not supported ({kind})")
    return found


def _derive(digest: str, purpose: int, password: str, salt: bytes, iterations: int, length: int) -> bytes:
    """Returns `length` bytes that PKCS #12 derives from a password (RFC 7292, appendix B.2).

    `digest` is hashlib's name of the hash, and `purpose` the RFC's identifier byte: 1 key, 2 initial vector, 3 MAC key.
    """
    empty = hashlib.new(digest)
    block, size = empty.block_size, empty.digest_size
    secret = password.encode("utf-16-be", "surrogatepass") + b"\0\0"
    diversifier = bytes((purpose,)) * block
    mixed = _repeated(salt, block) + _repeated(secret, block)
    derived = b""
    while True:
        part = hashlib.new(digest, diversifier + mixed).digest()
        for _ in range(iterations - 1):
            part = hashlib.new(digest, part).digest()
        derived += part
        if len(derived) >= length:
            return derived[:length]
        addend = int.from_bytes((part * (block // size + 1))[:block], "big") + 1
        mixed = b"".join(
            ((int.from_bytes(mixed[start : start + block], "big") + addend) % (1 << 8 * block)).to_bytes(block, "big")
            for start in range(0, len(mixed), block)
        )


def _repeated(content: bytes, block: int) -> bytes:
    """Returns `content`, repeated and then cut off: the length of the result is the length of `content` rounded up to a
    multiple of `block`. Returns b"" for b"".
    """
    length = -(-len(content) // block) * block
    return (content * (length // len(content) + 1))[:length] if content else b""
