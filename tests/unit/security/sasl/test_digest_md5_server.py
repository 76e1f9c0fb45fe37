"""DIGEST-MD5: the example of RFC 2831, and responses that are refused."""

from __future__ import annotations

import pytest

from kafkapy.security.sasl.digest_md5_server import DigestMd5Server, PasswordTable, parse_directives
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed
from tests.zookeeper.digest_md5 import response

USERS = PasswordTable({"user_bob": "bob secret", "user_zoé": "mot de passe é", "user_王": "密码", "other": "x"})


@pytest.fixture
def exchange():
    return DigestMd5Server("zookeeper", "zk-sasl-md5", USERS.find)


def test_the_example_of_the_rfc_is_accepted():
    exchange = DigestMd5Server(
        "imap", "elwood.innosoft.com", {"chris": "secret"}.get, make_nonce=lambda: "OA6MG9tEQGm2hh"
    )
    assert exchange.step(b"") == (
        b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess'
    )
    answer = exchange.step(
        b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
        b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
        b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
    )
    assert answer == b"rspauth=ea40f60335c427b5527b84dbabcdfffd"
    assert exchange.is_complete
    assert exchange.principal.name == "chris"


def authenticate(exchange, *arguments, **options):
    exchange.step(response(exchange.step(b""), *arguments, **options))


@pytest.mark.parametrize(
    ("user", "password", "options"),
    [
        ("bob", "bob secret", {}),
        ("bob", "bob secret", {"more": b",charset=utf-8"}),
        ("bob", "bob secret", {"authzid": b"bob"}),
        ("bob", "bob secret", {"uri": b"ZooKeeper/ZK-SASL-MD5"}),
        ("bob", "bob secret", {"more": b', maxbuf = 65536 , cipher="a\\"b"'}),
        ("zoé", "mot de passe é", {}),
        ("王", "密码", {"charset": "utf-8", "more": b",charset=utf-8"}),
    ],
)
def test_the_right_password_is_accepted(exchange, user, password, options):
    authenticate(exchange, user, password, **options)
    assert exchange.is_complete
    assert exchange.principal.name == user


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"password": "wrong"}, "the password is wrong"),
        ({"user": "eve", "password": "bob secret"}, "the user is unknown"),
        ({"user": "eve"}, "the user is unknown"),
        ({"user": "", "password": ""}, "the user is unknown"),
        ({"nonce": b"other"}, "nonce"),
        ({"realm": b"other"}, "realm"),
        ({"nc": b"00000002"}, "nc"),
        ({"qop": b"auth-int"}, "qop"),
        ({"uri": b"kafka/zk-sasl-md5"}, "digest-uri"),
        ({"uri": b"zookeeper/zk-sasl-md5/other"}, "digest-uri"),
        ({"more": b',username="eve"'}, "username twice"),
        ({"more": b',NC="00000001"'}, "nc twice"),
        ({"more": b",x=" + b"y" * 4096}, "more than 4096"),
        ({"more": b',x="y'}, "malformed"),
        ({"more": b",x"}, "malformed"),
    ],
)
def test_a_wrong_response_is_refused(exchange, options, reason):
    with pytest.raises(AuthenticationFailed, match=reason):
        authenticate(exchange, **{"password": "bob secret", **options})
    assert not exchange.is_complete
    with pytest.raises(AuthenticationFailed, match="has ended"):
        exchange.step(b"")


@pytest.mark.parametrize("missing", [b"username", b"cnonce", b"response", b"digest-uri", b"realm", b"nonce", b"nc"])
def test_a_response_without_a_required_directive_is_refused(exchange, missing):
    token = response(exchange.step(b""), password="bob secret")
    kept = [part for part in token.split(b",") if not part.startswith(missing + b"=")]
    assert len(kept) == 7
    with pytest.raises(AuthenticationFailed, match=missing.decode()):
        exchange.step(b",".join(kept))


@pytest.mark.parametrize("token", [b"", b"\0", b"=", b'"', b"username", b"\xff" * 4096, b'a="' + b'\\"' * 2040])
def test_garbage_is_refused(exchange, token):
    exchange.step(b"")
    with pytest.raises(AuthenticationFailed):
        exchange.step(token)


def test_a_truncated_response_is_refused_at_every_byte():
    exchanges = [DigestMd5Server("zookeeper", "zk-sasl-md5", USERS.find, make_nonce=lambda: "n") for _ in range(500)]
    token = response(exchanges[0].step(b""), password="bob secret")
    for end, exchange in zip(range(len(token)), exchanges[1:], strict=False):
        exchange.step(b"")
        with pytest.raises(AuthenticationFailed):
            exchange.step(token[:end])


def test_a_completed_exchange_accepts_no_further_token(exchange):
    authenticate(exchange, password="bob secret")
    with pytest.raises(AuthenticationFailed):
        exchange.step(b"")


def test_nonces_differ():
    assert len({DigestMd5Server("a", "b", USERS.find).step(b"") for _ in range(100)}) == 100


def test_directives_are_read():
    assert parse_directives(b' a = b ,, C-d="x\\"y,z" ,e=1,') == {"a": b"b", "c-d": b'x"y,z', "e": b"1"}


def test_a_table_has_the_users_of_the_options_and_does_not_show_them():
    assert len(USERS) == 3
    assert USERS.find("other") is None
    assert "secret" not in repr(USERS)
