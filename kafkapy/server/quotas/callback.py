"""The administrator's own class that decides the quotas of clients: `client.quota.callback.class` (KIP-257)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.python_class import make_plugin
from kafkapy.metadata.image import QuotaEntity
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.precedence import CLIENT_ID, USER, Bucket, Limit, limits_of_key

logger = logging.getLogger("kafka.server.ClientQuotaManager")

QUOTA_CALLBACK_KEY = "client.quota.callback.class"
METHODS = ("quota_tags", "quota_limit", "update_quota", "remove_quota", "quota_reset_required", "close")


class QuotaCallback(Protocol):
    """The interface of the class that the configuration names. It is constructed without arguments, and must not
    block: every method runs on the reactor's thread.

    The argument `quota` of its methods is producer_byte_rate, consumer_byte_rate, request_percentage or
    controller_mutation_rate.
    """

    def configure(self, configs: dict[str, str]) -> None:
        """Receives the keys and values of the broker's configuration file. Called once, before the other methods."""

    def quota_tags(self, quota: str, principal: Principal, client_id: str) -> Mapping[str, str]:
        """Returns the tags by which the clients are grouped: clients with equal tags share one limit.

        `quota` is the configuration key of a quota, such as producer_byte_rate.
        """
        ...

    def quota_limit(self, quota: str, tags: Mapping[str, str]) -> float | None:
        """Returns the limit of the clients with these tags, or None if they have none.

        `quota` is the configuration key of a quota. The limit is in bytes per second for producer_byte_rate and
        consumer_byte_rate, in percent of a thread's time for request_percentage, and in created and deleted partitions
        per second for controller_mutation_rate.
        """

    def update_quota(self, quota: str, entity: Mapping[str, str | None], value: float) -> None:
        """Receives a quota that is stored in the cluster. Called for each quota at the start and at each change.

        `quota` is its configuration key, such as producer_byte_rate, and `value` the stored number, in the unit of
        `quota_limit`. `entity` maps `user` and `client-id` to names; the name None stands for the default.
        """

    def remove_quota(self, quota: str, entity: Mapping[str, str | None]) -> None:
        """Receives the removal of a quota from the quotas that are stored in the cluster.

        The arguments are those of `update_quota`: the configuration key of the quota, and its entity.
        """

    def quota_reset_required(self, quota: str) -> bool:
        """Returns whether limits of a quota have changed since the last call, for another reason than the calls of
        `update_quota` and `remove_quota`. If so, `quota_limit` is called again for each client.

        `quota` is the configuration key, such as producer_byte_rate. This method is called once a second.
        """
        ...

    def close(self) -> None:
        """Releases what the object holds. Called once, when the broker stops."""


def make_callback(config: BrokerConfig) -> QuotaCallback | None:
    """Constructs and configures the callback; returns None if the configuration names none. Raises ConfigError."""
    text = config.client_quota_callback_class
    return make_plugin(QUOTA_CALLBACK_KEY, text, METHODS, config.originals) if text else None


class CallbackLimits:
    """The limits of one kind of quota, as a callback decides them. A failure of the callback is logged, and then
    nothing limits the client."""

    def __init__(self, callback: QuotaCallback, key: str) -> None:
        self._callback = callback
        self._key = key
        self._stored: dict[QuotaEntity, float] = {}

    @property
    def is_empty(self) -> bool:
        """False, because only the callback knows whether a client has a limit."""
        return False

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Notifies the callback of the stored quotas that have changed since the last call."""
        before, self._stored = self._stored, limits_of_key(quotas, self._key)
        try:
            for entity in before.keys() - self._stored.keys():
                self._callback.remove_quota(self._key, dict(entity))
            for entity, value in self._stored.items():
                if before.get(entity) != value:
                    self._callback.update_quota(self._key, dict(entity), value)
        except Exception:
            logger.exception("The quota callback failed to apply a change of %s", self._key)

    def find(self, principal: Principal, client_id: str) -> Limit | None:
        """Returns the limit of the client, or None if there is none."""
        try:
            tags = dict(self._callback.quota_tags(self._key, principal, client_id))
            bound = self._callback.quota_limit(self._key, tags)
        except Exception:
            logger.exception("The quota callback failed for %s", principal)
            return None
        if bound is None or not bound > 0:
            return None
        user, name = tags.pop(USER, ""), tags.pop(CLIENT_ID, "")
        return Limit(Bucket(user, name, tuple(sorted(tags.items()))), bound, "client.quota.callback.class")

    def is_outdated(self) -> bool:
        """Returns the callback's `quota_reset_required`: whether it has changed limits since the last call."""
        try:
            return self._callback.quota_reset_required(self._key)
        except Exception:
            logger.exception("The quota callback failed to say whether limits have changed")
            return False
