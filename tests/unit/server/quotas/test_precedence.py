"""The order in which Kafka looks for the quota of a client."""

from __future__ import annotations

import itertools

from kafkapy.server.quotas.precedence import Bucket, find_limit, limits_of_key

# The entities that may limit user u with client id c, with the bucket that their limit applies to, and the rule's text.
ORDER = [
    ((("client-id", "c"), ("user", "u")), Bucket("u", "c"), "user u, client-id c"),
    ((("client-id", None), ("user", "u")), Bucket("u", "c"), "user u, default client-id"),
    ((("user", "u"),), Bucket("u", ""), "user u"),
    ((("client-id", "c"), ("user", None)), Bucket("u", "c"), "default user, client-id c"),
    ((("client-id", None), ("user", None)), Bucket("u", "c"), "default user, default client-id"),
    ((("user", None),), Bucket("u", ""), "default user"),
    ((("client-id", "c"),), Bucket("", "c"), "client-id c"),
    ((("client-id", None),), Bucket("", "c"), "default client-id"),
]


def test_the_first_entity_with_the_quota_decides() -> None:
    for present in itertools.product([False, True], repeat=len(ORDER)):
        limits = {entity: float(place) for place, (entity, *_) in enumerate(ORDER, 1) if present[place - 1]}
        limits |= {(("user", "other"),): 99.0, (("client-id", "other"),): 99.0}
        found = find_limit(limits, "u", "c")
        if not any(present):
            assert found is None
            continue
        place = present.index(True)
        assert found == (ORDER[place][1], place + 1, ORDER[place][2])


def test_no_limits() -> None:
    assert find_limit({}, "u", "c") is None


def test_an_entity_counts_only_for_the_keys_that_it_has() -> None:
    quotas = {(("user", "u"),): {"producer_byte_rate": 5.0}, (("user", None),): {"consumer_byte_rate": 7.0}}
    assert limits_of_key(quotas, "producer_byte_rate") == {(("user", "u"),): 5.0}
    assert limits_of_key(quotas, "request_percentage") == {}
