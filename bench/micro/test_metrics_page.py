"""The native metrics page: families of 1,000 topics and of 1,000 partitions."""

from kafkapy._core.broker_state.metrics_page import MetricsPage, PartitionRows
from kafkapy._core.broker_state.topic_counters import COUNTER_NAMES, TopicCounters

COUNT = 1_000


def test_topic_families(benchmark):
    topics = [TopicCounters(b'{topic="topic-%d"}' % number) for number in range(COUNT)]

    def write():
        page = MetricsPage()
        for counter in range(len(COUNTER_NAMES)):
            page.topic_family(b"kafka_server_brokertopicmetrics_total", topics, counter)
        return len(page)

    assert benchmark(write) > COUNT * len(COUNTER_NAMES)


def test_partition_family(benchmark):
    rows = PartitionRows([b'{topic="topic",partition="%d"}' % number for number in range(COUNT)], 1)
    for row in range(COUNT):
        rows.put(row, 0, row * 7919)

    def write():
        page = MetricsPage()
        page.partition_family(b"kafka_log_log_size", rows, 0)
        return len(page)

    assert benchmark(write) > COUNT
