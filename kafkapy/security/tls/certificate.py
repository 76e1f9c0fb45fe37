"""X.509 certificates: the fields that the broker shows, compares and checks. OpenSSL verifies the signatures."""

from __future__ import annotations

import calendar
import ipaddress
import re
import time
from collections.abc import Sequence

from kafkapy.named_tuple import NamedTuple
from kafkapy.security.tls.der import (
    BOOLEAN,
    GENERALIZED_TIME,
    INTEGER_TAG,
    OCTET_STRING,
    SEQUENCE,
    UTC_TIME,
    DerError,
    DerReader,
    context,
)
from kafkapy.security.tls.distinguished_name import name_text

SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
BASIC_CONSTRAINTS = "2.5.29.19"
_OTHER_NAME, _EMAIL, _DNS, _DIRECTORY, _URI, _ADDRESS = 0, 1, 2, 4, 6, 7
_TIME = re.compile(rb"(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z")


class Certificate(NamedTuple):
    """The fields of a certificate. Times are seconds since 1970.

    An alternative name is a pair: the number of its kind in GeneralName, and its text. If the kind has no text form,
    the text is hexadecimal.
    """

    der: bytes
    serial: int
    issuer: bytes  # DER of the name
    subject: bytes
    not_before_s: int
    not_after_s: int
    public_key: bytes  # DER of the SubjectPublicKeyInfo
    alternative_names: frozenset[tuple[int, str]]
    is_authority: bool

    @property
    def subject_text(self) -> str:
        """The subject in the form of RFC 2253."""
        return name_text(self.subject)

    @property
    def issuer_text(self) -> str:
        return name_text(self.issuer)

    @property
    def is_self_issued(self) -> bool:
        return self.subject == self.issuer


def parse_certificate(der: bytes) -> Certificate:
    """Returns the fields of a certificate; bytes after it are ignored. Raises DerError."""
    try:
        return _parse(der)
    except (ValueError, OverflowError) as error:
        raise DerError(f"it is not a certificate: {error}") from error


def _parse(der: bytes) -> Certificate:
    der = DerReader(der).element()
    signed = DerReader(der).enter(SEQUENCE).enter(SEQUENCE)
    signed.skip(context(0))
    serial = int.from_bytes(signed.read(INTEGER_TAG), "big", signed=True)
    signed.enter(SEQUENCE)
    issuer = signed.element()
    validity = signed.enter(SEQUENCE)
    not_before_s, not_after_s = read_time(validity), read_time(validity)
    subject = signed.element()
    public_key = signed.element()
    name_text(subject)
    name_text(issuer)
    alternative_names: frozenset[tuple[int, str]] = frozenset()
    is_authority = False
    while not signed.is_at_end:
        if signed.tag() != context(3):
            signed.element()
            continue
        extensions = signed.enter(context(3)).enter(SEQUENCE)
        while not extensions.is_at_end:
            extension = extensions.enter(SEQUENCE)
            kind = extension.oid()
            extension.skip(BOOLEAN)
            value = DerReader(extension.read(OCTET_STRING))
            if kind == SUBJECT_ALTERNATIVE_NAME:
                alternative_names = frozenset(_general_names(value.enter(SEQUENCE)))
            elif kind == BASIC_CONSTRAINTS:
                constraints = value.enter(SEQUENCE)
                is_authority = constraints.tag() == BOOLEAN and constraints.read(BOOLEAN) != b"\0"
    return Certificate(
        der, serial, issuer, subject, not_before_s, not_after_s, public_key, alternative_names, is_authority
    )


def read_time(reader: DerReader) -> int:
    """Returns the date at the position of the reader, in seconds since 1970. Raises DerError."""
    tag = reader.tag()
    if tag not in (UTC_TIME, GENERALIZED_TIME):
        raise DerError("a date is neither UTCTime nor GeneralizedTime")
    match = _TIME.fullmatch(reader.read(tag))
    if match is None:
        raise DerError("a date is not in the form of DER")
    year, *others = map(int, match.groups())
    if tag == UTC_TIME:
        year += 1900 if year >= 50 else 2000
    return calendar.timegm((year, *others, 0, 0, 0))


def _general_names(names: DerReader) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    while not names.is_at_end:
        tag = names.tag()
        number = tag & 0x1F
        content = names.read(tag)
        if number in (_EMAIL, _DNS, _URI):
            found.append((number, content.decode("latin-1")))
        elif number == _ADDRESS and len(content) in (4, 16):
            found.append((number, str(ipaddress.ip_address(content))))
        elif number == _DIRECTORY:
            found.append((number, name_text(content)))
        else:
            found.append((number, content.hex()))
    return found


def subject_text(der: bytes) -> str:
    """Returns the subject of a DER-encoded certificate in the form of RFC 2253. Raises DerError."""
    return parse_certificate(der).subject_text


def in_chain_order(leaf: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """Returns the leaf, followed by its issuer, the issuer's issuer and so on, as far as `others` has them."""
    by_subject = {each.subject: each for each in reversed(others)}
    chain = [leaf]
    while not chain[-1].is_self_issued:
        issuer = by_subject.pop(chain[-1].issuer, None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def date_text(time_s: int) -> str:
    """Returns a point in time as `2026-11-23 12:00:00 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))
