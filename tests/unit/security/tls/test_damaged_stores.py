"""Truncated and damaged keys, certificates and stores: each parser refuses them with its own error, in bounded time.

`python -m tests.fuzz` repeats the mutations for a longer time.
"""

import random

import pytest

from kafkapy.security.tls.certificate import parse_certificate
from kafkapy.security.tls.der import DerError
from kafkapy.security.tls.distinguished_name import name_text
from kafkapy.security.tls.jks_store import read_jks
from kafkapy.security.tls.key_store import StoreError
from kafkapy.security.tls.pem import parse_blocks
from kafkapy.security.tls.pem_store import read_pem_key_store, read_pem_trust_store
from kafkapy.security.tls.stores import read_store
from tests.certificates import PASSWORD, authority, client_certificate, server_certificate, write_pkcs12
from tests.jks_writer import jks_file, key_entry, trusted_entry
from tests.seeds import drawn_seed

MUTATIONS = 300


def der(pem):
    return parse_blocks(pem.decode())[0].content


def jks():
    issued = server_certificate()
    chain = [der(issued.certificate), der(authority().certificate)]
    return jks_file(
        PASSWORD,
        key_entry("server", der(issued.private_key), PASSWORD, chain),
        trusted_entry("ca", der(authority().certificate)),
    )


@pytest.fixture(scope="module")
def pkcs12(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pkcs12")
    return write_pkcs12(folder, server_certificate(), "server", "-iter", "1", "-nomac").read_bytes()


@pytest.fixture(scope="module")
def plain_pkcs12(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    options = ("-keypbe", "NONE", "-certpbe", "NONE", "-nomac")
    return write_pkcs12(folder, server_certificate(), "server", *options).read_bytes()


def pem():
    return server_certificate().private_key + server_certificate().certificate + authority().certificate


def read_pem(content):
    text = content.decode("utf-8", "replace")
    read_pem_key_store(text, text, PASSWORD)


def without_check(content):
    """Reads a key store without checking its digest, so that the parser has to find the damage."""
    store = read_store(content, None, PASSWORD)
    for entry in store.entries:
        for certificate in entry.chain:
            parse_certificate(certificate)


PARSERS = {
    "certificate": (lambda: der(client_certificate().certificate), parse_certificate),
    "name": (lambda: parse_certificate(der(client_certificate().certificate)).subject, name_text),
    "PEM": (pem, read_pem),
    "PEM trust store": (pem, lambda content: read_pem_trust_store(content.decode("utf-8", "replace"))),
    "JKS": (jks, without_check),
    "PKCS12": ("pkcs12", lambda content: read_store(content, PASSWORD, PASSWORD)),
    "plain PKCS12": ("plain_pkcs12", without_check),
}


def sample(source, request):
    return source() if callable(source) else request.getfixturevalue(source)


def test_the_jks_of_the_tests_is_readable():
    store = read_jks(jks(), PASSWORD, PASSWORD)
    assert [entry.alias for entry in store.entries] == ["server", "ca"]
    assert der(store.key_entry.private_key.pem) == der(server_certificate().private_key)
    with pytest.raises(StoreError, match="the password of the store is wrong"):
        read_jks(jks(), "no", PASSWORD)


@pytest.mark.parametrize("kind", PARSERS)
def test_a_file_that_ends_too_early_is_refused(kind, request):
    source, parse = PARSERS[kind]
    content = sample(source, request)
    parse(content)
    refused = 0
    for length in range(len(content)):
        try:
            parse(content[:length])
        except (DerError, StoreError):
            refused += 1
    # PEM may end after each block
    assert refused == len(content) or kind.startswith("PEM")


def mutated(content, source):
    changed = bytearray(content)
    for _ in range(source.randint(1, 4)):
        position = source.randrange(len(changed))
        action = source.randrange(4)
        if action == 0:
            changed[position] ^= 1 << source.randrange(8)
        elif action == 1:
            changed[position] = source.choice((0, 0x7F, 0x80, 0x84, 0xFF, 0x30))
        elif action == 2:
            del changed[position : position + source.randint(1, 8)]
        else:
            changed[position:position] = bytes(source.randrange(256) for _ in range(source.randint(1, 8)))
        if not changed:
            break
    return bytes(changed)


def try_mutations(content, parse, source, count):
    for _ in range(count):
        damaged = mutated(content, source)
        try:
            parse(damaged)
        except (DerError, StoreError):
            pass
        except Exception as error:
            raise AssertionError(f"{damaged.hex()} raised {error!r}") from error


@pytest.mark.parametrize("kind", PARSERS)
def test_a_damaged_file_is_read_or_refused(kind, request):
    source, parse = PARSERS[kind]
    try_mutations(sample(source, request), parse, random.Random(drawn_seed()), MUTATIONS)
