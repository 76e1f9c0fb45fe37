"""A scanner of TLS servers in the manner of testssl: finds every protocol and cipher suite that a server accepts.

It writes its own hellos, so that no TLS library limits what it can ask for. A server chooses one of the offered suites;
the scanner offers the others again until the server refuses them all.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Callable, Iterable

VERSIONS = {"SSLv3": 0x0300, "TLSv1": 0x0301, "TLSv1.1": 0x0302, "TLSv1.2": 0x0303, "TLSv1.3": 0x0304}
# The first bytes of all suites that IANA has assigned, and of those for private use.
_FIRST_BYTES = (0x00, 0x13, 0x56, 0xC0, 0xC1, 0xCC, 0xD0, 0xFE, 0xFF)
_SIGNALS = (0x00FF, 0x5600)  # not suites: renegotiation, fallback
SUITES = [first << 8 | second for first in _FIRST_BYTES for second in range(256) if first << 8 | second not in _SIGNALS]
_GROUPS = (29, 23, 24, 25, 256, 257)  # x25519, P-256, P-384, P-521, ffdhe2048, ffdhe3072
_SIGNATURES = (0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0203, 0x0201)
_HANDSHAKE, _SERVER_HELLO = 22, 2
_SUPPORTED_VERSIONS = 43


def scan(connect: Callable[[], socket.socket]) -> dict[str, set[str]]:
    """Returns the suites that a server accepts by protocol, with OpenSSL's names; protocols that it refuses are
    absent. `connect` opens a connection with a time-out."""
    names = suite_names()
    found: dict[str, set[str]] = {}
    for protocol, version in VERSIONS.items():
        offered = list(SUITES)
        while (chosen := _chosen(connect, version, offered)) is not None:
            found.setdefault(protocol, set()).add(names.get(chosen, f"0x{chosen:04x}"))
            offered.remove(chosen)
    return found


def suite_names() -> dict[int, str]:
    """Returns OpenSSL's names of suites by number; TLS 1.3 names the suites that every OpenSSL has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = {each["id"] & 0xFFFF: each["name"] for each in context.get_ciphers()}
    return {**names, 0x1304: "TLS_AES_128_CCM_SHA256", 0x1305: "TLS_AES_128_CCM_8_SHA256"}


def _chosen(connect: Callable[[], socket.socket], version: int, suites: Iterable[int]) -> int | None:
    """Returns the suite that the server chooses; None if it refuses the hello, or chooses another protocol."""
    with connect() as client:
        client.sendall(client_hello(version, suites))
        stream = client.makefile("rb")
        try:
            kind, _, length = struct.unpack(">BHH", stream.read(5))
            content = stream.read(length)
        except (ConnectionError, struct.error):  # closed without an alert
            return None
    if kind != _HANDSHAKE:
        return None
    assert content[0] == _SERVER_HELLO, content[:1]
    session_end = 39 + content[38]
    (chosen,) = struct.unpack_from(">H", content, session_end)
    spoken = _spoken_version(content, session_end + 3)
    return chosen if spoken == version else None


def _spoken_version(hello: bytes, position: int) -> int:
    """Returns the version of a server's hello whose extensions begin at `position`."""
    (legacy,) = struct.unpack_from(">H", hello, 4)
    position += 2
    while position + 4 <= len(hello):
        kind, length = struct.unpack_from(">HH", hello, position)
        if kind == _SUPPORTED_VERSIONS:
            return int(struct.unpack_from(">H", hello, position + 4)[0])
        position += 4 + length
    return int(legacy)


def client_hello(version: int, suites: Iterable[int]) -> bytes:
    """Returns the record with the hello of a client that has one protocol and these suites."""
    listed = struct.pack(">H", 0x00FF) + b"".join(struct.pack(">H", each) for each in suites)
    legacy = min(version, 0x0303)
    body = struct.pack(">H", legacy) + os.urandom(32) + b"\x20" + os.urandom(32)
    body += struct.pack(">H", len(listed)) + listed + b"\x01\x00"
    if version > 0x0300:
        extensions = (
            _extension(10, _list16(_GROUPS)) + _extension(11, b"\x01\x00") + _extension(13, _list16(_SIGNATURES))
        )
        if version == 0x0304:
            share = struct.pack(">HH", _GROUPS[0], 32) + os.urandom(32)
            extensions += _extension(_SUPPORTED_VERSIONS, b"\x02" + struct.pack(">H", version))
            extensions += _extension(45, b"\x01\x01") + _extension(51, struct.pack(">H", len(share)) + share)
        body += struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", _HANDSHAKE, min(version, 0x0301), len(message)) + message


def _extension(kind: int, content: bytes) -> bytes:
    return struct.pack(">HH", kind, len(content)) + content


def _list16(values: Iterable[int]) -> bytes:
    content = b"".join(struct.pack(">H", each) for each in values)
    return struct.pack(">H", len(content)) + content
