"""The rules by which the stores of a running listener may change (KIP-226)."""

from __future__ import annotations

import ssl

from kafkapy.errors import ConfigError
from kafkapy.security.tls.certificate import Certificate
from kafkapy.security.tls.distinguished_name import name_text
from kafkapy.security.tls.python_context import client_context, server_context
from kafkapy.security.tls.tls_material import TlsMaterial

_ROUNDS = 10
_NAME = "localhost"
_KEY_STORE, _TRUST_STORE = "keystore", "truststore"


def check_change(
    old: TlsMaterial, new: TlsMaterial, *, allow_dn_changes: bool, allow_san_changes: bool, is_inter_broker: bool
) -> None:
    """Raises ConfigError, in Kafka's wording, if a running listener may not replace the stores `old` by `new`.

    The subject (DN) of a certificate may change only if `allow_dn_changes` is True. A certificate may lose an
    alternative name (SAN) only if `allow_san_changes` is True. If brokers connect to the listener (`is_inter_broker`),
    brokers with the old stores and brokers with the new ones must trust each other.
    """
    _check_presence(old, new)
    if old.key_store is not None:
        _check_entries(old, new, allow_dn_changes=allow_dn_changes, allow_san_changes=allow_san_changes)
    server_context(new)  # key and certificate belong together
    if is_inter_broker:
        check_trust(old, new)
        check_trust(new, old)


def check_trust(server: TlsMaterial, client: TlsMaterial) -> None:
    """Performs a handshake in memory between a server and a client with these stores.

    Raises ConfigError if the handshake fails because the server or the client does not trust the other's certificate.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context(client)
    context.check_hostname = False
    ends = (
        server_context(server).wrap_bio(to_server, to_client, server_side=True),
        context.wrap_bio(to_client, to_server, server_hostname=_NAME),
    )
    remaining = set(ends)
    # Both ends must finish: with TLS 1.3 the server checks the client's certificate after the client has finished.
    for _ in range(_ROUNDS):
        for end in ends:
            if end not in remaining:
                continue
            try:
                end.do_handshake()
                remaining.discard(end)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                reason = getattr(error, "verify_message", "") or (error.reason or str(error)).lower().replace("_", " ")
                raise ConfigError(
                    f"{server.settings.prefix}ssl: the key store cannot be verified by the trust store ({reason}), "
                    "which brokers need to connect to each other"
                ) from None


def _check_presence(old: TlsMaterial, new: TlsMaterial) -> None:
    for kind, old_store, new_store in (
        (_KEY_STORE, old.key_store, new.key_store),
        (_TRUST_STORE, old.trust_store, new.trust_store),
    ):
        if old_store is None and new_store is not None:
            raise ConfigError(f"Cannot add SSL {kind} to an existing listener for which no {kind} was configured.")
        if old_store is not None and new_store is None and kind == _KEY_STORE:
            raise ConfigError(
                f"Cannot remove the SSL {kind} from an existing listener for which a {kind} was configured."
            )


def _check_entries(old: TlsMaterial, new: TlsMaterial, *, allow_dn_changes: bool, allow_san_changes: bool) -> None:
    before, after = old.own_certificates, new.own_certificates
    if len(before) != len(after):
        raise ConfigError(
            f"Keystore entries do not match, existing store contains {len(before)} entries, new store contains "
            f"{len(after)} entries"
        )
    for (old_alias, old_certificate), (new_alias, new_certificate) in zip(before, after, strict=True):
        if old_certificate.subject != new_certificate.subject and not allow_dn_changes:
            raise ConfigError(
                f"Keystore DistinguishedName does not match: existing={{alias={old_alias}, "
                f"DN={_subject(old_certificate)}}}, new={{alias={new_alias}, DN={_subject(new_certificate)}}}; "
                "with ssl.allow.dn.changes=true it need not"
            )
        if not old_certificate.alternative_names <= new_certificate.alternative_names and not allow_san_changes:
            raise ConfigError(
                f"Keystore SubjectAltNames do not match: existing={{alias={old_alias}, "
                f"SAN={_shown(old_certificate)}}}, new={{alias={new_alias}, SAN={_shown(new_certificate)}}}; with "
                "ssl.allow.san.changes=true they need not"
            )


def _subject(certificate: Certificate) -> str:
    return name_text(certificate.subject, ", ")


def _shown(certificate: Certificate) -> str:
    return "[" + ", ".join(f"[{kind}, {text}]" for kind, text in sorted(certificate.alternative_names)) + "]"
