"""Distinguished names of certificates as text (RFC 2253), in the form that Java and therefore Apache Kafka gives them.

The text has the relative distinguished names in reverse order: it begins with the last one in the certificate.
"""

from __future__ import annotations

from kafkapy.security.tls.der import (
    BMP_STRING,
    GENERAL_STRING,
    IA5_STRING,
    OID,
    PRINTABLE_STRING,
    SEQUENCE,
    SET,
    T61_STRING,
    UNIVERSAL_STRING,
    UTF8_STRING,
    DerError,
    DerReader,
    oid_text,
)

# Object identifier -> keyword (RFC 2253, section 2.3). Other attributes are shown by their number.
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ENCODINGS = {
    UTF8_STRING: "utf-8",
    PRINTABLE_STRING: "ascii",
    IA5_STRING: "ascii",
    T61_STRING: "latin-1",
    GENERAL_STRING: "latin-1",
    BMP_STRING: "utf-16-be",
    UNIVERSAL_STRING: "utf-32-be",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_ESCAPED_AT_ENDS = " \r"


def name_text(name: bytes, separator: str = ",") -> str:
    """Returns the text of a DER-encoded Name, such as `O=Test,OU=clients,CN=alice`. Raises DerError."""
    names = DerReader(name).enter(SEQUENCE)
    texts: list[str] = []
    while not names.is_at_end:
        attributes = names.enter(SET)
        parts: list[str] = []
        while not attributes.is_at_end:
            attribute = attributes.enter(SEQUENCE)
            parts.append(_attribute_text(oid_text(attribute.read(OID)), attribute.element()))
        texts.append("+".join(parts))
    return separator.join(reversed(texts))


def _attribute_text(kind: str, value: bytes) -> str:
    keyword = KEYWORDS.get(kind)
    encoding = _ENCODINGS.get(value[0])
    if keyword is None or encoding is None:
        return f"{keyword or kind}=#{value.hex()}"
    content = DerReader(value).read(value[0])
    try:
        return f"{keyword}={_escaped(content.decode(encoding))}"
    except UnicodeDecodeError:
        raise DerError(f"the value of {keyword} in a distinguished name is not {encoding}") from None


def _escaped(text: str) -> str:
    inner = text.lstrip(_ESCAPED_AT_ENDS)
    lead = text[: len(text) - len(inner)]
    core = inner.rstrip(_ESCAPED_AT_ENDS)
    trail = inner[len(core) :]
    escaped = "".join("\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in core)
    return "".join(f"\\{each}" for each in lead) + escaped + "".join(f"\\{each}" for each in trail)
