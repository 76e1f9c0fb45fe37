"""The change of one partition: cases of Apache Kafka 4.3's PartitionChangeBuilder."""

import pytest

from kafkapy.controller.partition_change import Elected, Election, PartitionChange
from kafkapy.metadata.topics_delta import merge_partition_change
from kafkapy.metadata.topics_image import NO_LEADER, RECOVERED, RECOVERING, PartitionImage
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord

TOPIC_ID = bytes(15) + b"\x09"
EVERYBODY = frozenset(range(10))


def partition(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, **fields):
    return PartitionImage(
        replicas=replicas,
        directories=tuple(bytes([replica]) * 16 for replica in replicas),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        elr=(),
        last_known_elr=(),
        leader=leader,
        leader_recovery_state=RECOVERED,
        leader_epoch=5,
        partition_epoch=7,
    )._replace(**fields)


def change_of(before, live=EVERYBODY, *, elr=True, min_isr=2, version=30, **targets):
    change = PartitionChange(
        TOPIC_ID, 0, before, version, lambda replica: replica in live, elr_enabled=elr, min_isr=min_isr
    )
    for name, value in targets.items():
        setattr(change, name, value)
    return change


def built(before, live=EVERYBODY, **options):
    """Returns the changed fields of the record, and the partition after it."""
    result = change_of(before, live, **options).build()
    if result is None:
        return {}, before
    record, _ = result
    default = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID)
    changed = {name: getattr(record, name) for name in record.FIELDS if getattr(record, name) != getattr(default, name)}
    return changed, merge_partition_change(before, record)


def test_nothing_changes_without_a_target():
    assert built(partition()) == ({}, partition())


# -- elections


def test_an_eligible_leader_replica_is_electable_only_while_the_isr_is_empty():
    before = partition(isr=(3,), elr=(2,), leader=3, last_known_elr=())
    assert change_of(before, {1, 2}).elect_leader() == Elected(NO_LEADER, False)
    empty = before._replace(isr=(), leader=NO_LEADER, elr=(2, 3))
    assert change_of(empty, {1, 2}).elect_leader() == Elected(2, False)


@pytest.mark.parametrize(
    ("election", "live", "expected"),
    [
        (Election.ONLINE, {1, 2, 3}, (2, False)),  # the leader stays
        (Election.ONLINE, {1, 3}, (3, False)),  # 1 is not in sync
        (Election.ONLINE, {1}, (NO_LEADER, False)),
        (Election.UNCLEAN, {1, 3}, (3, False)),
        (Election.UNCLEAN, {1}, (1, True)),
        (Election.PREFERRED, {1, 2, 3}, (2, False)),
        (Election.PREFERRED, {1}, (NO_LEADER, False)),
    ],
)
def test_the_first_live_in_sync_replica_wins(election, live, expected):
    before = partition(isr=(2, 3), leader=2)
    assert change_of(before, live, election=election).elect_leader() == expected


def test_the_preferred_replica_wins_its_election_if_it_is_in_sync():
    before = partition(leader=2)
    assert change_of(before, election=Election.PREFERRED).elect_leader().leader == 1
    assert change_of(before, election=Election.ONLINE).elect_leader().leader == 2


@pytest.mark.parametrize(
    ("fields", "live", "leader"),
    [
        ({}, {2}, 2),
        ({}, {1, 3}, NO_LEADER),
        ({"elr": (3,)}, {2}, NO_LEADER),  # an eligible one may return
        ({"last_known_elr": (2, 3)}, {2}, NO_LEADER),
        ({"last_known_elr": (9,)}, {9}, NO_LEADER),  # was reassigned away
    ],
)
def test_the_last_known_leader_wins_after_unclean_stops_of_all(fields, live, leader):
    before = partition(isr=(), leader=NO_LEADER, last_known_elr=(2,))._replace(**fields)
    assert change_of(before, live).elect_leader() == Elected(leader, leader != NO_LEADER)
    assert change_of(before, live, elr=False).elect_leader().leader == NO_LEADER


def test_an_unclean_leader_is_alone_in_the_isr_and_recovers():
    before = partition(isr=(), elr=(3,), leader=NO_LEADER, last_known_elr=(3,))
    changed, after = built(before, {1, 2}, election=Election.UNCLEAN)
    assert changed == {
        "leader": 1,
        "isr": [1],
        "eligible_leader_replicas": [],
        "last_known_elr": [],
        "leader_recovery_state": RECOVERING,
    }
    assert (after.leader_epoch, after.partition_epoch) == (6, 8)


# -- eligible leader replicas


def test_replicas_that_leave_below_the_min_isr_become_eligible():
    changed, after = built(partition(isr=(1, 2), elr=()), target_isr=(1,))
    assert changed == {"isr": [1], "eligible_leader_replicas": [2]} and after.leader_epoch == 5
    assert built(partition(), target_isr=(1, 2))[0] == {"isr": [1, 2]}
    assert built(partition(isr=(1,), elr=(2,)), target_isr=(1, 3))[0] == {
        "isr": [1, 3],
        "eligible_leader_replicas": [],
    }


