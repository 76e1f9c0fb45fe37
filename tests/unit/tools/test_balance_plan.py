"""Plans that even out a cluster: what they preserve for any cluster, and the fewest moves in simple cases."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.tools.balance_execution import next_moves
from kafkapy.tools.balance_plan import (
    BalancePlan,
    BrokerState,
    PartitionLoad,
    Rules,
    broker_loads,
    plan_balance,
)
from kafkapy.types import TopicPartition

Cluster = tuple[list[BrokerState], list[PartitionLoad]]


def load(number: int, *replicas: int, size: float = 1.0, topic: str = "t", **others: float) -> PartitionLoad:
    return PartitionLoad(TopicPartition(topic, number), replicas, {"disk": size, **others})


def brokers(*racks: str | None) -> list[BrokerState]:
    """Returns brokers with the ids 1 to n."""
    return [BrokerState(number, rack) for number, rack in enumerate(racks, 1)]


def after(partitions: list[PartitionLoad], plan: BalancePlan) -> list[PartitionLoad]:
    return [each._replace(replicas=plan.replicas.get(each.partition, each.replicas)) for each in partitions]


def copies(partitions: list[PartitionLoad], plan: BalancePlan) -> int:
    """Returns the number of replicas that the plan creates."""
    return sum(
        len(set(new.replicas) - set(old.replicas)) for old, new in zip(partitions, after(partitions, plan), strict=True)
    )


def leaders(partitions: list[PartitionLoad]) -> Counter[int]:
    return Counter(each.replicas[0] for each in partitions)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    racks = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6))
    has_racks = draw(st.booleans())
    live = [
        BrokerState(number, rack if has_racks else None, draw(st.integers(0, 5)) > 0)
        for number, rack in enumerate(racks, 1)
    ]
    ids = range(1, len(racks) + 2)  # the last one is dead
    replicas = st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True)
    partitions = [
        load(
            number,
            *each,
            size=draw(st.integers(0, 1 << 40)),
            traffic=draw(st.floats(0, 10)),
            topic=draw(st.sampled_from(["t", "u"])),
        )
        for number, each in enumerate(draw(st.lists(replicas, max_size=25)))
    ]
    return live, partitions


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    return Rules(
        resources=draw(st.sampled_from([(), ("disk",), ("disk", "traffic")])),
        leaders=draw(st.booleans()),
        topics=draw(st.sampled_from([None, {"t"}])),
        kept=draw(st.sampled_from([{}, {"t": {1, 2}}])),
        emptied=draw(st.sets(st.integers(1, 7), max_size=2)),
        most_per_broker=draw(st.sampled_from([3, 1000])),
        most_per_topic=draw(st.sampled_from([2, 1000])),
    )


def imbalance(live: list[BrokerState], partitions: list[PartitionLoad], resource: str) -> float:
    loads = broker_loads(partitions, resource)
    return sum(float(loads[each.broker_id]) ** 2 for each in live)


@settings(max_examples=300, deadline=None)
@given(clusters(), rules())
def test_no_plan_loses_replicas_racks_or_rules(cluster: Cluster, wanted: Rules) -> None:
    live, partitions = cluster
    plan = plan_balance(live, partitions, wanted)
    racks = {each.broker_id: each.rack for each in live}
    may_have = {each.broker_id for each in live if each.accepts_replicas} - set(wanted.emptied)
    moved_of_broker: Counter[int] = Counter()
    moved_of_topic: Counter[str] = Counter()
    for old, new in zip(partitions, after(partitions, plan), strict=True):
        topic = old.partition.topic
        assert len(new.replicas) == len(set(new.replicas)) == len(old.replicas)
        added, removed = set(new.replicas) - set(old.replicas), set(old.replicas) - set(new.replicas)
        assert added <= may_have & set(wanted.kept.get(topic, may_have))
        if wanted.topics is not None and topic not in wanted.topics:
            assert new == old
        if all(racks.values()):
            assert len({racks.get(each) for each in new.replicas}) >= len({racks.get(each) for each in old.replicas})
        forbidden = {
            each for each in new.replicas if each in wanted.emptied or each not in wanted.kept.get(topic, {each})
        }
        assert not forbidden or old.partition in plan.unmoved or old == new
        moved_of_broker.update(added | removed)
        moved_of_topic[topic] += len(added)
    assert max(moved_of_broker.values(), default=0) <= wanted.most_per_broker
    assert max(moved_of_topic.values(), default=0) <= wanted.most_per_topic
    assert set(plan.replicas).isdisjoint(each.partition for each in partitions if each == after([each], plan)[0])


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_balance_lowers_the_imbalance_and_no_second_plan_raises_it(cluster: Cluster) -> None:
    live, partitions = cluster
    dead = len(live) + 1
    partitions = [each for each in partitions if dead not in each.replicas]
    once = after(partitions, plan_balance(live, partitions, Rules()))
    assert imbalance(live, once, "disk") <= imbalance(live, partitions, "disk") * (1 + 1e-9)
    twice = after(once, plan_balance(live, once, Rules()))
    assert imbalance(live, twice, "disk") <= imbalance(live, once, "disk") * (1 + 1e-9)


@given(st.integers(2, 6), st.integers(1, 40))
def test_leaders_of_fully_replicated_partitions_differ_by_at_most_one(count: int, partitions: int) -> None:
    live = brokers(*[None] * count)
    cluster = [load(number, *range(1, count + 1)) for number in range(partitions)]
    plan = plan_balance(live, cluster, Rules())
    found = leaders(after(cluster, plan))
    assert max(found.values()) - min(found[each.broker_id] for each in live) <= 1
    assert copies(cluster, plan) == 0


def test_a_balanced_cluster_is_left_alone() -> None:
    cluster = [load(0, 1, 2), load(1, 2, 3), load(2, 3, 1)]
    assert plan_balance(brokers(None, None, None), cluster, Rules()) == BalancePlan({}, {})


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    cluster = [load(number, 1 + number % 3) for number in range(12)]
    plan = plan_balance(brokers(None, None, None, None), cluster, Rules())
    assert set(plan.replicas.values()) == {(4,)}
    assert copies(cluster, plan) == 3
    assert set(leaders(after(cluster, plan)).values()) == {3}


def test_an_emptied_broker_loses_its_replicas_only() -> None:
    cluster = [load(0, 1, 2), load(1, 2, 3), load(2, 3, 1), load(3, 1, 3)]
    plan = plan_balance(brokers(None, None, None, None), cluster, Rules(emptied={3}, leaders=False, resources=()))
    assert copies(cluster, plan) == 3
    assert all(3 not in each.replicas for each in after(cluster, plan))
    assert not plan.unmoved


def test_a_dead_broker_can_be_emptied() -> None:
    plan = plan_balance(brokers(None, None), [load(0, 1, 9)], Rules(emptied={9}))
    assert plan.replicas == {TopicPartition("t", 0): (1, 2)}


@pytest.mark.parametrize("rack_aware", [True, False])
def test_the_only_broker_of_a_rack_is_emptied_only_without_racks(rack_aware: bool) -> None:
    wanted = Rules(emptied={1}, rack_aware=rack_aware)
    plan = plan_balance(brokers("a", "b", "b"), [load(0, 1, 2)], wanted)
    if rack_aware:
        assert plan.unmoved == {
            TopicPartition("t", 0): "without the replica on broker 1 the replicas would be in fewer racks"
        }
    else:
        assert plan.replicas == {TopicPartition("t", 0): (3, 2)}


def test_a_topic_is_kept_on_its_brokers() -> None:
    cluster = [load(number, 1 + number % 4, topic="kept") for number in range(4)]
    plan = plan_balance(brokers(*[None] * 4), cluster, Rules(kept={"kept": {1, 2}}))
    assert Counter(each.replicas for each in after(cluster, plan)) == {(1,): 2, (2,): 2}


def test_a_topic_that_has_more_replicas_than_brokers_is_reported() -> None:
    plan = plan_balance(brokers(None, None, None), [load(0, 1, 2)], Rules(kept={"t": {1}}))
    assert plan == BalancePlan({}, {TopicPartition("t", 0): "no other broker may have the replica on broker 2"})


def test_a_cordoned_broker_gets_nothing_but_gives_away() -> None:
    live = [BrokerState(1), BrokerState(2, None, accepts_replicas=False), BrokerState(3)]
    cluster = [load(number, 2) for number in range(6)]
    moved = after(cluster, plan_balance(live, cluster, Rules()))
    assert broker_loads(moved, "disk") == {1: 2, 2: 2, 3: 2}
    idle = [load(number, 1) for number in range(6)]
    assert broker_loads(after(idle, plan_balance(live, idle, Rules())), "disk")[2] == 0


def test_traffic_is_balanced_although_the_disks_are_even() -> None:
    cluster = [load(number, 1 + number // 2, traffic=[10, 10, 0, 0][number]) for number in range(4)]
    plan = plan_balance(brokers(None, None), cluster, Rules(resources=("disk", "traffic")))
    moved = after(cluster, plan)
    assert (broker_loads(moved, "disk"), broker_loads(moved, "traffic")) == ({1: 2, 2: 2}, {1: 10, 2: 10})
    assert copies(cluster, plan) == 2


def test_leaders_move_by_a_chain_if_no_partition_is_shared() -> None:
    cluster = [load(0, 1, 2), load(1, 1, 2), load(2, 2, 3)]
    plan = plan_balance(brokers(None, None, None), cluster, Rules(resources=()))
    assert plan.replicas == {TopicPartition("t", 0): (2, 1), TopicPartition("t", 2): (3, 2)}


def test_limits_stop_the_moves() -> None:
    cluster = [load(number, 1) for number in range(8)]
    live = brokers(None, None)
    assert copies(cluster, plan_balance(live, cluster, Rules(most_per_broker=2))) == 2
    plan = plan_balance(live, cluster, Rules(emptied={1}, most_per_topic=3))
    assert (copies(cluster, plan), set(plan.unmoved.values())) == (
        3,
        {"a limit on the number of moves keeps the replica on broker 1"},
    )


def test_a_large_cluster_is_planned() -> None:
    cluster = [load(number, *[1 + (number + each) % 3 for each in range(3)], size=number % 7) for number in range(600)]
    live = brokers(*[None] * 6)
    loads = broker_loads(after(cluster, plan_balance(live, cluster, Rules(tolerance=0.05))), "disk")
    mean = sum(loads.values()) / 6
    assert all(abs(value - mean) <= 0.05 * mean for value in loads.values())


def test_few_moves_of_a_broker_run_at_a_time() -> None:
    keys = [TopicPartition("t", number) for number in range(4)]
    current = {keys[0]: (1,), keys[1]: (1,), keys[2]: (3,), keys[3]: (1, 2)}
    wanted = {keys[0]: (2,), keys[1]: (2,), keys[2]: (4,), keys[3]: (2, 1)}
    assert next_moves(keys, (), wanted, current, 1) == [keys[0], keys[2], keys[3]]
    assert next_moves([keys[1]], [keys[0]], wanted, current, 1) == []
    assert next_moves([keys[1]], [keys[0]], wanted, current, 2) == [keys[1]]
