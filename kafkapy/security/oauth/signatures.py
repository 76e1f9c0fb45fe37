"""Verification of signatures of JSON web tokens (RFC 7518) by OpenSSL's libcrypto, which is loaded at the first use."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

from kafkapy.errors import ConfigError
from kafkapy.security.tls import der
from kafkapy.security.tls.libcrypto import FunctionTypes, LibcryptoError, load

_PSS_PADDING = 6
_SALT_LENGTH_OF_DIGEST = -1
_SET_PADDING, _SET_SALT_LENGTH = 0x1001, 0x1002  # EVP_PKEY_ALG_CTRL + 1, + 2
_RSA = 6  # EVP_PKEY_RSA
_ALL_OPERATIONS = -1
_Pointer, _Size = ctypes.c_void_p, ctypes.c_size_t
_TYPES: FunctionTypes = {
    "d2i_PUBKEY": (_Pointer, [_Pointer, ctypes.POINTER(ctypes.c_char_p), ctypes.c_long]),
    "EVP_PKEY_free": (None, [_Pointer]),
    "EVP_MD_CTX_new": (_Pointer, []),
    "EVP_MD_CTX_free": (None, [_Pointer]),
    "EVP_get_digestbyname": (_Pointer, [ctypes.c_char_p]),
    "EVP_DigestVerifyInit": (ctypes.c_int, [_Pointer, ctypes.POINTER(_Pointer), _Pointer, _Pointer, _Pointer]),
    "EVP_DigestVerify": (ctypes.c_int, [_Pointer, ctypes.c_char_p, _Size, ctypes.c_char_p, _Size]),
    "EVP_PKEY_CTX_ctrl": (ctypes.c_int, [_Pointer, *[ctypes.c_int] * 4, _Pointer]),
    "ERR_clear_error": (None, []),
}


class Algorithm(NamedTuple):
    """A signature algorithm: the type of its key, its hash, and the curve of an EC key."""

    key_type: str  # "RSA" or "EC", as in a JSON web key
    hash_name: str
    is_pss: bool = False
    curve: str | None = None


ALGORITHMS = {
    **{f"RS{bits}": Algorithm("RSA", f"sha{bits}") for bits in (256, 384, 512)},
    **{f"PS{bits}": Algorithm("RSA", f"sha{bits}", is_pss=True) for bits in (256, 384, 512)},
    "ES256": Algorithm("EC", "sha256", curve="P-256"),
    "ES384": Algorithm("EC", "sha384", curve="P-384"),
    "ES512": Algorithm("EC", "sha512", curve="P-521"),
}


class PublicKey:
    """A public key of libcrypto, made from its DER form (SubjectPublicKeyInfo). Any thread may use it."""

    def __init__(self, der: bytes) -> None:
        """Reads the key from its DER form. Raises ValueError if libcrypto does not accept it."""
        library = libcrypto()
        data = ctypes.c_char_p(der)
        self._library = library
        self._key = library.d2i_PUBKEY(None, ctypes.byref(data), len(der))
        if not self._key:
            library.ERR_clear_error()
            raise ValueError("not a public key that libcrypto accepts")

    def __del__(self) -> None:
        if getattr(self, "_key", None):
            self._library.EVP_PKEY_free(self._key)

    def verify(self, algorithm: Algorithm, signed: bytes, signature: bytes) -> bool:
        """Returns True if `signature` is a signature of the bytes `signed` by the private key that belongs to this
        public key. An ECDSA signature is expected in DER form.
        """
        library = self._library
        context = library.EVP_MD_CTX_new()
        if not context:
            raise MemoryError
        try:
            digest = library.EVP_get_digestbyname(algorithm.hash_name.encode())
            key_context = ctypes.c_void_p()
            begun = library.EVP_DigestVerifyInit(context, ctypes.byref(key_context), digest, None, self._key)
            if begun != 1 or (algorithm.is_pss and not self._use_pss(key_context)):
                return False
            return bool(library.EVP_DigestVerify(context, signature, len(signature), signed, len(signed)) == 1)
        finally:
            library.EVP_MD_CTX_free(context)
            library.ERR_clear_error()

    def _use_pss(self, key_context: ctypes.c_void_p) -> bool:
        control = self._library.EVP_PKEY_CTX_ctrl
        settings = ((_SET_PADDING, _PSS_PADDING), (_SET_SALT_LENGTH, _SALT_LENGTH_OF_DIGEST))
        return all(control(key_context, _RSA, _ALL_OPERATIONS, command, value, None) > 0 for command, value in settings)


@cache
def libcrypto() -> ctypes.CDLL:
    """Returns libcrypto with the types of the functions used here. Raises ConfigError if it cannot be loaded."""
    try:
        return load(_TYPES)
    except LibcryptoError as error:
        raise ConfigError(f"the signatures of OAUTHBEARER tokens cannot be verified: {error}") from error


def ecdsa_der(signature: bytes) -> bytes:
    """Returns the DER form of an ECDSA signature, given as the concatenation of R and S (RFC 7518, 3.4)."""
    half = len(signature) // 2
    return der.sequence(_unsigned(signature[:half]), _unsigned(signature[half:]))


def _unsigned(number: bytes) -> bytes:
    return der.integer(int.from_bytes(number, "big"))


_RSA_IDENTIFIER = der.sequence(der.oid("1.2.840.113549.1.1.1"), der.element(der.NULL))
_EC_IDENTIFIER = der.oid("1.2.840.10045.2.1")
_CURVES = {  # name -> (object identifier, bytes of a coordinate)
    "P-256": (der.oid("1.2.840.10045.3.1.7"), 32),
    "P-384": (der.oid("1.3.132.0.34"), 48),
    "P-521": (der.oid("1.3.132.0.35"), 66),
}


def rsa_public_key(modulus: bytes, exponent: bytes) -> PublicKey:
    """Returns an RSA key; both numbers are big-endian. Raises ValueError if its size or exponent is not allowed."""
    if len(modulus.lstrip(b"\0")) < 256 or len(modulus) > 2048:
        raise ValueError("an RSA key must have 2048 to 16384 bits")
    if len(exponent) > 8 or int.from_bytes(exponent, "big") < 3:
        raise ValueError("the exponent of an RSA key must be from 3 to 2**64")
    numbers = der.sequence(_unsigned(modulus), _unsigned(exponent))
    return PublicKey(der.sequence(_RSA_IDENTIFIER, der.bit_string(numbers)))


def ec_public_key(curve: str, x: bytes, y: bytes) -> PublicKey:
    """Returns the EC key with the coordinates `x` and `y` on the curve P-256, P-384 or P-521.

    Raises ValueError for another curve, and for a point that is not on the curve.
    """
    if curve not in _CURVES:
        raise ValueError(f"the curve {curve} is not one of {', '.join(_CURVES)}")
    identifier, size = _CURVES[curve]
    if len(x) != size or len(y) != size:
        raise ValueError(f"a coordinate of {curve} has {size} bytes")
    return PublicKey(der.sequence(der.sequence(_EC_IDENTIFIER, identifier), der.bit_string(b"\x04" + x + y)))


def signature_size(algorithm: Algorithm) -> int | None:
    """Returns the size in bytes of an ECDSA signature in a token; None for RSA, where libcrypto checks the size."""
    return None if algorithm.curve is None else 2 * _CURVES[algorithm.curve][1]
