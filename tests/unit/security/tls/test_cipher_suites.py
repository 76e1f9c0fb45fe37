"""The names of protocols and cipher suites."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.tls.cipher_suites import CipherSuites, choose_suites, weak_protocols, weak_suites

BOTH = ("TLSv1.2", "TLSv1.3")


def test_without_suites_the_protocols_remain():
    assert choose_suites(BOTH, ()) == CipherSuites(BOTH, (), (), ())


def test_names_of_iana_become_names_of_openssl():
    names = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")
    assert choose_suites(BOTH, names) == CipherSuites(
        BOTH, names, ("ECDHE-RSA-AES256-GCM-SHA384",), ("TLS_AES_128_GCM_SHA256",)
    )


def test_a_protocol_without_a_suite_is_not_offered():
    assert choose_suites(BOTH, ("TLS_AES_128_GCM_SHA256",)).protocols == ("TLSv1.3",)
    assert choose_suites(BOTH, ("TLS_RSA_WITH_AES_128_CBC_SHA",)).protocols == ("TLSv1.2",)


@pytest.mark.parametrize(
    ("protocols", "suites", "text"),
    [
        (("TLSv1.4",), (), "Invalid value TLSv1.4 for configuration p.ssl.enabled.protocols"),
        (("SSLv3",), (), "p.ssl.enabled.protocols=SSLv3 names no secure protocol; use TLSv1.2,TLSv1.3"),
        ((), (), "names no secure protocol"),
        (BOTH, ("ECDHE-RSA-AES256-GCM-SHA384",), "did you mean TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        (BOTH, ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA348",), "did you mean TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        (BOTH, ("TLS_X",), "names are IANA's"),
        (("TLSv1.3",), ("TLS_RSA_WITH_AES_128_CBC_SHA",), "names no suite of the protocols"),
    ],
)
def test_unknown_names_are_refused_with_the_key(protocols, suites, text):
    with pytest.raises(ConfigError, match=text):
        choose_suites(protocols, suites, "p.")


def test_weak_protocols_are_left_out_and_listed():
    assert choose_suites(("TLSv1.2", "TLSv1.1", "TLSv1"), ()).protocols == ("TLSv1.2",)
    assert weak_protocols(("TLSv1.2", "TLSv1.1", "TLSv1")) == ["TLSv1.1", "TLSv1"]


def test_suites_without_forward_secrecy_are_weak():
    names = ("TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA")
    assert weak_suites(choose_suites(BOTH, names)) == [names[0], names[2]]


def test_names_of_java_that_begin_with_ssl_are_understood():
    assert choose_suites(BOTH, ("SSL_RSA_WITH_AES_128_CBC_SHA",)).tls_1_2 == ("AES128-SHA",)
