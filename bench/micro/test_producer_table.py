"""Producer table: finding the entry of one of 10,000 producers, and adding a batch to the entry."""

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry, ProducerTable


def crowded() -> ProducerTable:
    table = ProducerTable()
    for producer_id in range(10_000):
        table[producer_id] = ProducerEntry(producer_id, 0)
    return table


def test_get(benchmark):
    assert benchmark(crowded().get, 7_777).producer_id == 7_777


def test_add_batch(benchmark):
    entry = ProducerEntry(1, 0)
    benchmark(entry.add, 0, BatchMetadata(0, 9, 100, 109, 1_000))
