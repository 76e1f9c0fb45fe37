"""Producers by id: the open table against a dictionary, and the ring of five batches."""

import random

import pytest

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry, ProducerTable


@pytest.mark.parametrize("seed", range(5))
def test_the_table_agrees_with_a_dictionary(seed):
    chance = random.Random(seed)
    table, expected = ProducerTable(), {}
    for _ in range(3000):
        producer_id = chance.choice([chance.randrange(60), chance.randrange(60) << 32, 2**63 - 1 - chance.randrange(9)])
        action = chance.random()
        if action < 0.6:
            entry = ProducerEntry(producer_id)
            table[producer_id] = expected[producer_id] = entry
        elif action < 0.65 and expected:
            gone = chance.sample(sorted(expected), chance.randint(1, min(5, len(expected))))
            table.remove_all(gone)
            for each in gone:
                del expected[each]
        elif action < 0.652:
            table.clear()
            expected.clear()
        assert table.get(producer_id) is expected.get(producer_id)
        assert len(table) == len(expected)
    assert {producer_id: table.get(producer_id) for producer_id in table} == expected


def test_an_entry_is_kept_under_its_own_id():
    with pytest.raises(ValueError, match="is not the producer 2"):
        ProducerTable()[2] = ProducerEntry(1)
    with pytest.raises(KeyError):
        ProducerTable().remove_all([1])


def test_five_batches_are_kept_of_one_epoch():
    entry = ProducerEntry(7, 1)
    batches = [BatchMetadata(at * 10, at * 10 + 9, at * 100, at * 100 + 9, at) for at in range(7)]
    for batch in batches:
        entry.add(1, batch)
    assert entry.batches == batches[2:]
    assert (entry.last_batch, entry.last_sequence, entry.last_timestamp) == (batches[6], 69, 6)
    assert entry.find_duplicate(1, 20, 29) == batches[2]
    assert entry.find_duplicate(1, 10, 19) is None
    assert entry.find_duplicate(2, 20, 29) is None
    entry.add(2, batches[0])
    assert (entry.producer_epoch, entry.batches) == (2, [batches[0]])
    entry.raise_epoch(3)
    assert (entry.batches, entry.last_batch, entry.last_sequence) == ([], None, -1)
