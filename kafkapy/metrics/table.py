"""The metrics of a broker, one row each, from which the metrics page and docs/metrics.md are made.

Names that begin with kafka_consumergroup_ are the names that the usual exporter of group lag uses. All other names that
begin with kafka_ are derived from the names of Apache Kafka's beans by the usual rules of the Prometheus JMX exporter
(`kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec` -> kafka_server_brokertopicmetrics_bytesin_total). Names that
begin with process_ are the names that Prometheus's own client libraries use. All other names begin with kafkapy_.
"""

from __future__ import annotations

from kafkapy.metrics.metric import Metric, counter, gauge, histogram, summary, untyped

# The BROKER_STATE of a broker that serves clients.
RUNNING = 3

# -- topics: the series without a label is the sum of all topics -------------------------------------------------------

_TOPIC_METRICS = "kafka_server_brokertopicmetrics"
MESSAGES_IN = counter(f"{_TOPIC_METRICS}_messagesin_total", "Records appended.", "topic")
BYTES_IN = counter(f"{_TOPIC_METRICS}_bytesin_total", "Bytes of record batches that producers sent.", "topic")
BYTES_OUT = counter(f"{_TOPIC_METRICS}_bytesout_total", "Bytes of record batches that were sent to consumers.", "topic")
PRODUCE_REQUESTS = counter(
    f"{_TOPIC_METRICS}_totalproducerequests_total", "Appends requested, one for each partition of a request.", "topic"
)
FAILED_PRODUCE_REQUESTS = counter(
    f"{_TOPIC_METRICS}_failedproducerequests_total", "Appends that were refused or failed.", "topic"
)
FETCH_REQUESTS = counter(
    f"{_TOPIC_METRICS}_totalfetchrequests_total", "Reads requested, one for each partition of a fetch.", "topic"
)
FAILED_FETCH_REQUESTS = counter(
    f"{_TOPIC_METRICS}_failedfetchrequests_total", "Reads that were refused or failed.", "topic"
)
# -- partitions --------------------------------------------------------------------------------------------------------

LOG_START_OFFSET = gauge("kafka_log_log_logstartoffset", "First offset of the log.", "topic", "partition")
LOG_END_OFFSET = gauge("kafka_log_log_logendoffset", "Offset that the next record will get.", "topic", "partition")
LOG_SIZE = gauge("kafka_log_log_size", "Bytes of the log's segments.", "topic", "partition")
LOG_SEGMENTS = gauge("kafka_log_log_numlogsegments", "Segments of the log.", "topic", "partition")
PARTITION_REPLICAS = gauge("kafka_cluster_partition_replicascount", "Replicas assigned.", "topic", "partition")
PARTITION_ISR = gauge("kafka_cluster_partition_insyncreplicascount", "Replicas in sync.", "topic", "partition")
PARTITION_UNDER_REPLICATED = gauge(
    "kafka_cluster_partition_underreplicated", "1 if a partition led here has replicas that are not in sync.",
    "topic", "partition",
)  # fmt: skip
PARTITION_UNDER_MIN_ISR = gauge(
    "kafka_cluster_partition_underminisr", "1 if a partition led here has too few replicas in sync for acks=all.",
    "topic", "partition",
)  # fmt: skip

# -- replicas and the cluster ------------------------------------------------------------------------------------------

