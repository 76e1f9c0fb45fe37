"""Signatures of JSON web tokens by a private key in PEM (RFC 7518): RS256 and ES256, by OpenSSL's libcrypto."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.security.tls.libcrypto import FunctionTypes, LibcryptoError, load, sign_sha256

# Algorithm -> the type of its key (EVP_PKEY_RSA, EVP_PKEY_EC).
ALGORITHMS = {"RS256": 6, "ES256": 408}
_COORDINATE_BYTES = 32
_Pointer = ctypes.c_void_p
_TYPES: FunctionTypes = {
    "BIO_new_mem_buf": (_Pointer, [ctypes.c_char_p, ctypes.c_int]),
    "BIO_free": (ctypes.c_int, [_Pointer]),
    "PEM_read_bio_PrivateKey": (_Pointer, [_Pointer, _Pointer, _Pointer, ctypes.c_char_p]),
    "EVP_PKEY_free": (None, [_Pointer]),
    "ERR_clear_error": (None, []),
}


class SigningKey:
    """A private key of libcrypto. Any thread may use the object. Its representation shows nothing of the key."""

    def __init__(self, pem: bytes, passphrase: str | None, algorithm: str) -> None:
        """Reads the key in `pem`, which `passphrase` decrypts if it is encrypted; `algorithm` is RS256 or ES256.

        Raises ConfigError if the key cannot be read, or is not one for the algorithm.
        """
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
        try:
            signature = sign_sha256(self._key, content)
        except LibcryptoError as error:
            raise ConfigError(f"the private key cannot sign with {self._algorithm}") from error
        return signature if self._algorithm == "RS256" else _both_numbers(signature)


def _both_numbers(der: bytes) -> bytes:
    """Returns the concatenation of R and S, given an ECDSA signature in DER form (RFC 7518, 3.4)."""
    numbers, pos = b"", 2
    for _ in range(2):
        size = der[pos + 1]
        numbers += der[pos + 2 : pos + 2 + size].lstrip(b"\0").rjust(_COORDINATE_BYTES, b"\0")
        pos += 2 + size
    return numbers


@cache
def _library() -> Any:
    try:
        library: Any = load(_TYPES)
    except LibcryptoError as error:
        raise ConfigError(f"tokens cannot be signed: {error}") from error
    # OpenSSL 3 has renamed the function, and the old name is a macro.
    if not hasattr(library, "EVP_PKEY_get_base_id"):
        library.EVP_PKEY_get_base_id = library.EVP_PKEY_base_id
    library.EVP_PKEY_get_base_id.restype, library.EVP_PKEY_get_base_id.argtypes = ctypes.c_int, [_Pointer]
    return library
