"""Key stores and trust stores: PEM, PKCS #12 and JKS, with passwords, as OpenSSL and keytool write them."""

import pytest

from kafkapy.config.ssl_settings import StoreSettings
from kafkapy.errors import ConfigError
from kafkapy.security.tls.certificate import parse_certificate
from kafkapy.security.tls.pem import parse_blocks
from kafkapy.security.tls.stores import load_key_store, load_trust_store
from kafkapy.security.tls.tls_material import load_material
from tests.certificates import (
    NO_STORE,
    PASSWORD,
    authority,
    client_certificate,
    keytool,
    openssl,
    pem_key_store,
    pem_trust_store,
    server_certificate,
    settings,
    write_pem,
    write_pkcs12,
)

SECRET = "secret-of-the-key"


def der(pem):
    return parse_blocks(pem.decode())[0].content


def check_server(key_store):
    """Checks that the store has the server's key, and its certificate with its issuer."""
    entry = key_store.key_entry
    assert entry.chain == (der(server_certificate().certificate), der(authority().certificate))
    assert der(entry.private_key.pem) == der(server_certificate().private_key)


def binary(path, password=PASSWORD, kind="PKCS12", key_password=None):
    return StoreSettings(kind, str(path), password, None, None, key_password)


# -- PEM


def test_a_key_store_may_be_in_the_configuration():
    entry = load_key_store(settings(pem_key_store(server_certificate()))).key_entry
    assert entry.chain == (der(server_certificate().certificate),)
    assert entry.private_key.password is None


def test_pem_may_be_on_one_line():
    store = pem_key_store(server_certificate())
    flat = store._replace(key=store.key.replace("\n", " "), content=store.content.replace("\n", " "))
    assert load_key_store(settings(flat)) == load_key_store(settings(store))


def test_a_key_store_may_be_a_file(tmp_path):
    issued = server_certificate()
    (tmp_path / "store").write_bytes(issued.private_key + issued.certificate + authority().certificate)
    check_server(load_key_store(settings(StoreSettings("PEM", str(tmp_path / "store"), None, None))))


def test_an_encrypted_key_needs_its_password(tmp_path):
    write_pem(tmp_path, server_certificate(), "s")
    openssl("pkcs8", "-topk8", "-in", "s.key", "-out", "enc", "-passout", f"pass:{SECRET}", folder=tmp_path)
    store = pem_key_store(server_certificate())._replace(key=(tmp_path / "enc").read_text())
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key: the private key is encrypted; set ssl\.key\.password"):
        load_key_store(settings(store))
    loaded = load_key_store(settings(store._replace(key_password=SECRET)))
    assert loaded.key_entry.private_key.password == SECRET
    assert SECRET not in repr(loaded)


def test_a_trust_store_has_all_certificates(tmp_path):
    both = authority().certificate + client_certificate().certificate
    (tmp_path / "store").write_bytes(b"a comment\n" + both)
    for store in (pem_trust_store(both), StoreSettings("PEM", str(tmp_path / "store"), None, None)):
        assert load_trust_store(settings(trust_store=store)).certificates == [
            der(authority().certificate), der(client_certificate().certificate)
        ]  # fmt: skip


def test_without_keys_there_are_no_stores():
    assert load_key_store(settings()) is None
    assert load_trust_store(settings()) is None