def test_a_replica_that_stopped_uncleanly_is_not_eligible():
    changed, _ = built(
        partition(isr=(2,), elr=(1, 3), leader=2),
        {1},
        target_isr=(),
        unclean_shutdown_replicas=frozenset([2, 3]),
    )
    assert changed == {"isr": [1], "leader": 1, "eligible_leader_replicas": []}


def test_the_last_known_leader_is_stored_once_and_cleared_by_the_next_leader():
    changed, after = built(partition(isr=(2,), leader=2), {1, 3}, target_isr=())
    assert changed["leader"] == NO_LEADER and changed["last_known_elr"] == [2]
    assert after.isr == () and after.elr == (2,)
    again, after = built(after, {1, 3}, unclean_shutdown_replicas=frozenset([2]))
    assert again == {"eligible_leader_replicas": []} and after.last_known_elr == (2,)
    changed, after = built(after, {2})
    assert changed["leader"] == 2 and after.last_known_elr == ()


def test_the_last_known_leader_is_stored_when_the_isr_stays():
    """The leader becomes -1 with members of the ISR that are not live: it is the loss of the leader that counts."""
    changed, _ = built(partition(isr=(1, 2)), set(), target_isr=(2,))
    assert changed["leader"] == NO_LEADER and changed["last_known_elr"] == [1]


def test_a_known_leader_without_new_leader_is_kept():
    """A partition that already has a leader changes only its ISR: Kafka leaves the field as it is."""
    before = partition(isr=(1,), elr=(2,), last_known_elr=(1,))
    assert "last_known_elr" not in built(before, target_isr=(1, 2))[0]


def test_without_eligible_leader_replicas_the_isr_does_not_become_empty():
    changed, after = built(partition(isr=(2,), leader=2), {1, 3}, target_isr=(), elr=False)
    assert changed == {"leader": NO_LEADER} and after.isr == (2,)


# -- epochs


@pytest.mark.parametrize(("version", "epoch"), [(11, 6), (12, 5)])
def test_a_shrunk_isr_raises_the_leader_epoch_in_old_versions(version, epoch):
    assert built(partition(), version=version, elr=False, target_isr=(1, 2))[1].leader_epoch == epoch
    assert built(partition(isr=(1, 2)), version=version, elr=False, target_isr=(1, 2, 3))[1].leader_epoch == 5


def test_a_removed_replica_raises_the_leader_epoch():
    changed, after = built(partition(), target_replicas=(1, 2), target_isr=(1, 2))
    assert changed["leader"] == 1 and after.leader_epoch == 6


# -- reassignments


def reassigning(isr, adding=(), removing=(), replicas=(4, 5, 1, 2), **fields):
    return partition(replicas, isr, adding_replicas=adding, removing_replicas=removing, **fields)


@pytest.mark.parametrize(
    ("isr", "adding", "removing", "is_complete"),
    [
        ((1, 2), (4, 5), (1, 2), False),
        ((1, 2, 4), (4, 5), (1, 2), False),
        ((1, 4, 5), (4, 5), (1, 2), True),
        ((1, 2, 4), (4,), (), True),
        ((1, 2, 5), (4,), (), False),
        ((1, 2), (), (1, 2), False),  # nothing would be left of the ISR
        ((1, 4), (), (1, 2), False),  # fewer replicas: all targets must be in sync
        ((4, 5), (), (1, 2), True),
        ((1, 2, 4), (4,), (1, 2), False),
    ],
)
def test_a_reassignment_completes_when_the_new_replicas_are_in_sync(isr, adding, removing, is_complete):
    leader = isr[0]
    before = reassigning((leader,), adding, removing, leader=leader)
    changed, after = built(before, target_isr=isr)
    assert (after.adding_replicas == after.removing_replicas == ()) is is_complete
    if is_complete:
        assert after.replicas == tuple(each for each in (4, 5, 1, 2) if each not in removing)
        assert set(after.isr) == set(isr) - set(removing) and after.leader in after.isr
        # A removed replica has to notice that it is removed.
        assert after.leader_epoch == (6 if removing else 5)
        if removing:
            assert changed["directories"] == [bytes([each]) * 16 for each in after.replicas]


def test_any_change_completes_a_reassignment():
    before = reassigning((1, 2, 4, 5), (4, 5), (1, 2), leader=1)
    _, after = built(before, {2, 4, 5}, target_isr=(2, 4, 5))  # broker 1 is fenced
    assert (after.replicas, after.isr, after.leader) == ((4, 5), (4, 5), 4)


def test_a_removed_replica_is_not_eligible_any_more():
    """It deletes its log: if it came back later, it would be electable without records."""
    before = reassigning((4, 5), removing=(1, 2), leader=4, elr=(1,))
    _, after = built(before, target_isr=(4, 5), min_isr=3)
    assert (after.replicas, after.isr, after.elr) == ((4, 5), (4, 5), ())


def test_a_new_replica_gets_the_default_directory():
    change = change_of(partition(), target_replicas=(1, 2, 3, 6))
    change.default_directory = lambda broker: bytes([60 + broker]) * 16
    record, _ = change.build()
    assert record.directories == [bytes([each]) * 16 for each in (1, 2, 3, 66)]
    old = change_of(partition(), version=16, elr=False, target_replicas=(1, 2, 3, 6)).build()[0]
    assert old.directories is None
