"""Cipher suites: IANA's names, which configurations have, and the names of OpenSSL."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

# IANA's name -> OpenSSL's name, for TLS 1.2 and older: the suites that authenticate by a certificate.
_OPENSSL_NAMES = {
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": "DHE-RSA-AES128-SHA256",
    "TLS_DHE_RSA_WITH_AES_128_CCM": "DHE-RSA-AES128-CCM",
    "TLS_DHE_RSA_WITH_AES_128_CCM_8": "DHE-RSA-AES128-CCM8",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA": "DHE-RSA-AES256-SHA",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CCM": "DHE-RSA-AES256-CCM",
    "TLS_DHE_RSA_WITH_AES_256_CCM_8": "DHE-RSA-AES256-CCM8",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM": "ECDHE-ECDSA-AES128-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8": "ECDHE-ECDSA-AES128-CCM8",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM": "ECDHE-ECDSA-AES256-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8": "ECDHE-ECDSA-AES256-CCM8",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_CCM": "AES128-CCM",
    "TLS_RSA_WITH_AES_128_CCM_8": "AES128-CCM8",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_256_CCM": "AES256-CCM",
    "TLS_RSA_WITH_AES_256_CCM_8": "AES256-CCM8",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
# The suites of TLS 1.3, which have the same names in OpenSSL.
_TLS_1_3_NAMES = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
# Signals of clients that Java lists among the suites. OpenSSL always understands them.
_SIGNALS = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
PROTOCOLS = (TLS_1_2, TLS_1_3)
# Protocols that a configuration may name but that are never offered, as with current versions of Java: they are broken.
WEAK_PROTOCOLS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_NAMES_BY_OPENSSL = {name: iana for iana, name in _OPENSSL_NAMES.items()}


class CipherSuites(NamedTuple):
    """The suites and protocols of a listener or client. If `names` is empty, OpenSSL offers its default suites."""

    protocols: tuple[str, ...]
    names: tuple[str, ...]  # IANA's names
    tls_1_2: tuple[str, ...]  # OpenSSL's names
    tls_1_3: tuple[str, ...]


def choose_suites(protocols: Iterable[str], suites: Iterable[str], prefix: str = "") -> CipherSuites:
    """Returns the cipher suites in `suites` (`ssl.cipher.suites`), and the protocols in `protocols` that have at least
    one suite.

    A protocol without a suite is not offered, as in Java. If `suites` is empty, OpenSSL's default suites are used.
    Raises ConfigError for an unknown name, or if no protocol is left; the error names the configuration key, which
    begins with `prefix`.
    """
    given = tuple(dict.fromkeys(protocols))
    for name in given:
        if name not in PROTOCOLS and name not in WEAK_PROTOCOLS:
            raise ConfigError(
                f"Invalid value {name} for configuration {prefix}ssl.enabled.protocols: unknown protocol; accepted are "
                f"{', '.join(PROTOCOLS)}"
            )
    chosen = tuple(name for name in given if name in PROTOCOLS)
    if not chosen:
        raise ConfigError(
            f"{prefix}ssl.enabled.protocols={','.join(given)} names no secure protocol; use {','.join(PROTOCOLS)}"
        )
    names = [_standard(name) for name in dict.fromkeys(suites) if name not in _SIGNALS]
    if not names:
        return CipherSuites(chosen, (), (), ())
    for name in names:
        if name not in _OPENSSL_NAMES and name not in _TLS_1_3_NAMES:
            raise _unknown_suite(name, prefix)
    older = tuple(_OPENSSL_NAMES[name] for name in names if name in _OPENSSL_NAMES)
    newest = tuple(name for name in names if name in _TLS_1_3_NAMES)
    possible = tuple(name for name in chosen if (newest if name == TLS_1_3 else older))
    if not possible:
        raise ConfigError(
            f"{prefix}ssl.cipher.suites names no suite of the protocols in {prefix}ssl.enabled.protocols "
            f"({', '.join(chosen)}); suites such as TLS_AES_256_GCM_SHA384 are for TLSv1.3, suites such as "
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 for TLSv1.2"
        )
    return CipherSuites(possible, tuple(names), older, newest)


def _standard(name: str) -> str:
    """Returns IANA's name of a suite. Replaces SSL_ by TLS_ at the beginning of `name`: Java calls the suites that are
    older than TLS by names with SSL_."""
    return f"TLS_{name[4:]}" if name.startswith("SSL_") else name


def weak_protocols(protocols: Iterable[str]) -> list[str]:
    """Returns the insecure protocols in `protocols` (SSL, TLS 1.0 and TLS 1.1), which are never offered."""
    return [name for name in dict.fromkeys(protocols) if name in WEAK_PROTOCOLS]


def weak_suites(suites: CipherSuites) -> list[str]:
    """Returns the chosen suites without forward secrecy or without authenticated encryption, by IANA's names."""
    return [name for name in suites.names if name.startswith("TLS_RSA_") or "_CBC_" in name]


def _unknown_suite(name: str, prefix: str) -> ConfigError:
    from difflib import get_close_matches  # needed only for an error

    near = [_NAMES_BY_OPENSSL[name]] if name in _NAMES_BY_OPENSSL else None
    near = near or get_close_matches(name, [*_OPENSSL_NAMES, *_TLS_1_3_NAMES], n=1, cutoff=0.8)
    hint = f"did you mean {near[0]}?" if near else "names are IANA's, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    return ConfigError(f"Invalid value {name} for configuration {prefix}ssl.cipher.suites: unknown suite; {hint}")