INLINE = pem_key_store(server_certificate())


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (INLINE._replace(type="JKS"), "p.ssl.keystore.key needs p.ssl.keystore.type=PEM, not JKS"),
        (INLINE._replace(key=None), "certificate.chain is set, but not p.ssl.keystore.key"),
        (INLINE._replace(content=None), "keystore.key is set, but not p.ssl.keystore.certificate.chain"),
        (INLINE._replace(location="x"), "both p.ssl.keystore.key and p.ssl.keystore.location are set"),
        (INLINE._replace(password="x"), "ssl.keystore.password cannot be set with p.ssl.keystore.type=PEM"),
        (INLINE._replace(key="none"), "there is no private key in PEM"),
        (INLINE._replace(key=INLINE.key * 2), "there are 2 private keys"),
        (INLINE._replace(key=INLINE.key.replace("PRIVATE", "EC PRIVATE")), "is an EC PRIVATE KEY, not PKCS #8"),
        (INLINE._replace(content="none"), "there is no certificate in PEM"),
        (INLINE._replace(content=INLINE.content.replace("MII", "M%I")), "the block CERTIFICATE is not Base64"),
        (NO_STORE._replace(password="x"), "ssl.keystore.password is set, but no key store"),
        (NO_STORE._replace(location="/nowhere"), "but not the password of the key store"),
        (NO_STORE._replace(location="/nowhere", password="x"), "keystore.location=/nowhere: the file cannot be read"),
        (NO_STORE._replace(location="/nowhere", password="x", type="BKS"), "known are JKS, PKCS12 and PEM"),
        (StoreSettings("PEM", "/nowhere", "x", None), "cannot be set with p.ssl.keystore.type=PEM"),
    ],
)
def test_a_wrong_key_store_is_refused_with_its_key(store, text):
    with pytest.raises(ConfigError, match=text) as caught:
        load_key_store(settings(store, prefix="p."))
    assert str(caught.value).count("p.ssl.") or "known are" in str(caught.value)


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (StoreSettings("JKS", None, None, "x"), "truststore.certificates needs p.ssl.truststore.type=PEM"),
        (StoreSettings("PEM", "x", None, "x"), "both p.ssl.truststore.certificates and p.ssl.truststore.location"),
        (StoreSettings("PEM", None, "x", "x"), "p.ssl.truststore.password cannot be set"),
        (StoreSettings("PEM", None, None, "x"), "p.ssl.truststore.certificates: there is no certificate in PEM"),
        (StoreSettings("JKS", None, "x", None), "p.ssl.truststore.password is set, but no trust store"),
    ],
)
def test_a_wrong_trust_store_is_refused_with_its_key(store, text):
    with pytest.raises(ConfigError, match=text):
        load_trust_store(settings(trust_store=store, prefix="p."))


def test_a_pem_file_as_a_binary_store_is_explained(tmp_path):
    certificate, _ = write_pem(tmp_path, server_certificate(), "s")
    with pytest.raises(ConfigError, match="the file is PEM; set the type of the store to PEM"):
        load_key_store(settings(binary(certificate)))


# -- PKCS #12


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1"),
        ("-legacy",),
        ("-keypbe", "AES-128-CBC", "-certpbe", "AES-192-CBC", "-macalg", "sha512"),
        ("-keypbe", "NONE", "-certpbe", "NONE"),
        ("-nomac",),
        ("-certpbe", "PBE-SHA1-RC2-128", "-legacy"),
        ("-iter", "3"),
    ],
    ids=" ".join,
)
def test_the_forms_of_pkcs12_are_read(tmp_path, options):
    store = write_pkcs12(tmp_path, server_certificate(), "server", *options)
    loaded = load_key_store(settings(binary(store)))
    check_server(loaded)
    assert loaded.key_entry.alias == "server"


def test_a_wrong_password_of_pkcs12_is_named(tmp_path):
    store = write_pkcs12(tmp_path, server_certificate(), "server")
    with pytest.raises(ConfigError, match=rf"ssl\.keystore\.location={store}: the password of the store is wrong"):
        load_key_store(settings(binary(store, "no")))
    with pytest.raises(ConfigError, match="the password of the private key of server is wrong"):
        load_key_store(settings(binary(store, key_password="no")))


def test_a_pkcs12_trust_store_needs_no_mark_of_java(tmp_path):
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    openssl(
        "pkcs12",
        "-export",
        "-nokeys",
        "-in",
        "ca.crt",
        "-out",
        "t.p12",
        "-passout",
        f"pass:{PASSWORD}",
        folder=tmp_path,
    )
    store = binary(tmp_path / "t.p12")
    assert load_trust_store(settings(trust_store=store)).certificates == [der(authority().certificate)]
    with pytest.raises(ConfigError, match="the certificates of the store are encrypted; set the password of the store"):
        load_trust_store(settings(trust_store=store._replace(password=None)))


