"""The admin client: topics, partitions, configurations, groups, offsets, transactions, log directories, ACLs,
delegation tokens, the cluster.

with Admin(bootstrap_servers="localhost:9092") as admin:
    admin.create_topics([NewTopic("greetings", partitions=3)]).check()
    print(admin.describe_topics(["greetings"])["greetings"].partitions)
"""

from kafkapy.client.admin.admin import Admin
from kafkapy.client.admin.cluster import (
    BrokerVersions,
    ClusterDescription,
    FeatureDescription,
    FeatureUpdate,
    UpgradeType,
    VersionRange,
)
from kafkapy.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSynonym,
    ResourceType,
)
from kafkapy.client.admin.delegation_tokens import DelegationToken
from kafkapy.client.admin.groups import GroupDescription, GroupListing, MemberDescription
from kafkapy.client.admin.log_dirs import LogDirDescription, Replica, ReplicaInfo
from kafkapy.client.admin.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from kafkapy.client.admin.partitions import ElectionType, ProducerState, Reassignment
from kafkapy.client.admin.principals import (
    ANY_NAME,
    NewScramCredential,
    QuotaEntity,
    ScramCredential,
    quota_entity,
)
from kafkapy.client.admin.quorum import QuorumDescription, QuorumReplica, VoterEndpoint
from kafkapy.client.admin.results import Results
from kafkapy.client.admin.share_groups import ShareGroupDescription, ShareMemberDescription, SharePartitionOffset
from kafkapy.client.admin.streams_groups import (
    InternalTopic,
    StreamsAssignment,
    StreamsGroupDescription,
    StreamsMemberDescription,
    Subtopology,
)
from kafkapy.client.admin.topics import (
    PARTITIONS_OF_A_RESPONSE,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from kafkapy.client.admin.transactions import HangingTransaction, TransactionDescription, TransactionListing
from kafkapy.client.cluster import Node
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.offset_lookup import OffsetAndTimestamp
from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation as AclOperation
from kafkapy.security.acl import PatternType as AclPatternType
from kafkapy.security.acl import Permission as AclPermission
from kafkapy.security.acl import ResourceType as AclResourceType
from kafkapy.security.acl_filter import AclFilter

__all__ = [
    "ANY_NAME",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "EARLIEST_PENDING_UPLOAD",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "PARTITIONS_OF_A_RESPONSE",
    "AccessControlEntry",
    "AclFilter",
    "AclOperation",
    "AclPatternType",
    "AclPermission",
    "AclResourceType",
    "Admin",
    "BrokerVersions",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSynonym",
    "CreatedTopic",
    "DelegationToken",
    "ElectionType",
    "FeatureDescription",
    "FeatureUpdate",
    "GroupDescription",
    "GroupListing",
    "HangingTransaction",
    "InternalTopic",
    "LogDirDescription",
    "MemberDescription",
    "NewPartitions",
    "NewScramCredential",
    "NewTopic",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionDescription",
    "ProducerState",
    "QuorumDescription",
    "QuorumReplica",
    "QuotaEntity",
    "Reassignment",
    "Replica",
    "ReplicaInfo",
    "ResourceType",
    "Results",
    "ScramCredential",
    "ScramMechanism",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffset",
    "StreamsAssignment",
    "StreamsGroupDescription",
    "StreamsMemberDescription",
    "Subtopology",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "VersionRange",
    "VoterEndpoint",
    "quota_entity",
]