PARTITIONS = gauge("kafka_server_replicamanager_partitioncount", "Partitions of which this broker has a replica.")
LEADERS = gauge("kafka_server_replicamanager_leadercount", "Partitions that this broker leads.")
OFFLINE_REPLICAS = gauge(
    "kafka_server_replicamanager_offlinereplicacount", "Replicas of this broker whose log cannot be used."
)
UNDER_REPLICATED = gauge(
    "kafka_server_replicamanager_underreplicatedpartitions", "Partitions led here with replicas that are not in sync."
)
UNDER_MIN_ISR = gauge(
    "kafka_server_replicamanager_underminisrpartitioncount",
    "Partitions led here with fewer replicas in sync than min.insync.replicas; writes with acks=all are refused.",
)
AT_MIN_ISR = gauge(
    "kafka_server_replicamanager_atminisrpartitioncount",
    "Partitions led here with exactly min.insync.replicas replicas in sync.",
)
REASSIGNING = gauge(
    "kafka_server_replicamanager_reassigningpartitions", "Partitions led here whose replicas are being changed."
)
ISR_SHRINKS = counter(
    "kafka_server_replicamanager_isrshrinks_total", "Number of times that a replica was removed from the ISR."
)
ISR_EXPANDS = counter(
    "kafka_server_replicamanager_isrexpands_total", "Number of times that a replica was added to the ISR."
)
BROKER_STATE = gauge(
    "kafka_server_kafkaserver_brokerstate",
    "0 not running, 1 starting, 2 recovery, 3 running, 6 pending controlled shutdown, 7 shutting down.",
)
ACTIVE_CONTROLLERS = gauge(
    "kafka_controller_kafkacontroller_activecontrollercount", "1 if this node is the controller."
)
OFFLINE_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions of the cluster without a leader."
)
GLOBAL_TOPICS = gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
GLOBAL_PARTITIONS = gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
PREFERRED_IMBALANCE = gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "Partitions whose leader is not their preferred replica.",
)
ACTIVE_BROKERS = gauge("kafka_controller_kafkacontroller_activebrokercount", "Registered brokers that are not fenced.")
FENCED_BROKERS = gauge("kafka_controller_kafkacontroller_fencedbrokercount", "Registered brokers that are fenced.")
METADATA_OFFSET = gauge(
    "kafka_controller_kafkacontroller_lastappliedrecordoffset", "Last offset of the metadata log that has been applied."
)
RAFT_STATE = gauge(
    "kafka_server_raftmetrics_current_state", "1 for the state of this node in the metadata quorum.", "current_state"
)
RAFT_LEADER = gauge(
    "kafka_server_raftmetrics_current_leader", "Node id of the leader of the metadata quorum; -1 if it is not known."
)
RAFT_EPOCH = gauge("kafka_server_raftmetrics_current_epoch", "Epoch of the metadata quorum.")
RAFT_HIGH_WATERMARK = gauge(
    "kafka_server_raftmetrics_high_watermark",
    "Offset of the metadata log before which all records are committed; -1 if it is not known.",
)
RAFT_LOG_END_OFFSET = gauge("kafka_server_raftmetrics_log_end_offset", "End offset of this node's metadata log.")
RAFT_VOTERS = gauge("kafka_server_raftmetrics_number_of_voters", "Voters of the metadata quorum.")
RAFT_ELECTION_AVG = gauge(
    "kafka_server_raftmetrics_election_latency_avg",
    "Average milliseconds without a known leader of the metadata quorum, of all elections since the start.",
)
RAFT_ELECTION_MAX = gauge(
    "kafka_server_raftmetrics_election_latency_max",
    "Most milliseconds without a known leader of the metadata quorum since the start.",
)
UNCLEAN_ELECTIONS = counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "Elections of leaders that were not in sync, in the whole cluster: records may be lost.",
)
ELIGIBLE_ELECTIONS = counter(
    "kafkapy_elections_from_eligible_replicas_total",
    "Elections of eligible leader replicas (KIP-966) in the whole cluster, when no replica was in sync.",
)
REPLICA_LAG = gauge(
    "kafkapy_replica_max_lag_records",
    "Largest number of records that a follower lacks in a partition led here, by the follower's broker id.",
    "replica",
)
REPLICA_LAG_MS = gauge(
    "kafkapy_replica_max_lag_ms",
    "Longest time for which a follower has not been caught up with a partition led here, by the follower's broker id.",
    "replica",
)

# -- requests ----------------------------------------------------------------------------------------------------------

