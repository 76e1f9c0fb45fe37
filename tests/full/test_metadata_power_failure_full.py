"""Simulates a power failure at every sync of a metadata log; tests/crash does so at a sample of them."""

from tests.crash.test_metadata_power_failure import check_moment, syncs_of_a_life


def test_every_moment(tmp_path):
    for fail_at in range(syncs_of_a_life(tmp_path)):
        check_moment(tmp_path, fail_at)
