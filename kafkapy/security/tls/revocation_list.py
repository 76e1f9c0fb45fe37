"""Certificate revocation lists (RFC 5280): the dates that an operator needs. OpenSSL verifies the signatures."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.certificate import read_time
from kafkapy.security.tls.der import GENERALIZED_TIME, INTEGER_TAG, SEQUENCE, UTC_TIME, DerError, DerReader
from kafkapy.security.tls.distinguished_name import name_text
from kafkapy.security.tls.pem import parse_blocks

LABEL = "X509 CRL"


class RevocationList(NamedTuple):
    """The issuer of a list, in the form of RFC 2253, and its dates in seconds since 1970.

    After `next_update_s` every certificate of the issuer is refused. `next_update_s` is None if the list has no such
    date.
    """

    issuer_text: str
    this_update_s: int
    next_update_s: int | None


def parse_revocation_lists(pem: bytes) -> list[RevocationList]:
    """Returns the lists in a PEM text. Raises ValueError (a DerError or a PemError) for a list that is malformed."""
    return [_parse(block.content) for block in parse_blocks(pem.decode("latin-1")) if block.label == LABEL]


def _parse(der: bytes) -> RevocationList:
    try:
        signed = DerReader(der).enter(SEQUENCE).enter(SEQUENCE)
        signed.skip(INTEGER_TAG)
        signed.enter(SEQUENCE)
        issuer = signed.element()
        this_update_s = read_time(signed)
        has_next = not signed.is_at_end and signed.tag() in (UTC_TIME, GENERALIZED_TIME)
        return RevocationList(name_text(issuer), this_update_s, read_time(signed) if has_next else None)
    except (ValueError, OverflowError) as error:
        raise DerError(f"it is not a certificate revocation list: {error}") from error
