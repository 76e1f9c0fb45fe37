"""The cases that a share consumer of any client has to pass on a broker: one function for each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from tests.clients.share_members import WAIT_S, Driver, Member, Queue, Record

# Short enough to be waited for, and long enough for an acknowledgement on a busy machine.
LOCK_MS = "4000"
MEMBERS = 100


def follows_its_subscription(bootstrap: str, driver: Driver) -> None:
    one, other = Queue(bootstrap), Queue(bootstrap)
    one.send("a")
    other.send("b")
    member = Member(driver, one)
    (found,) = member.read(1)
    assert found.value == "a"
    member.finish([found])
    member.subscribe(other.topic)
    deadline = time.monotonic() + WAIT_S
    while not (records := member.poll(1)):
        assert time.monotonic() < deadline
    assert [each.value for each in records] == ["b"]
    member.close()


def gets_what_its_acknowledgements_leave(bootstrap: str, driver: Driver) -> None:
    """Accepts one record, releases another and rejects a third: only the released one is delivered again."""
    queue = Queue(bootstrap)
    queue.send("accepted", "released", "rejected")
    member = Member(driver, queue)
    seen = read_all(member, 3, {"accepted": "ACCEPT", "released": "RELEASE", "rejected": "REJECT"})
    assert seen == {"accepted": 1, "released": 1, "rejected": 1}
    (again,) = member.read(1)
    assert (again.value, again.delivery_count) == ("released", 2)
    member.finish([again])
    queue.send("last")  # nothing else comes before it
    (last,) = member.read(1)
    assert (last.value, last.delivery_count) == ("last", 1)
    member.finish([last])
    member.close()


def keeps_a_renewed_record(bootstrap: str, driver: Driver) -> None:
    """Renews a record for longer than its lock; another member does not get it."""
    queue = Queue(bootstrap, share_record_lock_duration_ms=LOCK_MS)
    queue.send("renewed")
    member, other = Member(driver, queue), Member(driver, queue)
    (record,) = member.read(1)
    until = time.monotonic() + 2 * int(LOCK_MS) / 1000
    while time.monotonic() < until:
        member.finish([record], "RENEW")
        assert not other.poll(0.2)
        assert [each.value for each in member.poll(0.2)] in ([], ["renewed"])
    member.finish([record])
    member.close()
    other.close()


def loses_its_records_when_it_crashes(bootstrap: str, driver: Driver, make_driver: Callable[[], Driver]) -> None:
    queue = Queue(bootstrap, share_record_lock_duration_ms=LOCK_MS)
    queue.send(*map(str, range(10)))
    with make_driver() as doomed:
        held = read_until(Member(doomed, queue), 1)
    assert held
    member = Member(driver, queue)
    counts = read_all(member, 10, {})
    assert {each.value: 2 for each in held}.items() <= counts.items()
    member.close()


def loses_its_records_when_it_is_slow(bootstrap: str, driver: Driver) -> None:
    """Acknowledges a record after its lock has ended, when another member has the record: INVALID_RECORD_STATE."""
    queue = Queue(bootstrap, share_record_lock_duration_ms=LOCK_MS)
    queue.send("slow")
    slow, quick = Member(driver, queue), Member(driver, queue)
    (record,) = slow.read(1)
    (again,) = quick.read(1)
    assert (again.value, again.delivery_count) == ("slow", 2)
    slow.acknowledge(record)
    found = slow.commit()
    assert found == {0: "INVALID_RECORD_STATE"}, found
    quick.finish([again])
    slow.close()
    quick.close()


def gets_a_record_up_to_the_limit(bootstrap: str, driver: Driver) -> None:
    queue = Queue(bootstrap, share_delivery_count_limit="3")
    queue.send("poison")
    member = Member(driver, queue)
    for count in (1, 2, 3):
        (record,) = member.read(1)
        assert (record.value, record.delivery_count) == ("poison", count)
        member.finish([record], "RELEASE")
    queue.send("next")
    (record,) = member.read(1)
    assert (record.value, record.delivery_count) == ("next", 1)
    member.finish([record])
    member.close()


def shares_one_partition_with_many(bootstrap: str, driver: Driver) -> None:
    """Lets 100 members read one partition: every record is accepted once, by at least half of the members."""
    queue = Queue(bootstrap)
    total = 4 * MEMBERS
    members = [Member(driver, queue, max_poll_records="2") for _ in range(MEMBERS)]
    queue.send(*map(str, range(total)))
    accepted: Counter[str] = Counter()
    readers: set[int] = set()
    deadline = time.monotonic() + 3 * WAIT_S
    while len(accepted) < total:
        assert time.monotonic() < deadline, f"{len(accepted)} of {total} records, {len(readers)} members"
        for number, member in enumerate(members):
            records = member.poll(0.05)
            for record in records:
                member.acknowledge(record)
            # A lock may end before the turn of its member has come; the record is then for another one.
            if records and not any(member.commit().values()):
                readers.add(number)
                accepted.update(each.value for each in records)
    assert set(accepted.values()) == {1}
    assert len(readers) >= MEMBERS // 2
    for member in members:
        member.close()


COURSES = (
    follows_its_subscription,
    gets_what_its_acknowledgements_leave,
    loses_its_records_when_it_is_slow,
    gets_a_record_up_to_the_limit,
    shares_one_partition_with_many,
)


def read_until(member: Member, count: int) -> list[Record]:
    """Polls until there are `count` records at least."""
    found: list[Record] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        found += member.poll(1)
    return found


def read_all(member: Member, count: int, kinds: dict[str, str]) -> dict[str, int]:
    """Reads `count` records, acknowledges each as `kinds` says of its value; returns their delivery counts."""
    counts: dict[str, int] = {}
    deadline = time.monotonic() + WAIT_S
    while len(counts) < count:
        assert time.monotonic() < deadline, counts
        records = member.poll(1)
        for record in records:
            counts[record.value] = record.delivery_count
            member.acknowledge(record, kinds.get(record.value, "ACCEPT"))
        if records:
            assert not any(member.commit().values())
    return counts
