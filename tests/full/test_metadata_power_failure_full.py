"""Pulls the plug at every single sync of a metadata log's life; tests/crash does it at a sample of them."""

from tests.crash.test_metadata_power_failure import check_moment, syncs_of_a_life


def test_every_moment(tmp_path):
    for fail_at in range(syncs_of_a_life(tmp_path)):
        check_moment(tmp_path, fail_at)
