"""The class Admin, which combines the operations on topics, groups, configurations and so on."""

from __future__ import annotations

from kafkapy.client.admin.acls import AclOperations
from kafkapy.client.admin.cluster import ClusterOperations
from kafkapy.client.admin.configs import ConfigOperations
from kafkapy.client.admin.delegation_tokens import DelegationTokenOperations
from kafkapy.client.admin.group_offsets import GroupOffsetOperations
from kafkapy.client.admin.groups import GroupOperations
from kafkapy.client.admin.log_dirs import LogDirOperations
from kafkapy.client.admin.offsets import OffsetOperations
from kafkapy.client.admin.partitions import PartitionOperations
from kafkapy.client.admin.principals import PrincipalOperations
from kafkapy.client.admin.quorum import QuorumOperations
from kafkapy.client.admin.replicas import ReplicaOperations
from kafkapy.client.admin.streams_groups import StreamsGroupOperations
from kafkapy.client.admin.topics import TopicOperations
from kafkapy.client.admin.transactions import TransactionOperations


class Admin(
    TopicOperations,
    ConfigOperations,
    GroupOperations,
    GroupOffsetOperations,
    StreamsGroupOperations,
    OffsetOperations,
    PartitionOperations,
    LogDirOperations,
    TransactionOperations,
    ClusterOperations,
    QuorumOperations,
    ReplicaOperations,
    PrincipalOperations,
    AclOperations,
    DelegationTokenOperations,
):
    """Administers a cluster of kafkapy or of Apache Kafka. Thread-safe; closed by `close` or a `with` block.

    `properties` has Apache Kafka's configuration keys of an admin client; a key can also be a keyword argument, with
    `_` instead of `.`: `Admin(bootstrap_servers="localhost:9092")`. Raises ConfigError for an invalid configuration.

    Every operation blocks until the brokers have responded, at most `timeout` seconds (`default.api.timeout.ms` unless
    given). An operation on several keys returns `Results`, with a value or an ApiError for each:
    `admin.delete_topics(["a", "b"]).check()` raises the first error, `.errors` has all of them. An error that concerns
    the whole operation is raised: ApiError, RequestTimedOut (a TimeoutError) if no broker responds in time, or
    ClientClosed after `close`. An operation that a broker is too old for raises ApiError with UNSUPPORTED_VERSION.
    """
