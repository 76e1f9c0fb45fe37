"""Functions of MIT Kerberos's GSSAPI library, loaded by dlopen at the first use: kafkapy is built without it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

from kafkapy.errors import ConfigError

_LIBRARY = "libgssapi_krb5.so.2"
_KERBEROS_LIBRARY = "libkrb5.so.3"
_INITIATE, _ACCEPT = 1, 2  # GSS_C_INITIATE, GSS_C_ACCEPT
# Flags of a context: mutual authentication, detection of reordered messages, and signed messages.
_MUTUAL, _SEQUENCE, _INTEGRITY = 2, 8, 32
_INDEFINITE = 0xFFFFFFFF
_CONTINUE_NEEDED = 1
_ERROR_MASK = 0xFFFF0000
_MECHANISM_CODE, _GSS_CODE = 2, 1
_KERBEROS_ERRORS = -1765328384  # the base of the codes of RFC 4120 among MIT's error codes
# Kerberos errors after which a client may retry: the ticket or the client is not valid yet, or the request is a replay.
_RETRIABLE = frozenset({21, 33, 34})
_KERBEROS = bytes.fromhex("2a864886f712010202")  # the mechanism 1.2.840.113554.1.2.2
_KERBEROS_PRINCIPAL = bytes.fromhex("2a864886f71201020201")  # the name type 1.2.840.113554.1.2.2.1
_HOST_BASED_SERVICE = bytes.fromhex("2a864886f71201020104")  # the name type 1.2.840.113554.1.2.1.4


# The only security layer (RFC 4752) that brokers offer: no protection of the data after the authentication.
NO_LAYER = 1


class GssError(Exception):
    """A failed call of the library. The text is the library's."""

    def __init__(self, text: str, *, is_retriable: bool = False) -> None:
        super().__init__(text)
        self.is_retriable = is_retriable


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", ctypes.c_void_p))


class _ObjectIdentifier(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("elements", ctypes.c_char_p))


class _ObjectIdentifierSet(ctypes.Structure):
    _fields_ = (("count", ctypes.c_size_t), ("elements", ctypes.POINTER(_ObjectIdentifier)))


class _StoreElement(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _Store(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_StoreElement)))


_Handle = ctypes.c_void_p
_Minor = ctypes.POINTER(ctypes.c_uint32)
_SIGNATURES: dict[str, list[Any]] = {
    "gss_import_name": [_Minor, ctypes.POINTER(_Buffer), ctypes.POINTER(_ObjectIdentifier), ctypes.POINTER(_Handle)],
    "gss_release_name": [_Minor, ctypes.POINTER(_Handle)],
    "gss_display_name": [_Minor, _Handle, ctypes.POINTER(_Buffer), ctypes.c_void_p],
    "gss_acquire_cred_from": [
        _Minor, _Handle, ctypes.c_uint32, ctypes.POINTER(_ObjectIdentifierSet), ctypes.c_int, ctypes.POINTER(_Store),
        ctypes.POINTER(_Handle), ctypes.c_void_p, ctypes.c_void_p,
    ],
    "gss_release_cred": [_Minor, ctypes.POINTER(_Handle)],
    "gss_accept_sec_context": [
        _Minor, ctypes.POINTER(_Handle), _Handle, ctypes.POINTER(_Buffer), ctypes.c_void_p, ctypes.POINTER(_Handle),
        ctypes.c_void_p, ctypes.POINTER(_Buffer), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ],
    "gss_init_sec_context": [
        _Minor, _Handle, ctypes.POINTER(_Handle), _Handle, ctypes.POINTER(_ObjectIdentifier), ctypes.c_uint32,
        ctypes.c_uint32, ctypes.c_void_p, ctypes.POINTER(_Buffer), ctypes.c_void_p, ctypes.POINTER(_Buffer),
        ctypes.c_void_p, ctypes.c_void_p,
    ],
    "gss_delete_sec_context": [_Minor, ctypes.POINTER(_Handle), ctypes.c_void_p],
    "gss_wrap": [
        _Minor, _Handle, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(_Buffer), ctypes.c_void_p,
        ctypes.POINTER(_Buffer),
    ],
    "gss_unwrap": [
        _Minor, _Handle, ctypes.POINTER(_Buffer), ctypes.POINTER(_Buffer), ctypes.c_void_p, ctypes.c_void_p,
    ],
    "gss_release_buffer": [_Minor, ctypes.POINTER(_Buffer)],
    "gss_display_status": [
        _Minor, ctypes.c_uint32, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32),
        ctypes.POINTER(_Buffer),
    ],
}  # fmt: skip


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise ConfigError(
            f"The mechanism GSSAPI needs MIT Kerberos's {_LIBRARY}, which cannot be loaded ({error}); install "
            "libgssapi-krb5-2 or krb5-libs"
        ) from error
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_uint32, arguments
    return library


