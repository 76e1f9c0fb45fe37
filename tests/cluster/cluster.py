"""A cluster of nodes of kafkapy and of Apache Kafka on loopback: directories, formatting, failures, and its state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from kafkapy._core.bytes.message import Message
from kafkapy.client.admin import Admin, NewTopic, PartitionDescription, QuorumDescription
from kafkapy.client.admin.requests import constant, top_level_error
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_raft_voter import AddRaftVoterRequest
from kafkapy.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkapy.types import TopicPartition, random_uuid, uuid_from_string, uuid_to_string
from tests.chaos_proxy import ChaosProxy
from tests.cluster.nodes import BOTH, ClusterNode, Flavour, make_node
from tests.ports import free_port, free_ports

T = TypeVar("T")
POLL_SECONDS = 0.05
# Timeouts of a test cluster: short, and long enough for a machine that runs other tests too.
QUICK = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}
# Kafka's own timeouts, for clusters of several Java nodes, which are slow while they start.
UNHURRIED = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}


class Voters(Enum):
    """The ways in which the nodes of a cluster learn which nodes are the voters."""

    STATIC = "controller.quorum.voters in every file"
    INITIAL = "format --initial-controllers, the same words on every node"
    STANDALONE = "format --standalone on the first controller, which the others join"


class Spec(NamedTuple):
    """The description of a node of a cluster."""

    flavour: Flavour = Flavour.KAFKAPY
    roles: str = BOTH


def three(flavour: Flavour) -> list[Spec]:
    """Returns three nodes of one program, each broker and controller."""
    return [Spec(flavour)] * 3


class Cluster:
    """Nodes with the ids 1 to n in one cluster. A context manager that starts all nodes and kills them.

    `flags` are those of every `format` (such as --release-version). With `by_own_tool` each directory is formatted by
    the node's own program, otherwise all of them by kafkapy's. With `proxy_seed` clients and other nodes reach each
    node through the two proxies in `proxies`.
    """

    def __init__(
        self,
        directory: Path,
        specs: Sequence[Spec],
        *,
        voters: Voters = Voters.INITIAL,
        properties: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        by_own_tool: bool = False,
        proxy_seed: int | None = None,
    ) -> None:
        self.directory = directory
        self.cluster_id = uuid_to_string(random_uuid())
        self.voters = voters
        self._flags = tuple(flags)
        self._by_own_tool = by_own_tool
        count = min(3, sum("broker" in spec.roles for spec in specs)) or 1
        self._properties = {**QUICK, **replication_of(count), **(properties or {})}
        self.nodes: dict[int, ClusterNode] = {}
        self.directory_ids: dict[int, str] = {}
        self.proxies: dict[int, tuple[ChaosProxy, ChaosProxy]] = {}
        self._proxy_seed = proxy_seed
        self._running = ExitStack()
        for node_id, spec in enumerate(specs, 1):
            self._make(node_id, spec)
        self._quorum = self._quorum_keys()
        for node in self.nodes.values():
            node.write_config(self._quorum)

    # -- nodes

    def __getitem__(self, node_id: int) -> ClusterNode:
        return self.nodes[node_id]

    @property
    def brokers(self) -> list[ClusterNode]:
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def controllers(self) -> list[ClusterNode]:
        return [node for node in self.nodes.values() if node.is_controller]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.bootstrap for node in self.brokers)

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of all controllers."""
        return ",".join(node.controller_address for node in self.controllers)

    def add(self, spec: Spec, *, joins_voters: bool = False) -> ClusterNode:
        """Makes, configures and formats one more node, which is not started. A controller becomes a voter by itself
        with `joins_voters`, and otherwise by AddRaftVoter."""
        node_id = max(self.nodes) + 1
        node = self._make(node_id, spec)
        if self.voters is not Voters.STATIC:
            self._quorum = self._quorum_keys()  # the controllers of now
        if joins_voters:
            node.properties["controller.quorum.auto.join.enable"] = "true"
        node.write_config(self._quorum)
        self._format(node, ["--no-initial-controllers"] if node.is_controller else [])
        return node

    def use_bootstrap_servers(self) -> None:
        """Lets the nodes that are added find the controllers by controller.quorum.bootstrap.servers."""
        self.voters = Voters.STANDALONE
        self._quorum = self._quorum_keys()

    def replace_program(self, node_id: int, flavour: Flavour) -> ClusterNode:
        """Makes a stopped node run another program, on the same directories."""
        node = self.nodes[node_id] = self.nodes[node_id].as_flavour(flavour)
        node.write_config(self._quorum)
        return node

    def format_again(self, node_id: int) -> None:
        """Formats the directory of a node that has lost its disk, as its administrator does."""
        node = self.nodes[node_id]
        flags = self._quorum_flags(node) if self.voters is Voters.STATIC else []
        self._format(node, flags or (["--no-initial-controllers"] if node.is_controller else []))

    def start(self, node_ids: Iterable[int] | None = None) -> None:
        """Formats the nodes that are not formatted, and starts them together: one alone would wait for a majority."""
        nodes = [self.nodes[node_id] for node_id in (self.nodes if node_ids is None else node_ids)]
        with ThreadPoolExecutor(len(nodes)) as pool:
            formatted = [pool.submit(self._format_first, node) for node in nodes if not node.is_formatted]
            for each in formatted:
                each.result()
            started = [pool.submit(node.start) for node in nodes]
            for each in started:
                each.result()

    def kill(self) -> None:
        """Kills all nodes: without a majority a node would wait for minutes to end cleanly."""
        for node in self.nodes.values():
            if node.is_running:
                node.kill()

    def __enter__(self) -> Self:
        try:
            for proxies in self.proxies.values():
                for proxy in proxies:
                    self._running.enter_context(proxy)
            self.start()
        except BaseException:
            self.kill()
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._running.close()

    # -- state

    @contextmanager
    def admin(self, node_id: int | None = None) -> Iterator[Admin]:
        """Yields an admin client of one broker, or of all that run."""
        nodes = [node for node in self.brokers if node.is_running and not node.is_paused]
        if node_id is not None:
            nodes = [self.nodes[node_id]]
        with Admin({"bootstrap.servers": ",".join(node.bootstrap for node in nodes)}) as admin:
            yield admin

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int = 3, **configs: str) -> None:
        """Creates a topic and waits until every partition has a leader and all its replicas in sync. The names of
        `configs` have underscores for dots."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with self.admin() as admin:
            try:
                admin.create_topics([NewTopic(name, partitions, replication_factor, configs=settings)]).check()
            except ApiError as error:
                if error.error is not Error.TOPIC_ALREADY_EXISTS:  # asked again because the first answer was lost
                    raise
        for partition in range(partitions):
            self.wait_for_isr(name, partition)

    def partition(self, topic: str, partition: int = 0) -> PartitionDescription:
        """Returns a partition as any running broker knows it."""
        with self.admin() as admin:
            return admin.describe_topics([topic], timeout=10)[topic].partitions[partition]

    def quorum(self) -> QuorumDescription:
        """Returns the quorum as its leader describes it."""
        with self.admin() as admin:
            return admin.describe_metadata_quorum(timeout=10)

    # -- changes

    def move_all_partitions(self, broker_ids: Sequence[int]) -> None:
        """Reassigns every partition to as many of these brokers as it has replicas, and waits until all are moved."""
        with self.admin() as admin:
            targets = {
                TopicPartition(topic.name, each.partition): [
                    broker_ids[(each.partition + index) % len(broker_ids)] for index in range(len(each.replicas))
                ]
                for topic in admin.describe_topics().check().values()
                for each in topic.partitions
            }
            admin.alter_partition_reassignments(targets).check()

        def is_done() -> bool:
            with self.admin() as admin:
                return not admin.list_partition_reassignments()

        self.wait_for("end of the reassignment", is_done, 120)

    def add_voter(self, node: ClusterNode) -> None:
        """Makes a running controller a voter, and waits until it is one."""
        host, _, port = node.controller_address.partition(":")
        listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host=host, port=int(port))
        voter = AddRaftVoterRequest(
            cluster_id=self.cluster_id,
            timeout_ms=10000,
            voter_id=node.node_id,
            voter_directory_id=uuid_from_string(node.directory_id),
            listeners=[listener],
        )

        def add() -> bool:  # refused until the controller has caught up
            if node.node_id not in {each.node_id for each in self.quorum().voters}:
                self._change_voters(ApiKey.ADD_RAFT_VOTER, voter)
            return True

        self.wait_for(f"voter {node.node_id}", add)

    def remove_voter(self, node: ClusterNode) -> None:
        """Removes a controller from the voters, and waits until it is none."""
        directory_id = uuid_from_string(node.directory_id)
        voter = RemoveRaftVoterRequest(
            cluster_id=self.cluster_id, voter_id=node.node_id, voter_directory_id=directory_id
        )

        def remove() -> bool:
            if node.node_id in {each.node_id for each in self.quorum().voters}:
                self._change_voters(ApiKey.REMOVE_RAFT_VOTER, voter)
            return True

        self.wait_for(f"quorum without {node.node_id}", remove)

    def _change_voters(self, api: ApiKey, request: Message) -> None:
        with self.admin() as admin:
            admin._request(
                admin._any_broker, api, constant(request), top_level_error, deadline_ms=admin._deadline_ms(30)
            )

    def unregister(self, node_id: int) -> None:
        """Removes the registration of a broker that was stopped for good."""
        with self.admin() as admin:
            admin.unregister_broker(node_id)

    # -- waiting

    def wait_for(self, what: str, read: Callable[[], T | None], timeout_s: float = 60.0) -> T:
        """Returns the first result of `read` that is neither None nor False; errors of a cluster that is between two
        states are tried again. Raises AssertionError with the last one after the timeout."""
        deadline = time.monotonic() + timeout_s
        last: object = None
        while time.monotonic() < deadline:
            try:
                last = read()
                if last is not None and last is not False:
                    return last  # type: ignore[return-value]
            except (ApiError, OSError) as error:
                last = error
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"no {what} within {timeout_s} s; last: {last!r}")

    def wait_for_quorum_leader(self, other_than: int | None = None) -> int:
        """Returns the id of the active controller, once one other than `other_than` leads."""

        def read() -> int | None:
            leader = self.quorum().leader
            return None if leader in (-1, other_than) else leader

        return self.wait_for("leader of the quorum", read)

    def wait_for_voters(self, *node_ids: int) -> QuorumDescription:
        """Returns the quorum once exactly these nodes are its voters."""

        def read() -> QuorumDescription | None:
            quorum = self.quorum()
            return quorum if {voter.node_id for voter in quorum.voters} == set(node_ids) else None

        return self.wait_for(f"quorum of {node_ids}", read)

    def wait_for_leader(self, topic: str, partition: int = 0, other_than: int | None = None) -> int:
        """Returns the id of the partition's leader, once there is one other than `other_than`."""

        def read() -> int | None:
            leader = self.partition(topic, partition).leader
            return None if leader in (-1, other_than) else leader

        return self.wait_for(f"leader of {topic}-{partition}", read)

    def wait_for_isr(self, topic: str, partition: int = 0, isr: Iterable[int] | None = None) -> PartitionDescription:
        """Returns the partition once exactly these replicas, by default all of them, are in sync."""
        wanted = None if isr is None else set(isr)

        def read() -> PartitionDescription | None:
            state = self.partition(topic, partition)
            return state if set(state.isr) == (set(state.replicas) if wanted is None else wanted) else None

        return self.wait_for(f"ISR of {topic}-{partition}", read)

    def wait_for_all_in_sync(self) -> None:
        """Waits until every partition of every topic has all its replicas in sync."""

        def read() -> bool:
            with self.admin() as admin:
                topics = admin.describe_topics(timeout=10).check().values()
            return all(set(each.isr) == set(each.replicas) for topic in topics for each in topic.partitions)

        self.wait_for("end of the replicas' catch-up", read)

    # -- making and formatting

    def _make(self, node_id: int, spec: Spec) -> ClusterNode:
        port, controller_port = free_ports(2)
        node = make_node(
            spec.flavour,
            node_id,
            self.directory / f"node-{node_id}",
            port,
            controller_port,
            roles=spec.roles,
            properties=self._properties,
        )
        if self._proxy_seed is not None:
            node.public_ports = public = (free_port(), free_port())
            seed = self._proxy_seed + 2 * node_id
            self.proxies[node_id] = (
                ChaosProxy(public[0], port, seed),
                ChaosProxy(public[1], controller_port, seed + 1),
            )
        self.nodes[node_id] = node
        self.directory_ids[node_id] = uuid_to_string(random_uuid())
        return node

    def _quorum_keys(self) -> dict[str, str]:
        if self.voters is Voters.STATIC:
            voters = [f"{node.node_id}@{node.controller_address}" for node in self.controllers]
            return {"controller.quorum.voters": ",".join(voters)}
        return {"controller.quorum.bootstrap.servers": self.bootstrap_controllers}

    def _quorum_flags(self, node: ClusterNode) -> list[str]:
        """Returns the flags of a first `format`."""
        if self.voters is Voters.STATIC or not node.is_controller:
            return []
        if self.voters is Voters.STANDALONE:
            first = self.controllers[0] is node
            return ["--standalone"] if first else ["--no-initial-controllers"]
        voters = [
            f"{each.node_id}@{each.controller_address}:{self.directory_ids[each.node_id]}" for each in self.controllers
        ]
        return ["--initial-controllers", ",".join(voters)]

    def _format_first(self, node: ClusterNode) -> None:
        self._format(node, self._quorum_flags(node))

    def _format(self, node: ClusterNode, flags: Iterable[str]) -> None:
        tool = node if self._by_own_tool else _as_ours(node)
        tool.format(self.cluster_id, [*flags, *self._flags])


def replication_of(count: int) -> dict[str, str]:
    """Returns the keys of the internal topics in a cluster of `count` brokers, or more."""
    factors = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    least = str(min(2, count))
    return {
        **{f"{name}.replication.factor": str(count) for name in factors},
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.min.isr": least,
        "default.replication.factor": str(count),
        "min.insync.replicas": least,
    }


def _as_ours(node: ClusterNode) -> ClusterNode:
    return node.as_flavour(Flavour.KAFKAPY)
