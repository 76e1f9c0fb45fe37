"""Checks of TLS: stores that cannot be read, certificates that expire, weak protocols and suites, readable keys."""

from __future__ import annotations

import os
import stat
import time

from kafkapy.config import BrokerConfig
from kafkapy.config.listener_ssl import listener_ssl_settings, listeners_with_tls, ssl_warnings
from kafkapy.config.ssl_settings import SslSettings
from kafkapy.errors import ConfigError
from kafkapy.security.tls.certificate import Certificate, date_text
from kafkapy.security.tls.cipher_suites import weak_protocols, weak_suites
from kafkapy.security.tls.revocation_list import parse_revocation_lists
from kafkapy.security.tls.tls_material import TlsMaterial, load_material
from kafkapy.tools.diagnosis.configuration import LOOPBACK
from kafkapy.tools.diagnosis.data import DAY_S
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Findings

SUBJECT = "certificates"
# Certificates are often valid for 90 days and renewed 30 days before their end.
SOON_DAYS = 30
# Authorities publish lists that are valid for a week or longer, and a new one well before the end.
LIST_SOON_DAYS = 2
_NEW_LIST = "replace the file by the authority's new list, and send SIGHUP to the broker"
_METRICS = "METRICS"


def check_certificates(config: BrokerConfig, now_s: float | None = None) -> Findings:
    """Yields findings on the listeners with TLS, and on a metrics listener that other machines can read without TLS.

    `now_s` is the time, in seconds since 1970, with which the certificates' dates are compared; None means the present
    time.
    """
    now = time.time() if now_s is None else now_s
    for warning in ssl_warnings(config):
        yield Finding(WARNING, SUBJECT, warning.rstrip("."))
    protocols = listeners_with_tls(config)
    if config.kafkapy_metrics_listener and config.kafkapy_metrics_tls_enable:
        protocols = {**protocols, _METRICS: "SSL"}
    for name, protocol in protocols.items():
        settings = listener_ssl_settings(config, name, protocol)
        try:
            material = load_material(settings, is_server=True)
        except ConfigError as error:
            yield Finding(PROBLEM, SUBJECT, f"listener {name}: {error}", "the broker refuses to start")
            continue
        yield from _dates(name, material, now)
        yield from _revocations(name, material, now)
        yield from _strength(name, material)
        yield from _permissions(name, settings)
    yield from _metrics_password(config)


def _dates(name: str, material: TlsMaterial, now: float) -> Findings:
    """Yields a finding for each certificate that is not valid or expires soon; one good finding if all are valid.

    `name` is the name of the listener, and `now` the time in seconds since 1970.
    """
    own, trusted = material.own_certificates, material.trusted_certificates
    checked = [
        *(_date_finding(name, alias, certificate, now, is_own=True) for alias, certificate in own),
        *(_date_finding(name, alias, certificate, now, is_own=False) for alias, certificate in trusted),
    ]
    found = [finding for finding in checked if finding is not None]
    if not found:
        end = min(certificate.not_after_s for _, certificate in own)
        found = [Finding(GOOD, SUBJECT, f"listener {name}: all certificates are valid, its own until {date_text(end)}")]
    yield from found


def _date_finding(name: str, alias: str, certificate: Certificate, now: float, *, is_own: bool) -> Finding | None:
    """Returns a finding on a certificate that is not valid or expires soon; None for any other certificate.

    `name` is the name of the listener. `is_own` is True for the listener's own certificate, False for a trusted one.
    """
    kind = "certificate" if is_own else "trusted certificate"
    named = f"listener {name}: {kind} {certificate.subject_text} (alias {alias})"
    if certificate.not_after_s < now:
        advice = "clients refuse it: renew it" if is_own else "remove it; certificates issued by it are refused"
        return Finding(
            PROBLEM if is_own else WARNING, SUBJECT, f"{named} expired on {date_text(certificate.not_after_s)}", advice
        )
    if certificate.not_before_s > now:
        text = f"{named} becomes valid on {date_text(certificate.not_before_s)}"
        return Finding(PROBLEM if is_own else WARNING, SUBJECT, text, "check the clock, or wait")
    days = int((certificate.not_after_s - now) / DAY_S)
    if days < SOON_DAYS:
        advice = (
            "renew it, and set ssl.keystore.location again while the broker runs, or restart it"
            if is_own
            else "add its successor to the trust store"
        )
        text = f"{named} expires in {days} days, on {date_text(certificate.not_after_s)}"
        return Finding(WARNING, SUBJECT, text, advice)
    return None


