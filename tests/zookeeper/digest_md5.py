"""The client's side of DIGEST-MD5 for tests, which can send wrong values."""

from __future__ import annotations

import hashlib
import re

REALM = b"zk-sasl-md5"
URI = b"zookeeper/" + REALM


def response(
    challenge: bytes,
    user: str = "bob",
    password: str = "",
    *,
    authzid: bytes | None = None,
    more: bytes = b"",
    charset: str = "latin-1",
    **values: bytes,
) -> bytes:
    """Returns the response to a challenge of the server. `values` replace directives (realm, nonce, cnonce, nc, uri,
    qop), also in what is hashed, except the nonce; `more` is added at the end."""
    found = dict(re.findall(rb'([\w-]+)="?([^",]*)"?', challenge))
    nonce = found[b"nonce"]
    realm, cnonce, nc, uri, qop = (
        values.get(key, usual)
        for key, usual in (("realm", REALM), ("cnonce", b"c1"), ("nc", b"00000001"), ("uri", URI), ("qop", b"auth"))
    )
    session = _md5(b":".join((user.encode(charset), realm, password.encode(charset)))) + b":" + nonce + b":" + cnonce
    directives = b""
    if authzid is not None:
        session += b":" + authzid
        directives = b',authzid="' + authzid + b'"'
    proof = _hex(b":".join((_hex(session), nonce, nc, cnonce, qop, _hex(b"AUTHENTICATE:" + uri))))
    return (
        b'username="%s",realm="%s",nonce="%s",cnonce="%s",nc=%s,qop=%s,digest-uri="%s",response=%s'
        % (user.encode(charset), realm, values.get("nonce", nonce), cnonce, nc, qop, uri, proof)
        + directives
        + more
    )


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()


def _hex(data: bytes) -> bytes:
    return _md5(data).hex().encode()
