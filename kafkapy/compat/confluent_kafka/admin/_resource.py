"""The kinds of resources and of patterns of their names."""

from __future__ import annotations

from kafkapy.compat.confluent_kafka import _constants as numbers
from kafkapy.compat.confluent_kafka._model import OrderedEnum


class ResourceType(OrderedEnum):
    """The kinds of resources that have a configuration or permissions."""

    UNKNOWN = numbers.RESOURCE_UNKNOWN
    ANY = numbers.RESOURCE_ANY
    TOPIC = numbers.RESOURCE_TOPIC
    GROUP = numbers.RESOURCE_GROUP
    BROKER = numbers.RESOURCE_BROKER
    TRANSACTIONAL_ID = numbers.RESOURCE_TRANSACTIONAL_ID


class ResourcePatternType(OrderedEnum):
    """The ways to compare the name in a permission with the name of a resource; ANY and MATCH are for filters."""

    UNKNOWN = numbers.RESOURCE_PATTERN_UNKNOWN
    ANY = numbers.RESOURCE_PATTERN_ANY
    MATCH = numbers.RESOURCE_PATTERN_MATCH
    LITERAL = numbers.RESOURCE_PATTERN_LITERAL
    PREFIXED = numbers.RESOURCE_PATTERN_PREFIXED