REQUESTS = counter(
    "kafka_network_requestmetrics_requests_total",
    "Requests that got a response; a fetch counts as Fetch, and as FetchConsumer or FetchFollower.",
    "request",
)
REQUEST_ERRORS = counter(
    "kafka_network_requestmetrics_errors_total",
    "Errors in responses: of whole responses, and of partitions of Produce and Fetch.",
    "request", "error",
)  # fmt: skip
REQUEST_TIME_MS = summary(
    "kafka_network_requestmetrics_totaltimems",
    "Milliseconds from a request's arrival to its response, including the wait for records or replicas.",
    "request",
)
REQUEST_SECONDS = histogram(
    "kafkapy_request_seconds", "Seconds from a request's arrival to its response, as a histogram.", "request"
)
REQUEST_BYTES = counter("kafkapy_request_bytes_total", "Bytes of requests that got a response.", "request")
REQUEST_QUEUE = gauge(
    "kafka_network_requestchannel_requestqueuesize", "Requests that wait for a thread of the handler pool."
)
REQUESTS_IN_PROCESS = gauge(
    "kafkapy_requests_in_process", "Requests without a response yet, including those that wait."
)
REQUESTS_GATED = counter("kafkapy_requests_gated_total", "Requests served without the interpreter lock.")
HANDLER_IDLE = gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "Share of the handler pool's threads that are idle, 0 to 1.",
)
PROCESSOR_IDLE = gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "Share of the last minute in which the reactor waited for events, 0 to 1.",
)
REACTOR_IDLE = counter("kafkapy_reactor_idle_seconds_total", "Seconds in which the reactor waited for events.")
REACTOR_WAKEUPS = counter("kafkapy_reactor_wakeups_total", "Number of times that the reactor woke up.")
REACTOR_PYTHON_PHASES = counter("kafkapy_reactor_python_phases_total", "Wake-ups in which the reactor ran Python.")
CONNECTIONS = gauge(
    "kafka_server_socket_server_metrics_connection_count", "Open connections.", "listener", "networkProcessor"
)
CONNECTIONS_CREATED = counter("kafka_server_socket_server_metrics_connection_creation_total", "Connections accepted.")
CONNECTIONS_CLOSED = counter("kafka_server_socket_server_metrics_connection_close_total", "Connections closed.")
_SOCKET_METRICS = "kafka_server_socket_server_metrics"
ACCEPT_THROTTLE_TIME = gauge(
    f"{_SOCKET_METRICS}_connection_accept_throttle_time",
    "Average milliseconds for which a listener recently waited, to keep max.connection.creation.rate.", "listener",
)  # fmt: skip
ADDRESS_ACCEPT_THROTTLE_TIME = gauge(
    f"{_SOCKET_METRICS}_ip_connection_accept_throttle_time",
    "Average milliseconds after which connections of addresses beyond their quota were recently closed.", "listener",
)  # fmt: skip
AUTHENTICATIONS = counter(
    f"{_SOCKET_METRICS}_successful_authentication_total", "Successful authentications.",
    "listener", "networkProcessor",
)  # fmt: skip
AUTHENTICATIONS_WITHOUT_REAUTHENTICATION = counter(
    f"{_SOCKET_METRICS}_successful_authentication_no_reauth_total",
    "Successful authentications of clients that are too old to authenticate again on the same connection.",
    "listener", "networkProcessor",
)  # fmt: skip
FAILED_AUTHENTICATIONS = counter(
    f"{_SOCKET_METRICS}_failed_authentication_total", "Connections closed because the authentication failed.",
    "listener", "networkProcessor",
)  # fmt: skip
REAUTHENTICATIONS = counter(
    f"{_SOCKET_METRICS}_successful_reauthentication_total", "Clients that authenticated again on their connection.",
    "listener", "networkProcessor",
)  # fmt: skip
FAILED_REAUTHENTICATIONS = counter(
    f"{_SOCKET_METRICS}_failed_reauthentication_total", "Connections closed because the re-authentication failed.",
    "listener", "networkProcessor",
)  # fmt: skip
REAUTHENTICATION_LATENCY_AVERAGE = gauge(
    f"{_SOCKET_METRICS}_reauthentication_latency_avg",
    "Average milliseconds of re-authentications in the last 30 to 60 seconds.",
    "listener", "networkProcessor",
)  # fmt: skip
REAUTHENTICATION_LATENCY_MAXIMUM = gauge(
    f"{_SOCKET_METRICS}_reauthentication_latency_max",
    "Longest re-authentication of the last 30 to 60 seconds, in milliseconds.",
    "listener", "networkProcessor",
)  # fmt: skip
EXPIRED_CONNECTIONS = gauge(
    f"{_SOCKET_METRICS}_expired_connections_killed_count",
    "Connections closed because the client sent a request after its authentication had expired.",
    "listener", "networkProcessor",
)  # fmt: skip
BYTES_RECEIVED = counter("kafkapy_network_received_bytes_total", "Bytes received from clients.")
BYTES_SENT = counter("kafkapy_network_sent_bytes_total", "Bytes sent to clients.")
PURGATORY_SIZE = gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "Entries in the lists of waiting requests, one for each partition that a request waits for.",
    "delayedOperation",
)
DELAYED_OPERATIONS = gauge(
    "kafka_server_delayedoperationpurgatory_numdelayedoperations", "Requests that wait.", "delayedOperation"
)
EXPIRED_OPERATIONS = counter(
    "kafkapy_delayed_operations_expired_total", "Requests that waited until their time-out.", "delayedOperation"
)
FETCH_SESSIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Incremental fetch sessions (KIP-227)."
)

