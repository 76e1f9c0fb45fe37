"""Configuration: one row per key, `.properties` files, and typed values of brokers and topics."""

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.topic_config import TopicConfig

__all__ = ["BrokerConfig", "TopicConfig"]
