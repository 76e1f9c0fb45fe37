"""Configuration keys: kafkapy's own, for what Apache Kafka leaves to other programs."""

from kafkapy.config.row import INT, LOW, READ_ONLY, STRING, key
from kafkapy.config.validator import ADDRESS, at_least

ROWS = (
    key(
        "kafkapy.metrics.listener", STRING, "", ADDRESS, LOW, READ_ONLY,
        "Where metrics for Prometheus (/metrics) and health (/live, /ready) are served over HTTP: host:port, or a port on "
        "loopback, as in localhost:9404. Nothing is served when it is empty. Whoever reaches it may read: it has no "
        "authentication.",
    ),
    key(
        "kafkapy.metrics.series.limit", INT, 2000, at_least(1), LOW, READ_ONLY,
        "How many topics, partitions, groups, committed offsets and values of clients, of each kind, have series of their "
        "own on the metrics page; the others are summed under \"(other)\".",
    ),
)