# -- authorization -----------------------------------------------------------------------------------------------------

_PLUGINS = "kafka_server_plugins"
_PLUGIN_LABELS = ("class", "config", "role")
ACLS = gauge(f"{_PLUGINS}_acls_total_count", "ACLs that the authorizer uses.", *_PLUGIN_LABELS)
AUTHORIZATION_RATE = gauge(
    f"{_PLUGINS}_authorization_request_rate_per_minute", "Decisions per minute, in the last minute.", *_PLUGIN_LABELS
)
AUTHORIZATION_ALLOWED_RATE = gauge(
    f"{_PLUGINS}_authorization_allowed_rate_per_minute", "Permissions per minute, in the last minute.", *_PLUGIN_LABELS
)
AUTHORIZATION_DENIED_RATE = gauge(
    f"{_PLUGINS}_authorization_denied_rate_per_minute", "Denials per minute, in the last minute.", *_PLUGIN_LABELS
)
AUTHORIZATIONS = counter("kafkapy_authorizations_total", "Decisions of the authorizer.", "result")

# -- logs --------------------------------------------------------------------------------------------------------------

OFFLINE_DIRECTORIES = gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that have failed.")
DIRECTORY_OFFLINE = gauge(
    "kafka_log_logmanager_logdirectoryoffline", "1 if the log directory has failed.", "logDirectory"
)
DIRECTORY_USABLE = gauge(
    "kafkapy_log_directory_usable_bytes", "Free bytes of the directory's file system.", "logDirectory"
)
DIRECTORY_TOTAL = gauge("kafkapy_log_directory_total_bytes", "Bytes of the directory's file system.", "logDirectory")
CLEANER_DEAD_THREADS = gauge(
    "kafka_log_logcleaner_deadthreadcount",
    "Threads of the log cleaner that have died; compacted logs grow without them.",
)
CLEANER_AGE = gauge(
    "kafka_log_logcleanermanager_time_since_last_run_ms",
    "Milliseconds since a thread of the log cleaner last looked for work; 0 while it is switched off.",
)
CLEANER_DIRTY = gauge(
    "kafka_log_logcleanermanager_max_dirty_percent",
    "Largest share of a compacted log that has not been cleaned, 0 to 100.",
)
UNCLEANABLE_PARTITIONS = gauge(
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    "Compacted partitions that could not be cleaned and are skipped.",
    "logDirectory",
)
UNCLEANABLE_BYTES = gauge(
    "kafka_log_logcleanermanager_uncleanable_bytes",
    "Bytes of the compacted partitions that could not be cleaned.",
    "logDirectory",
)

# -- coordinators ------------------------------------------------------------------------------------------------------

