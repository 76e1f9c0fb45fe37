"""The handlers. Each family of APIs has a module, which is imported at the first request of one of its APIs.

The definitions of the messages say on which kinds of listeners an API is served.
"""

from kafkapy.protocol.api import ApiKey

_FAMILIES: dict[str, tuple[ApiKey, ...]] = {
    "acls": (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
    "api_versions": (ApiKey.API_VERSIONS,),
    "broker_registration": (ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.UNREGISTER_BROKER),
    "client_quotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS),
    "cluster": (ApiKey.DESCRIBE_CLUSTER,),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.LIST_CONFIG_RESOURCES,
    ),
    "controller_registration": (ApiKey.CONTROLLER_REGISTRATION,),
    "consumer_groups": (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
    "coordinators": (ApiKey.FIND_COORDINATOR,),
    "delegation_tokens": (
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ),
    "elections": (ApiKey.ELECT_LEADERS,),
    "envelope": (ApiKey.ENVELOPE,),
    "epochs": (ApiKey.OFFSET_FOR_LEADER_EPOCH,),
    "fetch": (ApiKey.FETCH,),
    "groups": (
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.DELETE_GROUPS,
    ),
    "list_offsets": (ApiKey.LIST_OFFSETS,),
    "log_dirs": (ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_LOG_DIRS),
    "metadata": (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
    "offsets": (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE),
    "partition_changes": (ApiKey.ALTER_PARTITION, ApiKey.ASSIGN_REPLICAS_TO_DIRS),
    "produce": (ApiKey.PRODUCE,),
    "producer_id_blocks": (ApiKey.ALLOCATE_PRODUCER_IDS,),
    "producer_ids": (ApiKey.INIT_PRODUCER_ID,),
    "quorum": (ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES),
    "raft": (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH_SNAPSHOT),
    "raft_voters": (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER),
    "reassignments": (ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS),
    "records": (ApiKey.DELETE_RECORDS,),
    "transaction_admin": (ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_PRODUCERS),
    "transactional_offsets": (ApiKey.TXN_OFFSET_COMMIT,),
    "transactions": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
    ),
    "share_fetch": (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    "share_groups": (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE),
    "share_offsets": (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ),
    "share_state": (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ),
    "sasl": (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    "scram_credentials": (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    "streams_groups": (ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE),
    "telemetry": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
    "topics": (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS),
}

# API -> the module with its handler. The decorators in that module declare the versions.
HANDLER_MODULES: dict[ApiKey, str] = {key: f"{__name__}.{module}" for module, keys in _FAMILIES.items() for key in keys}

# A controller serves Fetch for the metadata log only.
_RAFT_FETCH = "raft_fetch"
CONTROLLER_HANDLER_MODULES: dict[ApiKey, str] = {**HANDLER_MODULES, ApiKey.FETCH: f"{__name__}.{_RAFT_FETCH}"}

# The lowest and highest version of the APIs of which not all versions are served; the decorators declare the same.
BROKER_VERSIONS = {
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
}
# Version 0 of these APIs means offsets in ZooKeeper. Without `zookeeper.listener` it is not served, as in Kafka 4.
_VERSIONS_WITHOUT_ZOOKEEPER = {ApiKey.OFFSET_COMMIT: (1, 10), ApiKey.OFFSET_FETCH: (1, 10)}
CONTROLLER_VERSIONS = {ApiKey.FETCH: (4, 18), ApiKey.ALTER_PARTITION: (2, 3)}


def broker_versions(*, has_zookeeper: bool) -> dict[ApiKey, tuple[int, int]]:
    """Returns {API: (lowest version, highest version)} of the APIs of which a broker serves only some versions.

    If `has_zookeeper` is True, the broker also serves the versions that access offsets in ZooKeeper.
    """
    return BROKER_VERSIONS if has_zookeeper else {**BROKER_VERSIONS, **_VERSIONS_WITHOUT_ZOOKEEPER}
