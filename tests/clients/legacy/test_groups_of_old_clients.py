"""Groups with the API versions of old clients: a second member continues where the first one stopped."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from tests.clients.legacy.carriage import Content, assert_seen, records_for
from tests.clients.legacy.catalog import BY_NAME, TRIED_CLIENTS
from tests.clients.legacy.clients import TriedClients

WRITER = "confluent-kafka-as-0.10.0"
FIRST, ALL = 40, 60


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [tried.name for tried in TRIED_CLIENTS if tried.groups])
def test_a_group_goes_on_where_it_stopped(
    name: str, tried: TriedClients, empty_topic: Callable[[int], str], bootstrap: str
) -> None:
    topic, group = empty_topic(1), f"group-{uuid.uuid4()}"
    several = records_for(BY_NAME[WRITER], ALL, Content.TEXT)
    records = [record._replace(partition=0, offset=offset) for offset, record in enumerate(several)]
    for share in (records[:FIRST], records[FIRST:]):
        tried[WRITER].produce(bootstrap, topic, "none", share)
        received = tried[name].consume_in_group(bootstrap, topic, group, len(share))
        assert_seen(BY_NAME[name], share, received)
