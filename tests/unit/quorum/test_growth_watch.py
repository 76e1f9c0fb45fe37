"""The notice that a node is no longer its whole cluster."""

import pytest

from kafkapy.quorum.growth_watch import GrowthWatch
from tests.harness.metadata import bootstrapped, with_brokers


@pytest.mark.parametrize("kind", ["broker", "voter"])
def test_another_broker_or_voter_is_noticed_once(kind):
    voters, grown = {1}, []
    watch = GrowthWatch(1, lambda: voters == {1}, lambda: grown.append(kind))
    alone = with_brokers(bootstrapped(), 1)
    watch.check(bootstrapped())
    watch.check(alone)
    assert not grown
    image = with_brokers(alone, 2) if kind == "broker" else alone
    if kind == "voter":
        voters.add(2)
    for _ in range(2):
        watch.check(image)
    assert grown == [kind]
