"""PEM (RFC 7468): blocks of Base64 between BEGIN and END lines.

As in Apache Kafka, any white space is accepted as a line end, because a value in a configuration file has no line ends.
Text outside the blocks is ignored.
"""

from __future__ import annotations

import base64
import binascii
import re

from kafkapy.named_tuple import NamedTuple

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END ([A-Z0-9 ]+)-----")
_WHITE_SPACE = re.compile(r"\s+")
_LINE_CHARACTERS = 64
CERTIFICATE_LABELS = frozenset({"CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"})
CERTIFICATE = "CERTIFICATE"
PRIVATE_KEY = "PRIVATE KEY"
ENCRYPTED_PRIVATE_KEY = "ENCRYPTED PRIVATE KEY"


class PemError(ValueError):
    """A text that is not the expected PEM."""


class PemBlock(NamedTuple):
    """The label of a block and its content."""

    label: str
    content: bytes


def parse_blocks(text: str) -> list[PemBlock]:
    """Returns the blocks of the text in order. Raises PemError for a block that is not Base64."""
    blocks: list[PemBlock] = []
    for match in _BLOCK.finditer(text):
        label, body, end_label = match.groups()
        if label != end_label:
            raise PemError(f"a block begins as {label} and ends as {end_label}")
        try:
            content = base64.b64decode(_WHITE_SPACE.sub("", body), validate=True)
        except (binascii.Error, ValueError):
            raise PemError(f"the block {label} is not Base64") from None
        blocks.append(PemBlock(label, content))
    return blocks


def encode_block(label: str, content: bytes) -> bytes:
    """Returns a block as OpenSSL writes it, with a line feed at its end."""
    text = base64.b64encode(content).decode()
    lines = [text[start : start + _LINE_CHARACTERS] for start in range(0, len(text), _LINE_CHARACTERS)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode()
