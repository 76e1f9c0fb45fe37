"""Courses of failures and changes that a cluster of any programs has to survive, each with traffic all the time."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.client.admin import ConfigChange, ConfigResource, ResourceType
from tests.cluster.chain import Chain, check_copy
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.history import History, Outcome
from tests.cluster.nodes import Flavour
from tests.cluster.traffic import TrafficConsumer, TrafficProducer, read_log, traffic

TOPIC, COPY, PARTITIONS = "histories", "copies", 3
# The number of changes of the active controller that are left to chance: several by SIGTERM and by SIGKILL.
TURNS = 6
# A topic whose partitions are watched has so many replicas.
REPLICAS = 3


class Course:
    """A running cluster with a topic and clients; a context manager that checks the history at the end.

    The clients are an idempotent producer, a consumer, with `is_transactional` a transactional producer, and with
    `make_chain` a chain of transactions that copies the topic.
    """

    def __init__(
        self, cluster: Cluster, *, is_transactional: bool = True, make_chain: type[Chain] | None = None
    ) -> None:
        self.cluster = cluster
        self.chain: Chain | None = None
        self._is_transactional = is_transactional
        if make_chain is not None:
            self.chain = make_chain(lambda: cluster.bootstrap, TOPIC, COPY, "chain")
        self.history = History()
        self._producers = [
            TrafficProducer(self.history, lambda: cluster.bootstrap, TOPIC, PARTITIONS, "plain"),
        ]
        if is_transactional:
            self._producers.append(
                TrafficProducer(
                    self.history, lambda: cluster.bootstrap, TOPIC, PARTITIONS, "transactional", transaction_size=20
                )
            )
        self._reader = TrafficConsumer(self.history, cluster.bootstrap, TOPIC, "reader", "readers")
        self._traffic = traffic(*self._producers, self._reader)

    def __enter__(self) -> Course:
        brokers = len(self.cluster.brokers)
        for topic in self._topics():
            self.cluster.create_topic(topic, PARTITIONS, replication_factor=min(REPLICAS, brokers))
        self._traffic.__enter__()
        if self.chain is not None:
            self.chain.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._traffic.__exit__(*failure)  # type: ignore[arg-type]
        if failure[0] is None:
            self.check()

    def check(self) -> None:
        """Checks that no record is lost, duplicated or out of order, and that there were records to check."""
        log = read_log(self.cluster.bootstrap, TOPIC, PARTITIONS)
        self.history.check(log)
        if self.chain is not None:
            check_copy(self.cluster, log, self.chain, PARTITIONS)
        assert self.history.count(Outcome.DONE) > 0
        assert not self._is_transactional or Outcome.DONE in self.history.transactions.values()
        assert self.history.reads

    def await_in_sync(self) -> None:
        """Waits until all partitions, also those of the internal topics, have all their replicas in sync."""
        self.cluster.wait_for_all_in_sync()

    def await_progress(self) -> None:
        """Waits until, after this call, a record is acknowledged, a record is read, and a transaction of each client is
        committed."""
        records, transactions = len(self.history.sent), len(self.history.transactions)
        reads = len(self.history.reads)
        copied = 0 if self.chain is None else self.chain.committed

        def has_progress() -> bool:
            for client in (*self._producers, self._reader):
                if client.failure is not None:
                    raise client.failure
            later = list(self.history.transactions.values())[transactions:]
            sent = self.history.sent[records:]
            if len(self.history.reads) == reads or (self.chain is not None and not self.chain.has_copied(copied)):
                return False
            return (Outcome.DONE in later or not self._is_transactional) and any(
                each.outcome is Outcome.DONE for each in sent
            )

        try:
            self.cluster.wait_for("progress", has_progress)
        except AssertionError as error:
            outcomes = [each.outcome.name for each in self.history.sent[records:]]
            found = [
                f"{len(self.history.reads) - reads} records were read",
                f"{len(outcomes)} outcomes of records: {sorted(set(outcomes))}",
                *(str(self.cluster.partition(TOPIC, partition)) for partition in range(PARTITIONS)),
            ]
            raise AssertionError("\n".join([str(error), *found])) from error

    def _topics(self) -> tuple[str, ...]:
        return (TOPIC,) if self.chain is None else (TOPIC, COPY)


def kill_the_leader(course: Course) -> None:
    """Kills the leader of a partition, waits for another one, and starts it again."""
    cluster = course.cluster
    leader = cluster.wait_for_leader(TOPIC)
    cluster[leader].kill()
    cluster.wait_for_leader(TOPIC, other_than=leader)
    course.await_progress()
    cluster.start([leader])
    course.await_in_sync()


def pause_the_controller(course: Course) -> None:
    """Stops the active controller with SIGSTOP until another one is active, and then continues it."""
    cluster = course.cluster
    controller = cluster.wait_for_quorum_leader()
    cluster[controller].pause()
    cluster.wait_for_quorum_leader(other_than=controller)
    course.await_progress()
    cluster[controller].resume()
    course.await_in_sync()


def pass_the_quorum_around(course: Course, node_ids: Iterable[int]) -> None:
    """Restarts the active controller, after SIGTERM and SIGKILL in turn, until each node has been active."""
    cluster = course.cluster
    missing = set(node_ids)
    for turn in range(TURNS):
        leader = cluster.wait_for_quorum_leader()
        missing.discard(leader)
        if turn % 2:
            cluster[leader].kill()
        else:
            cluster[leader].stop()
        missing.discard(cluster.wait_for_quorum_leader(other_than=leader))
        course.await_progress()
        cluster.start([leader])
        course.await_in_sync()
    while missing:
        _pass_the_quorum_to(course, missing.pop())


def _pass_the_quorum_to(course: Course, node_id: int) -> None:
    """Kills the active controller when all nodes but one miss a committed record, so that this one wins the election.

    Without this, the same two of three nodes may always win.
    """
    cluster = course.cluster
    leader = cluster.wait_for_quorum_leader()
    if leader == node_id:
        return
    others = [cluster[each] for each in cluster.nodes if each not in (leader, node_id)]
    for other in others:
        other.pause()
    with cluster.admin() as admin:
        # The first change may be in the response to a Fetch that the other nodes have sent already.
        for retention_ms in ("1000000000", "2000000000"):
            change = ConfigChange("retention.ms", retention_ms)
            admin.incremental_alter_configs({ConfigResource(ResourceType.TOPIC, TOPIC): [change]}).check()
    cluster[leader].kill()
    for other in others:
        other.resume()
    found = cluster.wait_for_quorum_leader(other_than=leader)
    assert found == node_id, f"node {found} was elected, although it missed a record"
    course.await_progress()
    cluster.start([leader])
    course.await_in_sync()


def roll(course: Course, *flavours: Flavour | None) -> None:
    """Restarts every node once per program, cleanly and one after the other; None keeps the program of the node."""
    cluster = course.cluster
    for flavour in flavours:
        for node_id in cluster.nodes:
            cluster[node_id].stop()
            if flavour is not None:
                cluster.replace_program(node_id, flavour)
            cluster[node_id].start()
            course.await_in_sync()
        course.await_progress()


def replace_by_new_nodes(course: Course, flavour: Flavour) -> None:
    """Adds as many new nodes as there are, moves all partitions to them, and removes the old ones."""
    cluster = course.cluster
    old = dict(cluster.nodes)
    for node in old.values():
        added = cluster.add(Spec(flavour, node.roles))
        cluster.start([added.node_id])
        if added.is_controller:
            cluster.add_voter(added)
    new_brokers = [node.node_id for node in cluster.brokers if node.node_id not in old]
    cluster.move_all_partitions(new_brokers)
    course.await_in_sync()
    for node_id, node in old.items():
        node.stop()  # first, as Apache Kafka's documentation recommends
        if node.is_controller:
            cluster.remove_voter(node)
        del cluster.nodes[node_id]
        if node.is_broker:
            cluster.unregister(node_id)
        course.await_progress()