_GROUPS = "kafka_coordinator_group_groupmetadatamanager"
GROUPS = gauge(f"{_GROUPS}_numgroups", "Groups whose coordinator is here.")
GROUP_OFFSETS = gauge(f"{_GROUPS}_numoffsets", "Offsets that groups have committed.")
GROUPS_EMPTY = gauge(f"{_GROUPS}_numgroupsempty", "Groups without members.")
GROUPS_PREPARING = gauge(f"{_GROUPS}_numgroupspreparingrebalance", "Groups that wait for members to join.")
GROUPS_COMPLETING = gauge(f"{_GROUPS}_numgroupscompletingrebalance", "Groups that wait for their assignment.")
GROUPS_STABLE = gauge(f"{_GROUPS}_numgroupsstable", "Groups whose members have their assignment.")
GROUPS_DEAD = gauge(f"{_GROUPS}_numgroupsdead", "Groups that are about to be removed.")
GROUPS_BY_STATE = gauge(
    "kafkapy_groups", "Groups by protocol (classic, consumer, share, streams) and state.", "protocol", "state"
)
GROUP_MEMBERS = gauge("kafka_consumergroup_members", "Members of a group.", "consumergroup")
GROUP_OFFSET = gauge(
    "kafka_consumergroup_current_offset", "Offset that a group has committed.", "consumergroup", "topic", "partition"
)
GROUP_LAG = gauge(
    "kafka_consumergroup_lag",
    "Offsets from a group's committed offset to the high watermark.",
    "consumergroup",
    "topic",
    "partition",
)
GROUP_STABLE_LAG = gauge(
    "kafkapy_consumergroup_stable_lag",
    "Offsets from a group's committed offset to the last stable offset: the lag with isolation.level=read_committed.",
    "consumergroup", "topic", "partition",
)  # fmt: skip
GROUP_LAG_SUM = gauge(
    "kafka_consumergroup_lag_sum", "Sum of a group's lags in all partitions of a topic.", "consumergroup", "topic"
)

# -- the listener for ZooKeeper's clients, on the broker that serves the tree ---------------------------------------

ZOOKEEPER_NODES = gauge("kafkapy_zookeeper_znodes", "Znodes of the tree.")
ZOOKEEPER_EPHEMERALS = gauge("kafkapy_zookeeper_ephemeral_znodes", "Ephemeral znodes, which end with their sessions.")
ZOOKEEPER_SESSIONS = gauge("kafkapy_zookeeper_sessions", "Sessions of clients.")
ZOOKEEPER_CONNECTIONS = gauge("kafkapy_zookeeper_connections", "Connections of ZooKeeper's clients.")
ZOOKEEPER_WATCHES = gauge("kafkapy_zookeeper_watches", "Watches that are set.")
ZOOKEEPER_OUTSTANDING = gauge("kafkapy_zookeeper_outstanding_requests", "Requests that wait for the log.")
ZOOKEEPER_RECEIVED = counter("kafkapy_zookeeper_packets_received_total", "Requests of ZooKeeper's clients.")
ZOOKEEPER_SENT = counter("kafkapy_zookeeper_packets_sent_total", "Replies and watch events to ZooKeeper's clients.")

# -- share groups: one series for each share partition that this broker has loaded -------------------------------------

_SHARE_SESSIONS = "kafka_server_sharesessioncache"
SHARE_SESSIONS = gauge(f"{_SHARE_SESSIONS}_sharesessionscount", "Share sessions of members of share groups.")
SHARE_SESSION_PARTITIONS = gauge(
    f"{_SHARE_SESSIONS}_sharepartitionscount", "Partitions in all share sessions together."
)
SHARE_SESSION_EVICTIONS = counter(
    f"{_SHARE_SESSIONS}_sharesessionevictions_total",
    "Share sessions that ended with the connection that had opened them.",
)
SHARE_ACKNOWLEDGEMENTS = counter(
    "kafka_server_sharegroupmetrics_recordacknowledgements_total",
    "Records that members of share groups have accepted, released, rejected or renewed.",
    "acktype",
)
_SHARE_PARTITIONS = "kafka_server_sharepartitionmetrics"
SHARE_IN_FLIGHT = gauge(
    f"{_SHARE_PARTITIONS}_inflightmessagecount",
    "Offsets from the first that the group has not finished to the last that it has acquired.",
    "group", "topic", "partition",
)  # fmt: skip
SHARE_IN_FLIGHT_BATCHES = gauge(
    f"{_SHARE_PARTITIONS}_inflightbatchcount",
    "Ranges of offsets in flight that have one state each.",
    "group", "topic", "partition",
)  # fmt: skip
SHARE_LOCK_TIMEOUTS = counter(
    f"{_SHARE_PARTITIONS}_acquisitionlocktimeout_total",
    "Acquisition locks that have expired, which made their records available again.",
    "group", "topic", "partition",
)  # fmt: skip
SHARE_LAG = gauge(
    "kafkapy_sharegroup_lag",
    "Records up to the high watermark that a share group has not finished.",
    "group", "topic", "partition",
)  # fmt: skip
SHARE_LAST_DELIVERIES = gauge(
    "kafkapy_sharegroup_last_deliveries",
    "Records in flight whose present or next delivery is the last one that the group's limit allows.",
    "group", "topic", "partition",
)  # fmt: skip

