"""Signatures of JSON web tokens by a private key in PEM (RFC 7518): RS256 and ES256, by OpenSSL's libcrypto."""

from __future__ import annotations

import ctypes
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.security.oauth.signatures import libcrypto

ALGORITHMS = {"RS256": 6, "ES256": 408}  # -> the type of the key (EVP_PKEY_RSA, EVP_PKEY_EC)
_HASH = b"SHA256"
_MOST_SIGNATURE_BYTES = 2048
_COORDINATE_BYTES = 32


class SigningKey:
    """A private key of libcrypto. Any thread. Its representation shows nothing of the key."""

    def __init__(self, pem: bytes, passphrase: str | None, algorithm: str) -> None:
        """Raises ConfigError if the key cannot be read, or is not one for the algorithm."""
        self._library = library = _library()
        self._algorithm = algorithm
        memory = library.BIO_new_mem_buf(pem, len(pem))
        try:
            # An empty passphrase prevents libcrypto from asking for one at the terminal.
            self._key = library.PEM_read_bio_PrivateKey(memory, None, None, (passphrase or "").encode())
        finally:
            library.BIO_free(memory)
            library.ERR_clear_error()
        if not self._key:
            raise ConfigError("there is no private key in PEM that the passphrase opens")
        if library.EVP_PKEY_get_base_id(self._key) != ALGORITHMS[algorithm]:
            raise ConfigError(f"the private key is not one for {algorithm}")

    def __del__(self) -> None:
        if getattr(self, "_key", None):
            self._library.EVP_PKEY_free(self._key)

    def sign(self, content: bytes) -> bytes:
        """Returns the signature in the form of JSON web tokens."""
        library = self._library
        state = library.EVP_MD_CTX_new()
        try:
            signature = ctypes.create_string_buffer(_MOST_SIGNATURE_BYTES)
            length = ctypes.c_size_t(_MOST_SIGNATURE_BYTES)
            digest = library.EVP_get_digestbyname(_HASH)
            if (
                library.EVP_DigestSignInit(state, None, digest, None, self._key) != 1
                or library.EVP_DigestSign(state, signature, ctypes.byref(length), content, len(content)) != 1
            ):
                raise ConfigError(f"the private key cannot sign with {self._algorithm}")
        finally:
            library.EVP_MD_CTX_free(state)
            library.ERR_clear_error()
        made = signature.raw[: length.value]
        return made if self._algorithm == "RS256" else _both_numbers(made)


def _both_numbers(der: bytes) -> bytes:
    """Returns the two numbers of an ECDSA signature in DER form, in a row (RFC 7518, 3.4)."""
    numbers, pos = b"", 2
    for _ in range(2):
        size = der[pos + 1]
        numbers += der[pos + 2 : pos + 2 + size].lstrip(b"\0").rjust(_COORDINATE_BYTES, b"\0")
        pos += 2 + size
    return numbers


def _library() -> Any:
    library = libcrypto()
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    # OpenSSL 3 has renamed the function, and the old name is a macro.
    if not hasattr(library, "EVP_PKEY_get_base_id"):
        library.EVP_PKEY_get_base_id = library.EVP_PKEY_base_id
    for function, result, arguments in (
        ("BIO_new_mem_buf", pointer, [ctypes.c_char_p, ctypes.c_int]),
        ("BIO_free", ctypes.c_int, [pointer]),
        ("PEM_read_bio_PrivateKey", pointer, [pointer, pointer, pointer, ctypes.c_char_p]),
        ("EVP_PKEY_get_base_id", ctypes.c_int, [pointer]),
        ("EVP_DigestSignInit", ctypes.c_int, [pointer, pointer, pointer, pointer, pointer]),
        ("EVP_DigestSign", ctypes.c_int, [pointer, pointer, ctypes.POINTER(size), ctypes.c_char_p, size]),
    ):
        found = getattr(library, function)
        found.restype, found.argtypes = result, arguments
    return library
