"""SCRAM credentials in the znodes of users.

A znode shows only the iterations of a credential: everybody may read it, and a reader who has the salt and the keys
could search for the password. A credential that a client writes is sent to the controller with its keys, and is stored
in the znode without them.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping

from kafkapy.metadata.cluster_image import ScramCredential
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.scram_mechanism import MAX_ITERATIONS, MECHANISMS_BY_NAME, MECHANISMS_BY_NUMBER, MIN_ITERATIONS

_FIELDS = frozenset(("salt", "stored_key", "server_key", "iterations"))


class CredentialChanges(NamedTuple):
    """The changes of the SCRAM credentials of the user `user`.

    `credentials` maps the number of each mechanism that changes, as in Kafka's protocol, to the new credential; None
    deletes the credential.
    """

    user: str
    credentials: dict[int, ScramCredential | None]


def shown_credentials(credentials: Mapping[int, ScramCredential]) -> dict[str, str]:
    """Returns the texts with which the node of a user shows the user's credentials, by the mechanism's name.

    Only the iterations are shown. The keys of `credentials` are the mechanisms' numbers in Kafka's protocol.
    """
    names = {number: each.name.replace("_", "-") for number, each in MECHANISMS_BY_NUMBER.items()}
    return {names[number]: _shown(each.iterations) for number, each in credentials.items() if number in names}


def _shown(iterations: int | str) -> str:
    return f"iterations={iterations}"


def without_keys(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration in a user's node, with only the iterations of each SCRAM credential."""
    return {key: _without_keys(value) if key in MECHANISMS_BY_NAME else value for key, value in config.items()}


def _without_keys(value: object) -> str:
    fields = _fields(value)
    return _shown(fields.get("iterations", ""))


def _fields(value: object) -> dict[str, str]:
    pairs = (field.partition("=") for field in str(value).split(","))
    return {name.strip(): text.strip() for name, _, text in pairs}


def credential_changes(
    user: str | None, before: Mapping[str, str], config: Mapping[str, str]
) -> CredentialChanges | None:
    """Returns the changes of a user's credentials if a client replaces the configuration `before` by `config`.

    None means that no credential changes. Raises ValueError for an invalid credential, or if there are changes and
    `user` is None.
    """
    changes: dict[int, ScramCredential | None] = {}
    for name, mechanism in MECHANISMS_BY_NAME.items():
        value = config.get(name)
        if value is None:
            if name in before:
                changes[mechanism.value] = None
        elif value != before.get(name):
            changes[mechanism.value] = _parse(value, mechanism.digest_size)
    if not changes:
        return None
    if not user:
        raise ValueError("only a user with a name has credentials")
    return CredentialChanges(user, changes)


def _parse(value: object, size: int) -> ScramCredential:
    """Parses a credential that a tool wrote: salt=,stored_key=,server_key=,iterations=.

    `size` is the size in bytes of the mechanism's keys. Raises ValueError for an invalid credential.
    """
    fields = _fields(value)
    if fields.keys() != _FIELDS:
        raise ValueError("a credential has the fields salt, stored_key, server_key and iterations")
    salt, stored_key, server_key = (
        b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
    )
    iterations = int(fields["iterations"])
    if len(stored_key) != size or len(server_key) != size:
        raise ValueError(f"the keys of a credential must have {size} bytes")
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ValueError(f"iterations={iterations} is not between {MIN_ITERATIONS} and {MAX_ITERATIONS}")
    return ScramCredential(salt, stored_key, server_key, iterations)
