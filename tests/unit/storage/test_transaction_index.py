"""The transaction index: 34-byte entries, collection, truncation."""

import pytest

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.transaction_index import AbortedTransaction, CorruptTransactionIndex, TransactionIndex


@pytest.fixture
def index(tmp_path):
    return TransactionIndex(str(tmp_path / "0.txnindex"), Filesystem())


def test_entry_layout(index, tmp_path):
    assert index.entries() == []
    index.append(AbortedTransaction(1, 2, 3, 4))
    content = (tmp_path / "0.txnindex").read_bytes()
    assert content.hex() == "0000" + "".join(f"{value:016x}" for value in (1, 2, 3, 4))
    assert index.entries() == [(1, 2, 3, 4)]


def test_transactions_that_overlap_a_fetch_are_collected(index):
    for entry in ((1, 0, 10, 5), (2, 5, 15, 16), (3, 20, 30, 31)):
        index.append(AbortedTransaction(*entry))
    assert index.collect(11, 18) == ([(2, 5, 15, 16)], True)
    assert index.collect(0, 100) == ([(1, 0, 10, 5), (2, 5, 15, 16), (3, 20, 30, 31)], False)
    assert index.collect(16, 20) == ([], True)


def test_a_truncation_removes_entries_from_the_offset_on(index):
    for entry in ((1, 0, 10, 11), (2, 5, 15, 16)):
        index.append(AbortedTransaction(*entry))
    index.truncate_to(16)
    assert len(index.entries()) == 2
    index.truncate_to(15)
    assert index.entries() == [(1, 0, 10, 11)]
    with pytest.raises(ValueError, match="last offset"):
        index.append(AbortedTransaction(3, 1, 10, 11))


def test_a_damaged_index_is_refused(index, tmp_path):
    (tmp_path / "0.txnindex").write_bytes(bytes(33))
    with pytest.raises(CorruptTransactionIndex):
        index.entries()
    (tmp_path / "0.txnindex").write_bytes(b"\1" + bytes(33))
    with pytest.raises(CorruptTransactionIndex):
        index.entries()
