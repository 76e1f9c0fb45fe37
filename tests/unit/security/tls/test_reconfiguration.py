"""The rules by which stores of a running listener may change."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH, CertificateAuthority
from kafkapy.security.tls.reconfiguration import check_change, check_trust
from kafkapy.security.tls.tls_material import load_material
from tests.certificates import SERVER_NAME, authority, client_certificate, pem_key_store, pem_trust_store, settings

USAGES = (SERVER_AUTH, CLIENT_AUTH)
HOSTS = ("localhost", "127.0.0.1")
CA = authority().certificate


def material(name=SERVER_NAME, hosts=HOSTS, trusted=CA, issuer=None, client_auth="none"):
    issued = (issuer or authority()).issue(name, 3, hosts=hosts, usages=USAGES)
    trust_store = {} if trusted is None else {"trust_store": pem_trust_store(trusted)}
    return load_material(settings(pem_key_store(issued), client_auth=client_auth, **trust_store), is_server=True)


def check(old, new, *, dn=False, san=False, inter_broker=False):
    check_change(old, new, allow_dn_changes=dn, allow_san_changes=san, is_inter_broker=inter_broker)


def test_a_new_certificate_of_the_same_name_is_accepted():
    check(material(), material(), inter_broker=True)


def test_a_name_may_change_only_if_that_is_allowed():
    new = material((("O", "Test"), ("CN", "other")))
    expected = (
        r"Keystore DistinguishedName does not match: existing=\{alias=kafka, DN=CN=localhost, OU=brokers, O=Test\}, "
        r"new=\{alias=kafka, DN=CN=other, O=Test\}"
    )
    with pytest.raises(ConfigError, match=expected):
        check(material(), new)
    check(material(), new, dn=True)


def test_alternative_names_may_be_lost_only_if_that_is_allowed():
    new = material(hosts=("localhost",))
    expected = (
        r"Keystore SubjectAltNames do not match: existing=\{alias=kafka, SAN=\[\[2, localhost\], \[7, 127.0.0.1\]\]\}, "
        r"new=\{alias=kafka, SAN=\[\[2, localhost\]\]\}"
    )
    with pytest.raises(ConfigError, match=expected):
        check(material(), new)
    check(material(), new, san=True)
    check(new, material())  # more names are fine


def test_stores_are_neither_added_nor_removed():
    with pytest.raises(ConfigError, match="Cannot add SSL truststore to an existing listener"):
        check(material(trusted=None), material())
    check(material(), material(trusted=None))
    without = load_material(settings(), is_server=False)
    with pytest.raises(ConfigError, match="Cannot remove the SSL keystore from an existing listener"):
        check(material(), without)


def test_the_number_of_entries_stays():
    old = material()
    twice = old._replace(key_store=old.key_store._replace(entries=old.key_store.entries * 2))
    with pytest.raises(ConfigError, match="existing store contains 1 entries, new store contains 2 entries"):
        check(old, twice)


def test_between_brokers_old_and_new_stores_must_trust_each_other():
    other = CertificateAuthority((("CN", "Other CA"),), 3)
    new = material(issuer=other, trusted=other.certificate)
    check(material(), new)
    with pytest.raises(ConfigError, match="the key store cannot be verified by the trust store"):
        check(material(), new, inter_broker=True)
    both = material(trusted=CA + other.certificate)
    check(material(), both, inter_broker=True)
    check(both, material(issuer=other, trusted=CA + other.certificate), inter_broker=True)


def test_a_client_that_must_show_a_certificate_is_checked_too():
    server = material(client_auth="required")
    check_trust(server, server)
    without = load_material(settings(trust_store=pem_trust_store(CA)), is_server=False)
    with pytest.raises(ConfigError, match="peer did not return a certificate"):
        check_trust(server, without)


def test_a_key_of_another_certificate_is_refused():
    store = pem_key_store(client_certificate())._replace(
        content=pem_key_store(authority().issue(SERVER_NAME, 1)).content
    )
    new = load_material(settings(store), is_server=True)
    with pytest.raises(ConfigError, match="the private key does not belong to the certificate"):
        check(material(), new, dn=True, san=True)