def _revocations(name: str, material: TlsMaterial, now: float) -> Findings:
    """Yields a finding for each revocation list of the listener `name` that is not valid or expires soon.

    If the list of a certificate authority is not valid, the broker refuses clients with certificates of this authority.
    """
    if material.revocations_pem is None:
        return
    location = material.settings.crl_location
    try:
        lists = parse_revocation_lists(material.revocations_pem)
    except ValueError as error:
        text = f"listener {name}: the revocation lists in {location} cannot be read: {error}"
        yield Finding(PROBLEM, SUBJECT, text, "the broker refuses to start")
        return
    for each in lists:
        named = f"listener {name}: the revocation list of {each.issuer_text} in {location}"
        if each.this_update_s > now:
            text = f"{named} becomes valid on {date_text(each.this_update_s)}; until then its clients are refused"
            yield Finding(PROBLEM, SUBJECT, text, "check the clock")
        if each.next_update_s is None or each.next_update_s - now > LIST_SOON_DAYS * DAY_S:
            continue
        if each.next_update_s < now:
            text = f"{named} expired on {date_text(each.next_update_s)}: clients with its certificates are refused"
            yield Finding(PROBLEM, SUBJECT, text, _NEW_LIST)
        else:
            text = f"{named} expires on {date_text(each.next_update_s)}; then its clients are refused"
            yield Finding(WARNING, SUBJECT, text, _NEW_LIST)


def _strength(name: str, material: TlsMaterial) -> Findings:
    protocols = weak_protocols(material.settings.enabled_protocols)
    if protocols:
        text = (
            f"listener {name}: ssl.enabled.protocols has {', '.join(protocols)}, which are insecure and never offered"
        )
        yield Finding(WARNING, SUBJECT, text, "set ssl.enabled.protocols=TLSv1.2,TLSv1.3")
    suites = weak_suites(material.suites)
    if suites:
        text = f"listener {name}: suites without forward secrecy or authenticated encryption: {', '.join(suites)}"
        yield Finding(WARNING, SUBJECT, text, "remove them from ssl.cipher.suites")
    if material.settings.client_auth == "required" and material.trust_store is None:
        text = f"listener {name}: without a trust store, certificates of every public authority are accepted"
        yield Finding(WARNING, SUBJECT, text, "set ssl.truststore.location to the authority of the clients")


def _permissions(name: str, settings: SslSettings) -> Findings:
    location = settings.key_store.location
    if location is None or settings.engine_factory_class:
        return
    mode = os.stat(location).st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        text = f"listener {name}: every user of the machine can read or replace the private key in {location}"
        yield Finding(WARNING, SUBJECT, text, f"chmod o-rw {location}")


def _metrics_password(config: BrokerConfig) -> Findings:
    listener = config.kafkapy_metrics_listener
    if not listener or config.kafkapy_metrics_tls_enable:
        return
    is_local = (listener.rpartition(":")[0].strip("[]") or "localhost") in LOOPBACK
    if config.kafkapy_metrics_password is not None and not is_local:
        text = "the password of the metrics listener is readable on the network"
        yield Finding(WARNING, SUBJECT, text, "set kafkapy.metrics.tls.enable=true")
    elif not is_local:
        text = "every machine that can connect to the metrics listener can read the metrics"
        yield Finding(NOTE, SUBJECT, text, "set kafkapy.metrics.username, and kafkapy.metrics.tls.enable=true")
