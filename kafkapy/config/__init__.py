"""Configuration: one row per key, `.properties` files, and the broker's and the topics' typed values."""

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.topic_config import TopicConfig

__all__ = ["BrokerConfig", "TopicConfig"]
