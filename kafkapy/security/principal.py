"""Principals: the names under which clients are authorized, limited and logged."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple

USER_TYPE = "User"


class Principal(NamedTuple):
    """The authenticated identity of a client. Its text, `User:alice`, is what ACLs and `super.users` contain."""

    type: str
    name: str
    token_authenticated: bool = False  # authenticated by a delegation token (KIP-48)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER_TYPE, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Returns the principal that `text`, such as `User:alice`, names; as in Kafka, type and name may be empty.

    Raises ValueError if there is no colon.
    """
    kind, separator, name = text.partition(":")
    if not separator:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)
