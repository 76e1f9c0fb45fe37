"""The execution of a plan with an admin client that is simulated: what begins, ends, fails and is cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkapy.client.admin import Admin, Reassignment
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError, Error
from kafkapy.tools import balance_execution
from kafkapy.tools.balance_execution import Execution
from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

KEYS = [TopicPartition("t", number) for number in range(3)]
CURRENT = {KEYS[0]: (1, 2), KEYS[1]: (1, 2), KEYS[2]: (2, 1)}
WANTED = {KEYS[0]: (3, 2), KEYS[1]: (3, 1), KEYS[2]: (1, 2)}


class SimulatedAdmin:
    """The operations of an admin client that an execution uses.

    A move ends when it was listed `lasts` times; a change that only reorders the replicas ends at once.
    """

    def __init__(self, lasts: int = 1) -> None:
        self.replicas = dict(CURRENT)
        self.moves: dict[TopicPartition, list[Any]] = {}
        self.lasts = lasts
        self.most = 0
        self.errors: dict[TopicPartition, ApiError] = {}
        self.elected: list[TopicPartition] = []
        self.is_interrupted = False
        self.throttles: list[str] = []

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        if self.is_interrupted and self.moves:
            self.is_interrupted = False
            raise KeyboardInterrupt
        self.most = max(self.most, len(self.moves))
        shown = {key: Reassignment((), (), ()) for key in self.moves}
        for key, move in list(self.moves.items()):
            move[0] -= 1
            if move[0] < 0:
                self.replicas[key] = move[1]
                del self.moves[key]
        return shown

    def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Results[TopicPartition, None]:
        results: Results[TopicPartition, None] = Results()
        for key, replicas in wanted.items():
            if key in self.errors:
                results.errors[key] = self.errors[key]
            elif replicas is None and key in self.moves:
                del self.moves[key]
                self.replicas[key] = self.replicas[key][::-1]  # Kafka restores the replicas in another order
            elif replicas is None:
                results.errors[key] = ApiError(Error.NO_REASSIGNMENT_IN_PROGRESS)
            elif set(replicas) == set(self.replicas[key]):
                self.replicas[key] = tuple(replicas)
            else:
                self.moves[key] = [self.lasts, tuple(replicas)]
        return results

    def describe_topics(self, topics: Iterable[str]) -> Any:
        partitions = [
            SimpleNamespace(partition=key.partition, replicas=replicas) for key, replicas in self.replicas.items()
        ]
        return SimpleNamespace(errors={}, values={"t": SimpleNamespace(name="t", partitions=partitions)})

    def elect_leaders(self, kind: object, partitions: Iterable[TopicPartition]) -> Results[TopicPartition, None]:
        self.elected += sorted(partitions)
        results: Results[TopicPartition, None] = Results()
        results.errors[KEYS[0]] = ApiError(Error.ELECTION_NOT_NEEDED)
        return results

    def describe_cluster(self) -> Any:
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=number) for number in (1, 2, 3)])

    def incremental_alter_configs(self, changes: Mapping[Any, Iterable[Any]]) -> Results[Any, None]:
        self.throttles += [f"{key.name}:{each.name}={each.value}" for key in changes for each in changes[key]]
        return Results()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance_execution.time, "sleep", lambda seconds: None)


def execution(admin: SimulatedAdmin, most: int = 5) -> Execution:
    return Execution(cast(Admin, admin), WANTED, CURRENT, most, lambda line: None)


@pytest.mark.parametrize("most", [1, 5])
def test_a_plan_is_carried_out_a_few_moves_at_a_time(most: int) -> None:
    admin = SimulatedAdmin(lasts=3)
    done = execution(admin, most)
    done.run(None)
    assert admin.replicas == WANTED
    assert sorted(done.outcome.completed) == admin.elected == KEYS
    assert admin.most == (1 if most == 1 else 2)
    assert done.outcome.lines() == ["Completed: 3 partitions (t-0, t-1, t-2)"]
    assert not admin.throttles


def test_throttles_are_set_and_removed() -> None:
    admin = SimulatedAdmin()
    execution(admin).run(1000)
    assert "1:leader.replication.throttled.rate=1000" in admin.throttles
    assert "t:follower.replication.throttled.replicas=0:3,1:3" in admin.throttles
    assert admin.throttles[-1] == "t:follower.replication.throttled.replicas=None"


def test_an_interruption_leaves_the_former_replicas_in_their_order() -> None:
    admin = SimulatedAdmin(lasts=100)
    interrupted = execution(admin, 1)
    assert not admin.list_partition_reassignments()
    admin.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(1000)
    interrupted.cancel()
    assert admin.replicas == {**CURRENT, KEYS[2]: WANTED[KEYS[2]]}
    assert interrupted.outcome.lines() == [
        "Completed: 1 partition (t-2)",
        "Cancelled, with their former replicas: 1 partition (t-0)",
        "Not begun: 1 partition (t-1)",
    ]
    assert admin.throttles[-1] == "t:follower.replication.throttled.replicas=None"


def test_a_refused_move_does_not_stop_the_others() -> None:
    admin = SimulatedAdmin()
    admin.errors[KEYS[1]] = ApiError(Error.INVALID_REPLICA_ASSIGNMENT, "no broker 3")
    done = execution(admin)
    done.run(None)
    assert done.outcome.lines() == ["Completed: 2 partitions (t-0, t-2)", "Failed: t-1: no broker 3"]


def test_moves_in_progress_are_named_when_the_cluster_cannot_be_reached() -> None:
    admin = SimulatedAdmin(lasts=100)
    done = execution(admin)
    admin.describe_topics = lambda topics: (_ for _ in ()).throw(ApiError(Error.REQUEST_TIMED_OUT))  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        done.run(None)
    assert done.outcome.lines()[1:] == ["Still in progress, and no longer monitored: 3 partitions (t-0, t-1, t-2)"]


def test_throttles_that_remain_after_an_error_are_named() -> None:
    admin = SimulatedAdmin(lasts=100)
    done = execution(admin)
    admin.describe_topics = lambda topics: (_ for _ in ()).throw(ApiError(Error.REQUEST_TIMED_OUT))  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        done.run(1000)
    assert done.outcome.lines()[-1].startswith("The throttles are still set: kafkapy reassign-partitions --verify")


def test_a_plan_waits_for_no_other_reassignments() -> None:
    admin = SimulatedAdmin()
    admin.moves[KEYS[0]] = [100, (4, 2)]
    with pytest.raises(ToolError, match="Reassignments are in progress"):
        execution(admin).run(None)
