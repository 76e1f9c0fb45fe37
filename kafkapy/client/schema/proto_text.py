"""The significant part of a `.proto` text, by which two texts of the same definition are equal."""

from __future__ import annotations

import re

# A comment, a quoted text (to the end of its line if the closing quote is missing), a word, or another character.
# Each alternative takes its characters once, so that a search takes linear time for any text.
_PARTS = re.compile(
    r"//[^\n]*"
    r"|/\*(?:[^*]|\*(?!/))*(?:\*/)?"
    r"|\"(?:[^\"\\\n]|\\.)*\"?"
    r"|'(?:[^'\\\n]|\\.)*'?"
    r"|[\w.]+"
    r"|\S"
)


def is_proto_text(schema: str) -> bool:
    """Returns whether a Protobuf schema is a `.proto` text; otherwise it is a FileDescriptorProto in base64.

    Every definition has a semicolon or a brace, and no base64 text has one.
    """
    return ";" in schema or "{" in schema


def significant_text(schema: str) -> str:
    """Returns a Protobuf schema without comments and with one blank between two words.

    A FileDescriptorProto in base64 is returned without the white space around it.
    """
    if not is_proto_text(schema):
        return schema.strip()
    return " ".join(part for part in _PARTS.findall(schema) if not part.startswith(("//", "/*")))
