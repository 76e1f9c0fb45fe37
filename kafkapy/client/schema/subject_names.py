"""The names of subjects under which schemas are registered, as Confluent's strategies form them."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.errors import ConfigError

KEY, VALUE = "key", "value"
# Returns the subject from the topic, KEY or VALUE, and the full name of the record's type ("" without one).
SubjectName = Callable[[str, str, str], str]


def topic_subject(topic: str, part: str, record: str) -> str:
    """Returns `topic-key` or `topic-value`; `part` is "key" or "value". This strategy is the default."""
    return f"{topic}-{part}"


def record_subject(topic: str, part: str, record: str) -> str:
    """Returns `record`, the full name of the schema's type. Raises ConfigError for a type without a name ("")."""
    return _required(record)


def topic_record_subject(topic: str, part: str, record: str) -> str:
    """Returns the topic and `record`, the full name of the schema's type, with a hyphen between them.

    Raises ConfigError for a type without a name ("").
    """
    return f"{topic}-{_required(record)}"


def _required(record: str) -> str:
    if not record:
        raise ConfigError("the schema's type has no name, which this subject name strategy needs")
    return record


STRATEGIES: dict[str, SubjectName] = {
    "TOPIC": topic_subject,
    "RECORD": record_subject,
    "TOPIC_RECORD": topic_record_subject,
    "io.confluent.kafka.serializers.subject.TopicNameStrategy": topic_subject,
    "io.confluent.kafka.serializers.subject.RecordNameStrategy": record_subject,
    "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy": topic_record_subject,
}


def find_strategy(configured: str | SubjectName) -> SubjectName:
    """Returns a strategy by its short name or by the name of its class in Java; a callable is returned unchanged.

    Raises ConfigError for an unknown name.
    """
    if callable(configured):
        return configured
    if configured not in STRATEGIES:
        names = ", ".join(name for name in STRATEGIES if "." not in name)
        raise ConfigError(f"the subject name strategy {configured} is unknown; accepted are {names} and a callable")
    return STRATEGIES[configured]
