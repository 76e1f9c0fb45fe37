"""Configuration: one row per key, `.properties` files, and typed values of brokers and topics.

BrokerConfig and TopicConfig are imported when they are first used, because clients need only other modules of this
package: without this, a task of Spark would spend a quarter of its time for imports on the configuration of brokers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkapy.config.broker_config import BrokerConfig
    from kafkapy.config.topic_config import TopicConfig

__all__ = ["BrokerConfig", "TopicConfig"]
_MODULES = {"BrokerConfig": "broker_config", "TopicConfig": "topic_config"}


def __getattr__(name: str) -> Any:
    """Returns the class BrokerConfig or TopicConfig, whose module is imported at the first access."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