def _call(name: str, *arguments: Any) -> int:
    """Calls a function of the library and returns its major status.

    `arguments` are the arguments that follow the pointer to the minor status. Raises GssError if the major status is an
    error.
    """
    minor = ctypes.c_uint32()
    major: int = getattr(_library(), name)(ctypes.byref(minor), *arguments)
    if major & _ERROR_MASK:
        code = ctypes.c_int32(minor.value).value - _KERBEROS_ERRORS
        text = f"{_status_text(major, _GSS_CODE)}: {_status_text(minor.value, _MECHANISM_CODE)}"
        raise GssError(text, is_retriable=code in _RETRIABLE)
    return major


def _status_text(code: int, kind: int) -> str:
    library, minor, more, text = _library(), ctypes.c_uint32(), ctypes.c_uint32(), _Buffer()
    if library.gss_display_status(
        ctypes.byref(minor), code, kind, None, ctypes.byref(more), ctypes.byref(text)
    ):  # fmt: skip
        return f"status {code}"
    return _take_bytes(text).decode("utf-8", "replace")


def _input_buffer(data: bytes) -> _Buffer:
    """Returns a buffer that refers to `data` and keeps it alive."""
    buffer = _Buffer(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
    buffer.data = data
    return buffer


def _take_bytes(buffer: _Buffer) -> bytes:
    """Returns the bytes of a buffer that the library has allocated, and releases the buffer."""
    data = ctypes.string_at(buffer.value, buffer.length) if buffer.value and buffer.length else b""
    minor = ctypes.c_uint32()
    _library().gss_release_buffer(ctypes.byref(minor), ctypes.byref(buffer))
    return data


def _import_name(text: str, kind: bytes) -> _Handle:
    name, identifier = _Handle(), _ObjectIdentifier(len(kind), kind)
    _call("gss_import_name", ctypes.byref(_input_buffer(text.encode())), ctypes.byref(identifier), ctypes.byref(name))
    return name


def _release_name(name: _Handle) -> None:
    if name:
        _call("gss_release_name", ctypes.byref(name))


class _Credential:
    """The keys or tickets of a principal. Any thread may use the object."""

    def __init__(self, principal: str | None, usage: int, store: Mapping[str, str]) -> None:
        self.handle = _Handle()
        name = _Handle() if principal is None else _import_name(principal, _KERBEROS_PRINCIPAL)
        try:
            kerberos = _ObjectIdentifier(len(_KERBEROS), _KERBEROS)
            mechanisms = _ObjectIdentifierSet(1, ctypes.pointer(kerberos))
            _call(
                "gss_acquire_cred_from", name, _INDEFINITE, ctypes.byref(mechanisms), usage,
                ctypes.byref(_store(store)), ctypes.byref(self.handle), None, None,
            )  # fmt: skip
        finally:
            _release_name(name)

    def __del__(self) -> None:
        if self.handle:
            _call("gss_release_cred", ctypes.byref(self.handle))


class AcceptorCredential(_Credential):
    """The keys of a server's principal. Any thread may use the object."""

    def __init__(self, principal: str | None, keytab: str | None) -> None:
        """Reads the keys of `principal` from the file `keytab`; None means every principal, or the default keytab.

        Raises GssError if there are none, and ConfigError if the library is missing.
        """
        super().__init__(principal, _ACCEPT, {} if keytab is None else {"keytab": keytab})

    def accept(self) -> AcceptorContext:
        """Returns a context for one client."""
        return AcceptorContext(self)


class InitiatorCredential(_Credential):
    """The tickets of a client's principal. Any thread may use the object."""

    def __init__(self, principal: str | None, keytab: str | None, ticket_cache: str | None) -> None:
        """Uses the tickets in the cache `ticket_cache`, such as `MEMORY:name`. If `keytab` is given, the library
        requests tickets by means of the keys in this file, and stores the tickets in the cache.

        None means the default principal, no keytab, or the default cache. Raises GssError if the principal has neither
        tickets nor keys, and ConfigError if the library is missing.
        """
        given = {"client_keytab": keytab, "ccache": ticket_cache}
        super().__init__(principal, _INITIATE, {key: value for key, value in given.items() if value is not None})

    def initiate(self, service: str, host: str) -> InitiatorContext:
        """Returns a context for one connection to the service of a host, such as `kafka` at `broker1.example.com`."""
        return InitiatorContext(self, service, host)


def _store(values: Mapping[str, str]) -> _Store:
    elements = (_StoreElement * max(1, len(values)))()
    for index, (key, value) in enumerate(values.items()):
        elements[index] = _StoreElement(key.encode(), value.encode())
    return _Store(len(values), ctypes.cast(elements, ctypes.POINTER(_StoreElement)))


class _Context:
    """One side of a security context. Used by one thread at a time; its calls may block."""

    def __init__(self, credential: _Credential) -> None:
        self._credential = credential
        self._handle = _Handle()
        self.is_established = False

    def __del__(self) -> None:
        if self._handle:
            _call("gss_delete_sec_context", ctypes.byref(self._handle), None)

    def wrap(self, data: bytes) -> bytes:
        """Returns the data, not encrypted, with a signature of this context."""
        wrapped = _Buffer()
        _call("gss_wrap", self._handle, 0, 0, ctypes.byref(_input_buffer(data)), None, ctypes.byref(wrapped))
        return _take_bytes(wrapped)

    def unwrap(self, data: bytes) -> bytes:
        """Returns the data that the peer has signed. Raises GssError if the signature is wrong."""
        plain = _Buffer()
        _call("gss_unwrap", self._handle, ctypes.byref(_input_buffer(data)), ctypes.byref(plain), None, None)
        return _take_bytes(plain)


class AcceptorContext(_Context):
    """The server's side of a security context."""

    def __init__(self, credential: AcceptorCredential) -> None:
        super().__init__(credential)
        self.client_name = ""  # such as alice/admin@EXAMPLE.COM; set when the context is established

    def step(self, token: bytes) -> bytes:
        """Handles a token of the client, and returns the token to send back, b"" if there is none. Raises GssError."""
        name, answer = _Handle(), _Buffer()
        try:
            major = _call(
                "gss_accept_sec_context", ctypes.byref(self._handle), self._credential.handle,
                ctypes.byref(_input_buffer(token)), None, ctypes.byref(name), None, ctypes.byref(answer),
                None, None, None,
            )  # fmt: skip
            if not major & _CONTINUE_NEEDED:
                shown = _Buffer()
                _call("gss_display_name", name, ctypes.byref(shown), None)
                self.client_name = _take_bytes(shown).decode("utf-8", "replace")
                self.is_established = True
            return _take_bytes(answer)
        except GssError:
            _take_bytes(answer)  # a failed step may have a token for the client, too, which SASL does not send
            raise
        finally:
            _release_name(name)


class InitiatorContext(_Context):
    """The client's side of a security context."""

    def __init__(self, credential: InitiatorCredential, service: str, host: str) -> None:
        super().__init__(credential)
        self._target = _import_name(f"{service}@{host}", _HOST_BASED_SERVICE)

    def __del__(self) -> None:
        super().__del__()
        _release_name(self._target)

    def step(self, token: bytes) -> bytes:
        """Handles a token of the server, and returns the token to send back, b"" if there is none.

        `token` is b"" in the first step, which may ask the KDC for tickets. Raises GssError.
        """
        answer = _Buffer()
        kerberos = _ObjectIdentifier(len(_KERBEROS), _KERBEROS)
        try:
            major = _call(
                "gss_init_sec_context", self._credential.handle, ctypes.byref(self._handle), self._target,
                ctypes.byref(kerberos), _MUTUAL | _SEQUENCE | _INTEGRITY, 0, None,
                ctypes.byref(_input_buffer(token)) if token else None, None, ctypes.byref(answer), None, None,
            )  # fmt: skip
        except GssError:
            _take_bytes(answer)
            raise
        self.is_established = not major & _CONTINUE_NEEDED
        return _take_bytes(answer)


@cache
def default_realm() -> str | None:
    """Returns the realm of this machine's Kerberos configuration; None if no realm is configured."""
    try:
        library = ctypes.CDLL(_KERBEROS_LIBRARY)
    except OSError:
        return None
    context, realm = ctypes.c_void_p(), ctypes.c_char_p()
    library.krb5_init_context.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    library.krb5_get_default_realm.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    library.krb5_free_default_realm.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.krb5_free_context.argtypes = [ctypes.c_void_p]
    if library.krb5_init_context(ctypes.byref(context)):
        return None
    try:
        if library.krb5_get_default_realm(context, ctypes.byref(realm)) or realm.value is None:
            return None
        return realm.value.decode("utf-8", "replace")
    finally:
        library.krb5_free_context(context)
