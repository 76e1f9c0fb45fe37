"""Every message in every version, with many more values than the usual run."""

import pytest

from tests.property.test_messages import check
from tests.protocol_messages import every_version


@pytest.mark.full
@pytest.mark.parametrize(("name", "version"), every_version())
def test_round_trip(name: str, version: int) -> None:
    for seed in range(1000, 1200):
        check(name, version, seed)
