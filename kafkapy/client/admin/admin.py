"""The admin client, put together from its operations."""

from __future__ import annotations

from kafkapy.client.admin.cluster import ClusterOperations
from kafkapy.client.admin.configs import ConfigOperations
from kafkapy.client.admin.group_offsets import GroupOffsetOperations
from kafkapy.client.admin.groups import GroupOperations
from kafkapy.client.admin.log_dirs import LogDirOperations
from kafkapy.client.admin.offsets import OffsetOperations
from kafkapy.client.admin.partitions import PartitionOperations
from kafkapy.client.admin.principals import PrincipalOperations
from kafkapy.client.admin.topics import TopicOperations
from kafkapy.client.admin.transactions import TransactionOperations


class Admin(
    TopicOperations,
    ConfigOperations,
    GroupOperations,
    GroupOffsetOperations,
    OffsetOperations,
    PartitionOperations,
    LogDirOperations,
    TransactionOperations,
    ClusterOperations,
    PrincipalOperations,
):
    """Administers a cluster, of kafkapy or of Apache Kafka.  Any thread; `close`, or a `with` block, ends it.

    Every operation waits for its answer. Those on several things return `Results`, a value or an ApiError for each:
    `admin.delete_topics(["a", "b"]).check()` raises the first error, `.errors` has them all.
    """
