"""A partition that was added after the last description of its topic is found."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.client.admin import PartitionDescription, TopicDescription
from kafkapy.rest.cluster import ClusterClients


@pytest.mark.parametrize(("number", "is_found"), [(-1, False), (0, True), (2, True), (3, False)])
def test_a_partition_is_looked_up_again_if_the_last_description_lacks_it(number, is_found):
    counts = iter((1, 3))

    class Clients(ClusterClients):
        def __init__(self):
            self._described = {}
            self._describe_s = 30.0

        async def run(self, operation):
            numbers = range(next(counts))
            return TopicDescription(
                "t", b"", False, tuple(PartitionDescription(each, 1, 0, (1,), (1,)) for each in numbers)
            )

    async def look_up():
        clients = Clients()
        await clients.describe("t")
        return await clients.has_partition("t", number)

    assert asyncio.run(look_up()) is is_found
