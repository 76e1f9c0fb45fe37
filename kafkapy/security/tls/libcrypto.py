"""Functions of OpenSSL's libcrypto that Python's standard library lacks: ciphers, and the generation and use of keys.

The library is found by dlopen at the first use: kafkapy is built and runs without OpenSSL's headers, with the versions
1.1.1 to 3. [Why](../../../docs/decisions/stores-without-a-library.md).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

_NAMES = ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so")
_Pointer = ctypes.c_void_p
_Bytes = ctypes.c_char_p
_Int = ctypes.c_int
_EVP_PKEY_EC = 408
_CURVE = b"ec_paramgen_curve"
_MAXIMUM_SIGNATURE_BYTES = 2048

# Function -> (type of the result, types of the arguments).
FunctionTypes = Mapping[str, tuple[Any, list[Any]]]
_TYPES: FunctionTypes = {
    "EVP_CIPHER_CTX_new": (_Pointer, []),
    "EVP_CIPHER_CTX_free": (None, [_Pointer]),
    "EVP_get_cipherbyname": (_Pointer, [_Bytes]),
    "EVP_DecryptInit_ex": (_Int, [_Pointer, _Pointer, _Pointer, _Bytes, _Bytes]),
    "EVP_DecryptUpdate": (_Int, [_Pointer, _Pointer, ctypes.POINTER(_Int), _Bytes, _Int]),
    "EVP_DecryptFinal_ex": (_Int, [_Pointer, _Pointer, ctypes.POINTER(_Int)]),
    "EVP_PKEY_CTX_new_id": (_Pointer, [_Int, _Pointer]),
    "EVP_PKEY_CTX_free": (None, [_Pointer]),
    "EVP_PKEY_keygen_init": (_Int, [_Pointer]),
    "EVP_PKEY_CTX_ctrl_str": (_Int, [_Pointer, _Bytes, _Bytes]),
    "EVP_PKEY_keygen": (_Int, [_Pointer, ctypes.POINTER(_Pointer)]),
    "EVP_PKEY_free": (None, [_Pointer]),
    "EVP_PKEY2PKCS8": (_Pointer, [_Pointer]),
    "i2d_PKCS8_PRIV_KEY_INFO": (_Int, [_Pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_ubyte))]),
    "PKCS8_PRIV_KEY_INFO_free": (None, [_Pointer]),
    "i2d_PUBKEY": (_Int, [_Pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_ubyte))]),
    "EVP_MD_CTX_new": (_Pointer, []),
    "EVP_MD_CTX_free": (None, [_Pointer]),
    "EVP_get_digestbyname": (_Pointer, [_Bytes]),
    "EVP_DigestSignInit": (_Int, [_Pointer, _Pointer, _Pointer, _Pointer, _Pointer]),
    "EVP_DigestSign": (_Int, [_Pointer, _Pointer, ctypes.POINTER(ctypes.c_size_t), _Bytes, ctypes.c_size_t]),
    "ERR_clear_error": (None, []),
}


class LibcryptoError(Exception):
    """A call of libcrypto that failed, or a library that is missing."""


def load(types: FunctionTypes) -> ctypes.CDLL:
    """Returns a new handle of libcrypto. Raises LibcryptoError if the library is missing.

    `types` maps the name of each function that is called to its types: (result, arguments), as ctypes needs them.
    """
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, (result, arguments) in types.items():
            loaded = getattr(library, function)
            loaded.restype = result
            loaded.argtypes = arguments
        return library
    raise LibcryptoError(f"OpenSSL's library is missing ({', '.join(_NAMES)}); install libssl3 or openssl-libs")


def _candidates() -> Iterator[str]:
    yield from _NAMES
    found = ctypes.util.find_library("crypto")
    if found:
        yield found


@cache
def _library() -> ctypes.CDLL:
    return load(_TYPES)


@cache
def _legacy_fetch() -> Callable[[bytes], int | None]:
    """Returns a function whose argument is OpenSSL's name of a cipher. It returns a pointer to the cipher of OpenSSL
    3's legacy provider, or None if the provider does not have that cipher.

    The provider is loaded into a library context of its own.
    """
    library = _library()
    try:
        fetch, new_context, load = library.EVP_CIPHER_fetch, library.OSSL_LIB_CTX_new, library.OSSL_PROVIDER_load
    except AttributeError:  # OpenSSL 1.1.1 has no providers
        return lambda name: None
    fetch.restype, fetch.argtypes = _Pointer, [_Pointer, _Bytes, _Bytes]
    new_context.restype, new_context.argtypes = _Pointer, []
    load.restype, load.argtypes = _Pointer, [_Pointer, _Bytes]
    context = new_context()
    loaded = load(context, b"legacy")
    library.ERR_clear_error()
    return lambda name: fetch(context, name, None) if loaded else None


def decrypt(cipher_names: Sequence[str], key: bytes, iv: bytes, content: bytes) -> bytes:
    """Returns the plain text of `content`, in CBC with the usual padding.

    `cipher_names` are OpenSSL's names of one cipher; the first that the library has is used. Raises LibcryptoError if
    the library has none of them, and ValueError if the key or the padding is wrong.
    """
    library = _library()
    names = [name.encode() for name in cipher_names]
    cipher = next(filter(None, map(library.EVP_get_cipherbyname, names)), None)
    state = library.EVP_CIPHER_CTX_new()
    try:
        if cipher is None or library.EVP_DecryptInit_ex(state, cipher, None, key, iv) != 1:
            cipher = next(filter(None, map(_legacy_fetch(), names)), None)
            if cipher is None or library.EVP_DecryptInit_ex(state, cipher, None, key, iv) != 1:
                raise LibcryptoError(f"the OpenSSL of this machine does not have the cipher {cipher_names[0]}")
        plain = ctypes.create_string_buffer(len(content) + 64)
        written, last = _Int(), _Int()
        address = ctypes.addressof(plain)
        if (
            library.EVP_DecryptUpdate(state, address, ctypes.byref(written), content, len(content)) != 1
            or library.EVP_DecryptFinal_ex(state, address + written.value, ctypes.byref(last)) != 1
        ):
            raise ValueError("the password is wrong, or the data are damaged")
        return plain.raw[: written.value + last.value]
    finally:
        library.EVP_CIPHER_CTX_free(state)
        library.ERR_clear_error()


class GeneratedKey:
    """A new private key on an elliptic curve. Its representation shows nothing of the key."""

    def __init__(self, curve: str = "P-256") -> None:
        """Generates the key. Raises LibcryptoError if libcrypto is missing or does not know the curve."""
        self._library = library = _library()
        key = _Pointer()
        parameters = library.EVP_PKEY_CTX_new_id(_EVP_PKEY_EC, None)
        try:
            if (
                library.EVP_PKEY_keygen_init(parameters) != 1
                or library.EVP_PKEY_CTX_ctrl_str(parameters, _CURVE, curve.encode()) != 1
                or library.EVP_PKEY_keygen(parameters, ctypes.byref(key)) != 1
            ):
                raise LibcryptoError(f"OpenSSL cannot generate a key on the curve {curve}")
        finally:
            library.EVP_PKEY_CTX_free(parameters)
        self._key = key

    def __del__(self) -> None:
        key = getattr(self, "_key", None)
        if key is not None:
            self._library.EVP_PKEY_free(key)

    @property
    def private_key(self) -> bytes:
        """The private key as DER of PKCS #8."""
        info = self._library.EVP_PKEY2PKCS8(self._key)
        try:
            return _encoded(self._library.i2d_PKCS8_PRIV_KEY_INFO, info)
        finally:
            self._library.PKCS8_PRIV_KEY_INFO_free(info)

    @property
    def public_key(self) -> bytes:
        """The public key as DER of a SubjectPublicKeyInfo."""
        return _encoded(self._library.i2d_PUBKEY, self._key)

    def sign(self, content: bytes) -> bytes:
        """Returns the signature, ECDSA with SHA-256, in DER."""
        return sign_sha256(self._key, content)


