"""The broker or the application of a transactional chain is killed, or a zombie returns, a hundred times.

KAFKAPY_CHAIN_KILLS: the number of kills (100). KAFKAPY_CHAIN_SEED: the seed of the sequence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.clients.test_transaction_chain import CLIENTS, carry_chain


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_input_exactly_once(client: str, tmp_path: Path) -> None:
    carry_chain(client, tmp_path, int(os.environ.get("KAFKAPY_CHAIN_KILLS", "100")))
