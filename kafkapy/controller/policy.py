"""Policies of the administrator's own: judges of new topics and of changes of configuration (KIP-108, KIP-133).

    create.topic.policy.class.name    validate(CreateTopicRequest)
    alter.config.policy.class.name    validate(AlterConfigRequest)

They are asked last, on the controller's thread, about what would be done otherwise; what they do not object to is done.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.python_class import load_class
from kafkapy.errors import ApiError, ConfigError, Error

logger = logging.getLogger("kafka.controller.QuorumController")

CREATE_TOPIC_KEY = "create.topic.policy.class.name"
ALTER_CONFIG_KEY = "alter.config.policy.class.name"
METHODS = ("configure", "validate", "close")


class PolicyViolation(ApiError):
    """Raised by a policy that objects; clients get POLICY_VIOLATION with the message."""

    def __init__(self, message: str) -> None:
        super().__init__(Error.POLICY_VIOLATION, message)


class CreateTopicRequest(NamedTuple):
    """A topic to be created.

    Either the two counts are given, defaults filled in, or `replica_assignments`: partition -> broker ids.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replica_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


class AlterConfigRequest(NamedTuple):
    """What is asked of one resource: key -> its new value, None if the override goes.

    Resource types are Kafka's numbers: 2 topic, 4 broker, 16 client metrics, 32 group. A topic created with
    configuration is asked about too.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class Policy(Protocol):
    """What the class named in the configuration has; it is made without arguments."""

    def configure(self, configs: dict[str, str]) -> None:
        """Once, before anything is asked: the broker's configuration as it stands in its file."""

    def validate(self, request: Any) -> None:
        """Raises PolicyViolation to object. Another ApiError is answered as it is, anything else as unknown."""

    def close(self) -> None:
        """Once, when the broker stops."""


class PolicyFailure(ApiError):
    """A policy failed, which objects without saying why: as in Kafka there is no message."""

    def __init__(self) -> None:
        super().__init__(Error.UNKNOWN_SERVER_ERROR)
        self.message = None  # type: ignore[assignment]


class Policies:
    """Owns the two policies, either of which may be None. Asked on the controller's thread."""

    def __init__(self, create_topic: Policy | None = None, alter_config: Policy | None = None) -> None:
        self._create_topic = create_topic
        self._alter_config = alter_config

    @classmethod
    def from_config(cls, config: BrokerConfig) -> Policies:
        """Made and configured; ConfigError, which names the key, if that fails."""
        return cls(_made(config, CREATE_TOPIC_KEY), _made(config, ALTER_CONFIG_KEY))

    def check_new_topic(self, request: CreateTopicRequest) -> None:
        """ApiError if the policy objects."""
        if self._create_topic is not None:
            _ask(self._create_topic, request)

    def check_config_change(self, request: AlterConfigRequest) -> None:
        """ApiError if the policy objects."""
        if self._alter_config is not None:
            _ask(self._alter_config, request)

    def close(self) -> None:
        for policy in (self._create_topic, self._alter_config):
            if policy is not None:
                try:
                    policy.close()
                except Exception:  # of the administrator's code; the broker stops all the same
                    logger.exception("The policy %s failed to close", type(policy).__name__)


NO_POLICIES = Policies()


def _ask(policy: Policy, request: CreateTopicRequest | AlterConfigRequest) -> None:
    try:
        policy.validate(request)
    except ApiError:
        raise
    except Exception as error:
        logger.exception("The policy %s failed at %s", type(policy).__name__, request)
        raise PolicyFailure from error


def _made(config: BrokerConfig, key: str) -> Policy | None:
    text = config[key]
    if not text:
        return None
    try:
        policy: Policy = load_class(text)()
        missing = [method for method in METHODS if not callable(getattr(policy, method, None))]
        if missing:
            raise TypeError(f"it has no method {missing[0]}")
        policy.configure(dict(config.originals))
    except Exception as error:
        raise ConfigError(f"{key}={text}: {type(error).__name__}: {error}") from error
    return policy