# -- JKS and keytool


def keytool_stores(folder, kind, *options):
    """Makes a key store and a trust store of this type by keytool, and returns their paths."""
    source = write_pkcs12(folder, server_certificate(), "server")
    keytool(
        *options, "-importkeystore", "-srckeystore", source.name, "-srcstorepass", PASSWORD, "-destkeystore", "k",
        "-deststoretype", kind, "-deststorepass", PASSWORD, "-noprompt", folder=folder,
    )  # fmt: skip
    keytool(
        *options, "-importcert", "-alias", "ca", "-file", "ca.crt", "-keystore", "t", "-storetype", kind,
        "-storepass", PASSWORD, "-noprompt", folder=folder,
    )  # fmt: skip
    return folder / "k", folder / "t"


@pytest.mark.peer
@pytest.mark.parametrize(
    ("kind", "options"),
    [("JKS", ()), ("PKCS12", ()), ("PKCS12", ("-J-Dkeystore.pkcs12.legacy",))],
    ids=["JKS", "PKCS12", "old PKCS12"],
)
def test_the_stores_of_keytool_are_read(tmp_path, kind, options):
    key_path, trust_path = keytool_stores(tmp_path, kind, *options)
    for declared in ("JKS", "PKCS12"):  # the file says what it is
        check_server(load_key_store(settings(binary(key_path, kind=declared))))
        trusted = load_trust_store(settings(trust_store=binary(trust_path, kind=declared)))
        assert [entry.alias for entry in trusted.entries] == ["ca"]
        assert trusted.certificates == [der(authority().certificate)]
    with pytest.raises(ConfigError, match="the password of the store is wrong, or the file is damaged"):
        load_key_store(settings(binary(key_path, "no")))


@pytest.mark.peer
def test_a_key_of_jks_may_have_a_password_of_its_own(tmp_path):
    key_path, trust_path = keytool_stores(tmp_path, "JKS")
    keytool(
        "-keypasswd", "-alias", "server", "-keystore", "k", "-storepass", PASSWORD, "-keypass", PASSWORD,
        "-new", SECRET, folder=tmp_path,
    )  # fmt: skip
    check_server(load_key_store(settings(binary(key_path, kind="JKS", key_password=SECRET))))
    with pytest.raises(ConfigError, match="the password of the private key of server is wrong"):
        load_key_store(settings(binary(key_path, kind="JKS")))
    trusted = load_trust_store(settings(trust_store=binary(trust_path, None, "JKS")))
    assert trusted.certificates == [der(authority().certificate)]


# -- material


def test_a_server_needs_a_key_store():
    with pytest.raises(ConfigError, match=r"p\.ssl\.keystore\.location is not set; a listener with TLS needs"):
        load_material(settings(prefix="p."), is_server=True)


def test_a_trust_store_as_a_key_store_is_refused(tmp_path):
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    openssl("pkcs12", "-export", "-nokeys", "-in", "ca.crt", "-out", "t.p12", "-passout", "pass:x", folder=tmp_path)
    with pytest.raises(ConfigError, match="there is no private key in the key store"):
        load_material(settings(binary(tmp_path / "t.p12", "x")), is_server=True)


def test_a_damaged_certificate_is_refused():
    damaged = StoreSettings("PEM", None, None, "-----BEGIN CERTIFICATE-----\nMAIFAA==\n-----END CERTIFICATE-----")
    with pytest.raises(ConfigError, match="it is not a certificate"):
        load_material(settings(trust_store=damaged), is_server=False)


def test_certificates_have_their_fields_in_the_material():
    material = load_material(settings(INLINE, pem_trust_store(authority().certificate)), is_server=True)
    ((alias, certificate),) = material.own_certificates
    assert (alias, certificate.subject_text) == ("kafka", "CN=localhost,OU=brokers,O=Test")
    assert material.trusted_certificates[0][1] == parse_certificate(der(authority().certificate))
