"""Random keyed workloads, cleaned while they are written, against a dict: a sample, the whole is in tests/full.

Tombstones, transactions, idempotent producers, all codecs, old formats; maps and buffers that are too small.
"""

import pytest

from tests.harness.cleaner import check_cleaned, run_workload


@pytest.mark.parametrize("seed", range(40))
def test_a_workload(tmp_path, seed):
    check_cleaned(run_workload(tmp_path, seed))


@pytest.mark.parametrize("seed", range(5))
def test_a_longer_one(tmp_path, seed):
    check_cleaned(run_workload(tmp_path, 1000 + seed, steps=150))
