"""The argument of kafka-storage's `--add-scram`: SCRAM-SHA-256=[name=alice,password=alice-secret]."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os

from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.scram_mechanism import MAX_ITERATIONS, MECHANISMS_BY_NAME, MIN_ITERATIONS, ScramMechanism
from kafkapy.tools.option import ToolError

_SALT_BYTES = 32


class ScramArgument(NamedTuple):
    """A SCRAM credential of a user, with the salted password."""

    name: str
    mechanism: ScramMechanism
    iterations: int
    salt: bytes
    salted_password: bytes


def parse_scram(text: str) -> ScramArgument:
    """Returns the credential that the argument describes.

    A password in the argument is salted, with the salt in the argument or, if there is none, with a random salt. If the
    argument has a password and a salted password, the password takes precedence. Raises ToolError, with Kafka's text,
    for an invalid argument.
    """
    mechanism_name, equals, config = text.strip().partition("=")
    if not equals:
        raise ToolError(f"Failed to find equals sign in SCRAM argument '{text.strip()}'")
    mechanism = MECHANISMS_BY_NAME.get(mechanism_name)
    if mechanism is None:
        raise ToolError(f"The add-scram mechanism {mechanism_name} is not supported.")
    values = _values(config)
    name = values.pop("name", None)
    if name is None:
        raise ToolError("You must supply 'name' to add-scram")
    given_salt, password, salted = (values.pop(key, None) for key in ("salt", "password", "saltedpassword"))
    iterations = _iterations(mechanism, values.pop("iterations", str(MIN_ITERATIONS)))
    if values:
        raise ToolError(f"Unknown SCRAM configurations: {', '.join(sorted(values))}")
    if password is None and salted is None:
        raise ToolError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and given_salt is None:
        raise ToolError("You must supply 'salt' with 'saltedpassword' to add-scram")
    salt = os.urandom(_SALT_BYTES) if given_salt is None else _decoded("salt", given_salt)
    if password is not None:
        salted_password = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    else:
        salted_password = _decoded("saltedPassword", salted or "")
    return ScramArgument(name, mechanism, iterations, salt, salted_password)


def _values(config: str) -> dict[str, str]:
    """Returns the values by name in a text such as `[name=alice,password="secret"]`, without brackets and quotes.

    Raises ToolError if a bracket or an equals sign is missing.
    """
    for is_present, how, bracket in (
        (config.startswith("["), "start", "["),
        (config.endswith("]"), "end", "]"),
    ):
        if not is_present:
            raise ToolError(f"Expected configuration string to {how} with {bracket}")
    values: dict[str, str] = {}
    for component in config[1:-1].split(","):
        key, equals, value = component.strip().partition("=")
        if not equals:
            raise ToolError(f"No equals sign found in SCRAM component: {component.strip()}")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        values[key] = value[1:-1] if is_quoted else value
    return values


def _iterations(mechanism: ScramMechanism, text: str) -> int:
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise ToolError(f"Failed to parse iterations count: {text}")
    iterations = int(text)
    for is_within, limit in (
        (iterations >= MIN_ITERATIONS, f">= {MIN_ITERATIONS}"),
        (iterations <= MAX_ITERATIONS, f"<= {MAX_ITERATIONS}"),
    ):
        if not is_within:
            raise ToolError(f"The 'iterations' value must be {limit} for add-scram using {mechanism.name}")
    return iterations


def _decoded(what: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ToolError(f"Failed to decode given {what}: {text}") from None
