"""Certificates and distinguished names as OpenSSL and Java read them."""

import subprocess

import pytest

from kafkapy.security.tls.authority import CertificateAuthority
from kafkapy.security.tls.certificate import in_chain_order, parse_certificate
from kafkapy.security.tls.der import BMP_STRING, PRINTABLE_STRING, UTF8_STRING, DerError, element, oid, sequence, set_of
from kafkapy.security.tls.distinguished_name import name_text
from kafkapy.security.tls.pem import parse_blocks
from tests.certificates import CLIENT_NAME, authority, client_certificate, openssl, server_certificate


def parsed(pem):
    return parse_certificate(parse_blocks(pem.decode())[0].content)


def name(*parts):
    return sequence(*(set_of([sequence(oid(kind), element(tag, text)) for kind, tag, text in part]) for part in parts))


COMMON_NAME, EMAIL, COUNTRY = "2.5.4.3", "1.2.840.113549.1.9.1", "2.5.4.6"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([[(COUNTRY, PRINTABLE_STRING, b"DE")], [(COMMON_NAME, UTF8_STRING, b"alice")]], "CN=alice,C=DE"),
        ([[(COMMON_NAME, UTF8_STRING, b'a,b+c"d\\e<f>g;h=i#j')]], 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j'),
        ([[(COMMON_NAME, UTF8_STRING, b"  two  ")]], "CN=\\ \\ two\\ \\ "),
        ([[(COMMON_NAME, UTF8_STRING, "Zoë".encode())]], "CN=Zoë"),
        ([[(COMMON_NAME, UTF8_STRING, b"a\0b")]], "CN=a\\00b"),
        ([[(EMAIL, 0x16, b"a@b")]], "1.2.840.113549.1.9.1=#1603614062"),
        ([[(COMMON_NAME, UTF8_STRING, b"")]], "CN="),
        ([], ""),
    ],
)
def test_a_name_is_shown_as_java_shows_it(parts, expected):
    assert name_text(name(*parts)) == expected


def test_attributes_of_one_relative_name_are_joined():
    text = name_text(name([(COMMON_NAME, UTF8_STRING, b"a"), ("2.5.4.11", UTF8_STRING, b"b")]))
    assert text == "CN=a+OU=b"


def test_a_value_in_another_encoding_is_decoded():
    assert name_text(name([(COMMON_NAME, BMP_STRING, "ab".encode("utf-16-be"))])) == "CN=ab"


def test_the_fields_of_a_certificate_are_those_that_openssl_shows(tmp_path):
    (tmp_path / "c").write_bytes(server_certificate().certificate)
    certificate = parsed(server_certificate().certificate)
    shown = openssl(
        "x509", "-in", "c", "-noout", "-serial", "-subject", "-issuer", "-dateopt", "iso_8601", "-enddate",
        "-nameopt", "RFC2253", folder=tmp_path,
    )  # fmt: skip
    assert f"serial={certificate.serial:X}" in shown.replace("serial=0", "serial=")
    assert f"subject={certificate.subject_text}" in shown
    assert f"issuer={certificate.issuer_text}" in shown
    assert certificate.alternative_names == {(2, "localhost"), (7, "127.0.0.1")}
    assert not certificate.is_authority
    assert parsed(authority().certificate).is_authority


def test_a_chain_is_ordered_by_its_issuers():
    root, leaf = parsed(authority().certificate), parsed(client_certificate().certificate)
    other = parsed(CertificateAuthority((("CN", "Other"),), 1).certificate)
    assert in_chain_order(leaf, [other, root]) == [leaf, root]
    assert in_chain_order(leaf, [other]) == [leaf]


def test_a_date_after_2049_is_understood(tmp_path):
    certificate = parsed(CertificateAuthority((("CN", "Long"),), 36_500).certificate)
    assert certificate.not_after_s - certificate.not_before_s > 36_499 * 86_400


def test_every_truncated_certificate_is_refused():
    der = parsed(client_certificate().certificate).der
    for length in range(len(der)):
        with pytest.raises(DerError):
            parse_certificate(der[:length])


@pytest.mark.peer
def test_the_subject_is_the_one_that_java_gives(tmp_path):
    (tmp_path / "c").write_bytes(authority().issue((*CLIENT_NAME, ("CN", "a, b=c #d ")), 3).certificate)
    program = (
        "System.out.println(((java.security.cert.X509Certificate) java.security.cert.CertificateFactory.getInstance("
        '"X.509").generateCertificate(new java.io.FileInputStream("c"))).getSubjectX500Principal().getName());\n/exit\n'
    )
    shown = subprocess.run(
        ["jshell", "-s", "-"], input=program, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert parsed((tmp_path / "c").read_bytes()).subject_text in shown.splitlines()
