"""Configuration keys: metrics and quotas."""

from kafkapy.config.row import CLASS, CLUSTER_WIDE, INT, LIST, LONG, LOW, READ_ONLY, STRING, inert, key
from kafkapy.config.validator import ANY, at_least, list_of

ROWS = (
    inert(
        "metric.reporters", LIST, "org.apache.kafka.common.metrics.JmxReporter", list_of(), LOW, CLUSTER_WIDE,
        "Java classes that receive metrics; kafkapy serves metrics to Prometheus.",
    ),
    inert("metrics.num.samples", INT, 2, at_least(1), LOW, READ_ONLY, "Samples kept for a metric."),
    inert("metrics.sample.window.ms", LONG, 30000, at_least(1), LOW, READ_ONLY, "Length of a sample."),
    inert("metrics.recording.level", STRING, "INFO", ANY, LOW, READ_ONLY, "Detail of the metrics recorded."),
    inert("kafka.metrics.reporters", LIST, "", list_of(), LOW, READ_ONLY, "Java classes that receive Yammer metrics."),
    inert(
        "kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW, READ_ONLY,
        "Interval of the Yammer reporters.",
    ),
    key(
        "client.quota.callback.class", CLASS, None, ANY, LOW, READ_ONLY,
        "Python class that decides client quotas, as package.module:Class.",
    ),
    key("quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, "Samples kept for client quotas."),
    key("quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, "Length of a sample for client quotas."),
)
