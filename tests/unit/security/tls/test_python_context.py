"""Contexts of Python's `ssl` made from settings."""

import ssl

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.tls.authority import SERVER_AUTH
from kafkapy.security.tls.python_context import client_context, server_context
from kafkapy.security.tls.tls_material import certificate_warnings, load_material
from tests.certificates import (
    CLIENT_NAME,
    authority,
    client_certificate,
    openssl,
    pem_key_store,
    pem_trust_store,
    server_certificate,
    settings,
    write_pem,
)

CA = pem_trust_store(authority().certificate)
SERVER = pem_key_store(server_certificate())
SECRET = "secret-of-the-key"


def server(**options):
    return load_material(settings(SERVER, CA, **options), is_server=True)


def client(key_store=None, **options):
    stores = (CA,) if key_store is None else (CA, key_store)
    return load_material(
        settings(*reversed(stores), **options) if key_store else settings(trust_store=CA, **options), is_server=False
    )


def handshake(server_side, client_side, host="localhost"):
    """Returns the two ends of a connection after the handshake and one message."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = server_side.wrap_bio(to_server, to_client, server_side=True)
    there = client_side.wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [here, there]
    for _ in range(8):
        for end in (there, here):
            if end in waiting:
                try:
                    end.do_handshake()
                    waiting.remove(end)
                except ssl.SSLWantReadError:
                    pass
    there.write(b"x")
    assert here.read(1) == b"x"
    return here, there


def test_a_client_verifies_the_server_and_its_name():
    context = server_context(server())
    handshake(context, client_context(client()))
    handshake(context, client_context(client()), "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(context, client_context(client()), "elsewhere")
    handshake(context, client_context(client(algorithm="")), "elsewhere")


def test_an_unknown_algorithm_of_identification_is_refused():
    with pytest.raises(ConfigError, match="accepted are https and the empty value"):
        client_context(client(algorithm="ldaps"))


def test_an_untrusted_server_is_refused():
    alone = load_material(settings(trust_store=pem_trust_store(client_certificate().certificate)), is_server=False)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self-signed"):
        handshake(server_context(server()), client_context(alone))


def test_a_leaf_may_be_trusted_alone():
    alone = load_material(settings(trust_store=pem_trust_store(server_certificate().certificate)), is_server=False)
    handshake(server_context(server()), client_context(alone))


def test_a_server_asks_for_certificates_as_configured():
    identity = pem_key_store(client_certificate())
    here, _ = handshake(server_context(server(client_auth="required")), client_context(client(identity)))
    assert here.getpeercert(binary_form=True)
    here, _ = handshake(server_context(server(client_auth="requested")), client_context(client()))
    assert here.getpeercert(binary_form=True) is None
    here, _ = handshake(server_context(server()), client_context(client(identity)))
    assert here.getpeercert(binary_form=True) is None
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(server_context(server(client_auth="required")), client_context(client()))


def test_a_revoked_certificate_is_refused(tmp_path):
    issued = authority().issue(CLIENT_NAME, 3)
    material = load_material(settings(pem_key_store(issued)), is_server=False)
    serial = material.own_certificates[0][1].serial
    (tmp_path / "crl").write_bytes(authority().revocation_list([serial], 3))
    context = server_context(server(client_auth="required", crl=str(tmp_path / "crl")))
    handshake(context, client_context(client(pem_key_store(client_certificate()))))
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate revoked"):
        handshake(context, client_context(client(pem_key_store(issued))))


def test_a_file_without_revocation_lists_is_refused(tmp_path):
    (tmp_path / "crl").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="there is no X509 CRL in PEM in the file"):
        server(crl=str(tmp_path / "crl"))


def test_protocols_and_suites_are_limited():
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    here, _ = handshake(server_context(server(suites=(suite,))), client_context(client()))
    assert (here.version(), here.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported.protocol|version"):
        handshake(server_context(server(protocols=("TLSv1.3",))), client_context(client(protocols=("TLSv1.2",))))


def test_an_encrypted_key_is_opened_by_its_password(tmp_path):
    write_pem(tmp_path, server_certificate(), "s")
    openssl("pkcs8", "-topk8", "-in", "s.key", "-out", "enc", "-passout", f"pass:{SECRET}", folder=tmp_path)
    store = SERVER._replace(key=(tmp_path / "enc").read_text(), key_password=SECRET)
    handshake(server_context(load_material(settings(store), is_server=True)), client_context(client()))
    wrong = load_material(settings(store._replace(key_password="no-" + SECRET)), is_server=True)
    with pytest.raises(ConfigError, match=r"the password of the private key is wrong") as caught:
        server_context(wrong)
    assert SECRET not in str(caught.value)


def test_certificates_that_are_not_valid_are_named():
    expired = authority().issue((("CN", "old"),), -1, usages=(SERVER_AUTH,))
    material = load_material(settings(pem_key_store(expired), CA, prefix="listener.name.x."), is_server=True)
    (warning,) = certificate_warnings(material)
    assert warning.startswith("listener.name.x.: the certificate CN=old (alias kafka) expired on ")
    assert certificate_warnings(server()) == []
    assert "becomes valid on" in certificate_warnings(server(), now_s=0)[0]


class Factory:
    """A source of keys for the test of `ssl.engine.factory.class`."""

    def __init__(self, configs):
        self.configs = configs

    def identity(self):
        from kafkapy.security.tls.engine_factory import TlsIdentity

        if self.configs["ssl.keystore.location"] == "fail":
            raise ValueError("the vault is closed")
        return TlsIdentity(server_certificate().certificate, server_certificate().private_key)

    def trusted_certificates(self):
        return authority().certificate


def test_a_python_class_may_supply_the_stores():
    name = f"{Factory.__module__}:Factory"
    import sys

    sys.modules.setdefault(Factory.__module__, sys.modules[__name__])
    material = load_material(settings(factory=name), is_server=True)
    handshake(server_context(material), client_context(client()))
    failing = settings(SERVER._replace(key=None, content=None, location="fail"), factory=name, prefix="p.")
    with pytest.raises(ConfigError, match=f"p.ssl.engine.factory.class={name}: the vault is closed"):
        load_material(failing, is_server=True)
    with pytest.raises(ConfigError, match="kafkapy cannot run Java classes"):
        load_material(settings(factory="com.example.Factory"), is_server=True)
