"""10,000 random workloads for the log cleaner; a failure names its seed."""

import pytest

from tests.harness.cleaner import check_cleaned, run_workload

CASES = 10_000
SLICES = 100


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(SLICES))
def test_workloads(tmp_path, part):
    for seed in range(100_000 + part, 100_000 + CASES, SLICES):
        print(f"seed {seed}")
        root = tmp_path / str(seed)
        root.mkdir()
        workload = run_workload(root, seed, steps=30)
        check_cleaned(workload)
        workload.harness.log_.close_after_failure()