def sign_sha256(key: Any, content: bytes) -> bytes:
    """Returns the signature over the SHA-256 hash of `content`; a signature by an EC key is in DER.

    `key` is the private key, an `EVP_PKEY *` of libcrypto. Raises LibcryptoError if the key cannot sign.
    """
    library = _library()
    state = library.EVP_MD_CTX_new()
    try:
        signature = ctypes.create_string_buffer(_MAXIMUM_SIGNATURE_BYTES)
        length = ctypes.c_size_t(_MAXIMUM_SIGNATURE_BYTES)
        digest = library.EVP_get_digestbyname(b"SHA256")
        address = ctypes.addressof(signature)
        if (
            library.EVP_DigestSignInit(state, None, digest, None, key) != 1
            or library.EVP_DigestSign(state, address, ctypes.byref(length), content, len(content)) != 1
        ):
            raise LibcryptoError("OpenSSL cannot sign with the key")
        return signature.raw[: length.value]
    finally:
        library.EVP_MD_CTX_free(state)
        library.ERR_clear_error()


def _encoded(encode: Callable[..., int], value: Any) -> bytes:
    """Returns the DER that one of OpenSSL's i2d functions writes for the value."""
    length = encode(value, None)
    if length <= 0:
        raise LibcryptoError("OpenSSL cannot encode the key")
    content = (ctypes.c_ubyte * length)()
    end = ctypes.cast(content, ctypes.POINTER(ctypes.c_ubyte))
    encode(value, ctypes.byref(end))
    return bytes(content)
