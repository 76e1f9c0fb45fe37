"""Configuration keys that Kafka's brokers read but leave out of DescribeConfigs; mostly tests set them."""

from kafkapy.config.row import INT, LONG, LOW, READ_ONLY, key
from kafkapy.config.validator import at_least

ROWS = (
    key(
        "log.initial.task.delay.ms", LONG, 30000, at_least(0), LOW, READ_ONLY,
        "Time after the start before the first run of retention, flushing and checkpoints.",
    ),
    key(
        "producer.id.expiration.check.interval.ms", INT, 600000, at_least(1), LOW, READ_ONLY,
        "Interval of the check for idle producers' state.",
    ),
)