# -- transactions ------------------------------------------------------------------------------------------------------

TRANSACTIONS = gauge("kafkapy_transactions", "Transactional ids by state.", "state")
TRANSACTION_AGE = gauge(
    "kafkapy_transaction_oldest_seconds",
    "Age of the oldest open transaction; consumers with isolation.level=read_committed wait for its end.",
)
PRODUCERS = gauge("kafkapy_producers", "Idempotent producers that have state in the partitions of this broker.")

# -- quotas: one series for each user and client id that share a limit -------------------------------------------------

PRODUCE_BYTE_RATE = gauge(
    "kafka_server_produce_byte_rate", "Bytes per second of produce requests, of clients with a quota.",
    "user", "client_id",
)  # fmt: skip
PRODUCE_THROTTLE_TIME = gauge(
    "kafka_server_produce_throttle_time", "Average milliseconds by which a producer was delayed recently.",
    "user", "client_id",
)  # fmt: skip
PRODUCE_LIMIT = gauge(
    "kafkapy_quota_producer_byte_rate",
    "The quota of producers, and the entity that sets it.",
    "user",
    "client_id",
    "rule",
)
FETCH_BYTE_RATE = gauge(
    "kafka_server_fetch_byte_rate", "Bytes per second of responses to consumers with a quota.", "user", "client_id"
)
FETCH_THROTTLE_TIME = gauge(
    "kafka_server_fetch_throttle_time", "Average milliseconds by which a consumer was delayed recently.",
    "user", "client_id",
)  # fmt: skip
FETCH_LIMIT = gauge(
    "kafkapy_quota_consumer_byte_rate",
    "The quota of consumers, and the entity that sets it.",
    "user",
    "client_id",
    "rule",
)
REQUEST_TIME = gauge(
    "kafka_server_request_request_time", "Percentage of a thread's time that a client with a quota uses.",
    "user", "client_id",
)  # fmt: skip
REQUEST_THROTTLE_TIME = gauge(
    "kafka_server_request_throttle_time",
    "Average milliseconds by which the requests of a client were delayed recently.",
    "user", "client_id",
)  # fmt: skip
REQUEST_LIMIT = gauge(
    "kafkapy_quota_request_percentage",
    "The quota of requests, and the entity that sets it.",
    "user",
    "client_id",
    "rule",
)
MUTATION_TOKENS = gauge(
    "kafka_server_controllermutation_tokens",
    "Partitions that a client may still create or delete; below 0 its requests are refused or delayed.",
    "user", "client_id",
)  # fmt: skip
MUTATION_RATE = gauge(
    "kafka_server_controllermutation_mutation_rate",
    "Partitions per second that a client with a quota creates or deletes.",
    "user", "client_id",
)  # fmt: skip
MUTATION_THROTTLE_TIME = gauge(
    "kafka_server_controllermutation_throttle_time",
    "Average milliseconds by which changes of topics were delayed recently.",
    "user", "client_id",
)  # fmt: skip
MUTATION_LIMIT = gauge(
    "kafkapy_quota_controller_mutation_rate", "The quota of changes of topics, and the entity that sets it.",
    "user", "client_id", "rule",
)  # fmt: skip
EXEMPT_TIME = gauge(
    "kafka_server_request_exempt_request_time",
    "Percentage of a thread's time that requests without a quota use: followers' fetches, and those with acks=0.",
)
PRODUCE_QUEUE_SIZE = gauge("kafka_server_produce_queue_size", "Producers that wait because of their quota.")
FETCH_QUEUE_SIZE = gauge("kafka_server_fetch_queue_size", "Consumers that wait because of their quota.")
REQUEST_QUEUE_SIZE = gauge("kafka_server_request_queue_size", "Clients that wait because of the quota of requests.")
QUEUE_SIZES = {
    "producer_byte_rate": PRODUCE_QUEUE_SIZE,
    "consumer_byte_rate": FETCH_QUEUE_SIZE,
    "request_percentage": REQUEST_QUEUE_SIZE,
}
MUTATION_QUEUE_SIZE = gauge(
    "kafka_server_controllermutation_queue_size", "Clients that wait because of the quota of changes of topics."
)
QUOTA_LIMITS = {
    "producer_byte_rate": PRODUCE_LIMIT, "consumer_byte_rate": FETCH_LIMIT, "request_percentage": REQUEST_LIMIT
}  # fmt: skip
LEADER_REPLICATION = gauge(
    "kafka_server_leaderreplication_byte_rate",
    "Bytes per second that the leaders here send to throttled followers (KIP-73).",
)
FOLLOWER_REPLICATION = gauge(
    "kafka_server_followerreplication_byte_rate", "Bytes per second that throttled followers here fetch (KIP-73)."
)
ALTER_LOG_DIRS_REPLICATION = gauge(
    "kafka_server_alterlogdirsreplication_byte_rate",
    "Bytes per second that are copied to move replicas between log directories.",
)
MUTED_CONNECTIONS = gauge(
    "kafkapy_network_muted_connections", "Connections that are not read because their client has exceeded a quota."
)

