"""Random keyed workloads that are cleaned while they are written, compared with a dict; tests/full runs more of them.

They contain tombstones, transactions, idempotent producers, all codecs and old formats, and use maps and buffers that
are too small.
"""

import pytest

from tests.harness.cleaner import check_cleaned, run_workload


@pytest.mark.parametrize("seed", range(40))
def test_a_cleaned_workload_has_the_newest_values(tmp_path, seed):
    check_cleaned(run_workload(tmp_path, seed))


@pytest.mark.parametrize("seed", range(5))
def test_a_longer_workload_has_the_newest_values(tmp_path, seed):
    check_cleaned(run_workload(tmp_path, 1000 + seed, steps=150))
