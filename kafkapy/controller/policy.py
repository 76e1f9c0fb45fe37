"""The administrator's own policies, which may refuse new topics and changes of configuration (KIP-108, KIP-133).

    create.topic.policy.class.name    validate(CreateTopicRequest)
    alter.config.policy.class.name    validate(AlterConfigRequest)

A policy is called on the quorum thread, which runs the controller, after all other checks of the change have passed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.python_class import make_plugin
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

logger = logging.getLogger("kafka.controller.QuorumController")

CREATE_TOPIC_KEY = "create.topic.policy.class.name"
ALTER_CONFIG_KEY = "alter.config.policy.class.name"
METHODS = ("configure", "validate", "close")


class PolicyViolation(ApiError):
    """Raised by a policy that refuses a change; clients get POLICY_VIOLATION with the message."""

    def __init__(self, message: str) -> None:
        super().__init__(Error.POLICY_VIOLATION, message)


class CreateTopicRequest(NamedTuple):
    """The description of a topic to be created, as the create-topic policy receives it.

    If the client assigned the replicas itself, `replica_assignments` maps each partition id to its broker ids, and
    `num_partitions` and `replication_factor` are None. Otherwise the two numbers are set, to the broker's defaults if
    the client named none, and `replica_assignments` is None.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replica_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


class AlterConfigRequest(NamedTuple):
    """A change of the configuration of one resource; `configs` maps keys to new values, None if the override is
    removed.

    Resource types are Kafka's numbers: 2 topic, 4 broker, 16 client metrics, 32 group. The policy is also called for
    the configuration of a new topic.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class Policy(Protocol):
    """The interface of the policy classes that create.topic.policy.class.name and alter.config.policy.class.name name.
    A policy class is constructed without arguments."""

    def configure(self, configs: dict[str, str]) -> None:
        """Is called once, before `validate`, with the keys and values of the broker's configuration file."""

    def validate(self, request: Any) -> None:
        """Raises PolicyViolation to refuse `request`, a CreateTopicRequest or an AlterConfigRequest.

        If it raises another ApiError, the client gets that error; after any other exception it gets
        UNKNOWN_SERVER_ERROR.
        """

    def close(self) -> None:
        """Is called once, when the broker stops."""


class PolicyFailure(ApiError):
    """Raised when a policy raises an exception that is not an ApiError. The change is refused without a message, as in
    Apache Kafka."""

    def __init__(self) -> None:
        super().__init__(Error.UNKNOWN_SERVER_ERROR)
        self.message = None  # type: ignore[assignment]


class Policies:
    """Owns the policy for new topics and the policy for changes of configuration; each is None if none is configured.
    Used only on the quorum thread, which runs the controller.
    """

    def __init__(self, create_topic: Policy | None = None, alter_config: Policy | None = None) -> None:
        self._create_topic = create_topic
        self._alter_config = alter_config

    @classmethod
    def from_config(cls, config: BrokerConfig) -> Policies:
        """Constructs and configures the policies that `config` names.

        Raises ConfigError, which names the configuration key, if a policy class cannot be used.
        """
        return cls(_made(config, CREATE_TOPIC_KEY), _made(config, ALTER_CONFIG_KEY))

    def check_new_topic(self, request: CreateTopicRequest) -> None:
        """Raises ApiError if the create-topic policy refuses the topic. If no policy is configured, every topic is
        accepted."""
        if self._create_topic is not None:
            _ask(self._create_topic, request)

    def check_config_change(self, request: AlterConfigRequest) -> None:
        """Raises ApiError if the alter-config policy refuses the change. If no policy is configured, every
        change is accepted."""
        if self._alter_config is not None:
            _ask(self._alter_config, request)

    def close(self) -> None:
        for policy in (self._create_topic, self._alter_config):
            if policy is not None:
                try:
                    policy.close()
                except Exception:  # An error in the administrator's code does not keep the broker from stopping.
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
    return make_plugin(key, text, METHODS, config.originals) if text else None