# -- clients' own metrics ----------------------------------------------------------------------------------------------

CLIENT_INSTANCES = gauge("kafkapy_client_instances", "Clients that requested a metrics subscription (KIP-714).")
CLIENT_PUSHES = counter("kafkapy_client_telemetry_pushes_total", "Pushes of clients' metrics that were accepted.")
CLIENT_PUSHES_REFUSED = counter("kafkapy_client_telemetry_refused_total", "Pushes that were refused.")
CLIENT_PUSHED_BYTES = counter("kafkapy_client_telemetry_bytes_total", "Bytes of pushes, decompressed.")
CLIENT_DROPPED = counter(
    "kafkapy_client_telemetry_dropped_total",
    "Points of clients' metrics that were dropped: not a number, or beyond the limit of series.",
)
CLIENT_METRIC = untyped(
    "kafkapy_client_metric",
    "Numbers that clients pushed: `metric` is the name, `attributes` are the client's. Differences are added up; the "
    "series of a client that has been silent for three push intervals are removed.",
    "metric", "client_id", "client_instance_id", "attributes",
)  # fmt: skip

# -- the process -------------------------------------------------------------------------------------------------------

BUILD = gauge(
    "kafkapy_build_info", "Always 1; the labels are those of the running broker.", "version", "node_id", "cluster_id"
)
PROCESS_CPU = counter("process_cpu_seconds_total", "User and system time in seconds.")
PROCESS_RESIDENT = gauge("process_resident_memory_bytes", "Resident memory.")
PROCESS_VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory.")
PROCESS_START = gauge("process_start_time_seconds", "When the process was started, in seconds since 1970.")
PROCESS_THREADS = gauge("process_threads", "Threads.")
PROCESS_OPEN_FILES = gauge("process_open_fds", "Open file descriptors.")
PROCESS_MOST_FILES = gauge("process_max_fds", "File descriptors that may be open.")
PAGES = counter("kafkapy_metrics_pages_total", "Pages of metrics rendered, this one not included.")
PAGES_CPU = counter("kafkapy_metrics_cpu_seconds_total", "Processor time for rendering pages of metrics.")

METRICS: dict[str, Metric] = {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
