"""The choice of the stored quota that applies to a client, and of the clients that share its limit (KIP-55, KIP-546).

    (user, client id), (user, any client id), (user),
    (any user, client id), (any user, any client id), (any user),
    (client id), (any client id)

The first of these entities that has the quota decides. Its limit is shared by the clients in one bucket. For an entity
with a user and a client id, a bucket is all clients with the same pair; for the others, it is all clients with the same
user, or with the same client id. A default limit therefore applies to each user or client id separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kafkapy.metadata.image import QuotaEntity
from kafkapy.security.principal import Principal

USER, CLIENT_ID, IP = "user", "client-id", "ip"
# A bucket in which nothing was recorded for this time is dropped, as in Kafka.
BUCKET_IDLE_MS = 3_600_000
PRODUCE, FETCH, REQUEST, MUTATION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
CLIENT_KEYS = (PRODUCE, FETCH, REQUEST, MUTATION)
CONNECTION_RATE = "connection_creation_rate"


class Bucket(NamedTuple):
    """A group of clients that share one limit: those with this user, with this client id, or with both.

    `user` or `client_id` is "" if the limit does not depend on it. `others` has (name, value) of the other tags by
    which the class of client.quota.callback.class groups clients.
    """

    user: str
    client_id: str
    others: tuple[tuple[str, str], ...] = ()


class Limit(NamedTuple):
    """A limit, the group of clients that share it (`bucket`), and the entity of the quota that sets it (`rule`)."""

    bucket: Bucket
    bound: float
    rule: str


def limits_of_key(quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str) -> dict[QuotaEntity, float]:
    """Returns {entity: limit} for the entities for which the quota key, such as producer_byte_rate, is set."""
    return {entity: values[key] for entity, values in quotas.items() if key in values}


def find_limit(limits: Mapping[QuotaEntity, float], user: str, client_id: str) -> Limit | None:
    """Returns the limit that applies to the client, or None if there is none.

    `limits` has the limits of one quota key; it maps the entity of each quota to its limit. The first entity with a
    limit applies, in Kafka's order: (user, client id), (user, default client id), (user), (default user, client id),
    (default user, default client id), (default user), (client id), (default client id).
    """
    if not limits:
        return None
    for user_name in (user, None):
        for client_name in (client_id, None):
            bound = limits.get(((CLIENT_ID, client_name), (USER, user_name)))
            if bound is not None:
                return Limit(Bucket(user, client_id), bound, _rule(user_name, client_name, of_both=True))
        bound = limits.get(((USER, user_name),))
        if bound is not None:
            return Limit(Bucket(user, ""), bound, _rule(user_name))
    for client_name in (client_id, None):
        bound = limits.get(((CLIENT_ID, client_name),))
        if bound is not None:
            return Limit(Bucket("", client_id), bound, _rule(client_id=client_name, of_user=False))
    return None


def _rule(user: str | None = None, client_id: str | None = None, *, of_user: bool = True, of_both: bool = False) -> str:
    """Returns the entity of a quota as text, such as "user alice, default client-id".

    The entity is a user, a client id if `of_user` is False, or both if `of_both` is True. The name None stands for the
    default.
    """
    parts = []
    if of_user or of_both:
        parts.append("default user" if user is None else f"user {user}")
    if not of_user or of_both:
        parts.append("default client-id" if client_id is None else f"client-id {client_id}")
    return ", ".join(parts)


class StoredLimits:
    """The limits of one quota key, such as producer_byte_rate, as the cluster metadata contains them."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._limits: dict[QuotaEntity, float] = {}

    @property
    def is_empty(self) -> bool:
        """True if no client has a limit."""
        return not self._limits

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies the quotas of a metadata image."""
        self._limits = limits_of_key(quotas, self._key)

    def find(self, principal: Principal, client_id: str) -> Limit | None:
        """Returns the limit of the client, or None if there is none."""
        return find_limit(self._limits, principal.name, client_id)

    def is_outdated(self) -> bool:
        """Returns False: stored limits change only by `apply`. A callback may change its limits at any time."""
        return False


class Limits(Protocol):
    """The limits of one kind of quota: StoredLimits, or those of an administrator's own class."""

    @property
    def is_empty(self) -> bool: ...

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None: ...

    def find(self, principal: Principal, client_id: str) -> Limit | None: ...

    def is_outdated(self) -> bool: ...
