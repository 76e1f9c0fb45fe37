"""The requests of every API, each sent by clients with different permissions, and the error codes of the answers.

A permission is written as `Read topic t`, `Write transactional-id x` or `Describe cluster`. A name with `{user}` is of
the case alone. The codes of an answer are all its error codes; 0 stands for a success, and is not compared, because not
every version has a code for each part. `CLOSED` stands for the end of the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from tests.wire.every_version import UNKNOWN_ID, Values, always

BROKER, CONTROLLER = "broker", "controller"
CLOSED = "closed"
TOPIC, OTHER, ABSENT = "t", "u", "absent"
GROUP, CONSUMER_GROUP, STREAMS_GROUP = "g", "cg", "sg"
TRANSACTIONAL_ID = "x"
ANOTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"

CLUSTER_ACTION, ALTER = "ClusterAction cluster", "Alter cluster"
NO_PERMISSION: tuple[str, ...] = ()
Expected = set[int] | str


class Context(NamedTuple):
    """The user who sends a request, and the ids of topics, on which the values of the request may depend."""

    user: str
    ids: dict[str, bytes]  # of topics, by name


class Case(NamedTuple):
    key: ApiKey
    version: int
    name: str
    values: Callable[[Context], Values]
    permissions: tuple[str, ...]
    expected: Expected
    listener: str = BROKER

    @property
    def label(self) -> str:
        return f"{self.key.name} {self.version} {self.name}: {', '.join(self.permissions) or 'nothing'}"


Variants = dict[tuple[str, ...], Expected]
CASES: list[Case] = []


def row(key: ApiKey, version: int, name: str, values: Any, variants: Variants, *, listener: str = BROKER) -> None:
    """Adds a case for each of the combinations of permissions."""
    make = values if callable(values) else lambda context: values
    for permissions, expected in variants.items():
        codes = expected if isinstance(expected, str) else expected - {0}
        CASES.append(Case(key, version, name, make, permissions, codes, listener))


def grants(*permissions: str) -> tuple[str, ...]:
    return permissions


def batch(*, is_transactional: bool = False) -> bytes:
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if is_transactional else {}
    builder = RecordBatchBuilder(is_transactional=is_transactional, **producer)
    builder.append(1_790_000_000_000, b"k", b"v")
    return builder.build()


# -- records


def produce(
    topic: str, *, acks: int = -1, transactional_id: str | None = None, is_transactional: bool = False
) -> Callable[[Context], Values]:
    def values(context: Context) -> Values:
        data = [{"index": 0, "records": batch(is_transactional=is_transactional)}]
        named = {"name": topic, "topic_id": context.ids.get(topic, UNKNOWN_ID), "partition_data": data}
        return {"acks": acks, "timeout_ms": 5000, "transactional_id": transactional_id, "topic_data": [named]}

    return values


def fetch(topic: str, *, replica_id: int = -1) -> Callable[[Context], Values]:
    def values(context: Context) -> Values:
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        named = {"topic": topic, "topic_id": context.ids.get(topic, UNKNOWN_ID), "partitions": [asked]}
        common = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [named], "session_epoch": -1}
        return {"replica_id": replica_id, "replica_state": {"replica_id": replica_id, "replica_epoch": -1}, **common}

    return values


WRITE_T, READ_T, DESCRIBE_T = "Write topic t", "Read topic t", "Describe topic t"
WRITE_X, DESCRIBE_X = "Write transactional-id x", "Describe transactional-id x"
READ_G, DESCRIBE_G, DELETE_G = "Read group g", "Describe group g", "Delete group g"

for version in (9, 13):
    row(ApiKey.PRODUCE, version, "records", produce(TOPIC), {
        NO_PERMISSION: {29}, grants(DESCRIBE_T): {29}, grants(READ_T): {29}, grants(WRITE_T): {0},
        grants("All topic t"): {0},
    })  # fmt: skip
row(ApiKey.PRODUCE, 9, "to an absent topic", produce(ABSENT), {
    NO_PERMISSION: {29}, grants("Write topic absent"): {3},
})  # fmt: skip
row(ApiKey.PRODUCE, 13, "to an unknown id", produce(ABSENT), {NO_PERMISSION: {100}})
row(ApiKey.PRODUCE, 9, "without acks", produce(TOPIC, acks=0), {NO_PERMISSION: CLOSED})
transactional = produce(TOPIC, transactional_id=TRANSACTIONAL_ID, is_transactional=True)
row(ApiKey.PRODUCE, 9, "in a transaction", transactional, {
    NO_PERMISSION: {53}, grants(WRITE_T): {53}, grants(WRITE_X): {29}, grants(WRITE_X, WRITE_T): {49},
})  # fmt: skip
without_acks = produce(TOPIC, acks=0, transactional_id=TRANSACTIONAL_ID, is_transactional=True)
row(ApiKey.PRODUCE, 9, "in a transaction without acks", without_acks, {NO_PERMISSION: CLOSED})
row(ApiKey.PRODUCE, 9, "in a transaction without an id", produce(TOPIC, is_transactional=True), {
    NO_PERMISSION: {53}, grants(WRITE_T): {53},
})  # fmt: skip
row(ApiKey.PRODUCE, 9, "plain, with a transactional id", produce(TOPIC, transactional_id=TRANSACTIONAL_ID), {
    NO_PERMISSION: {29}, grants(WRITE_T): {0},
})  # fmt: skip

for version in (4, 12, 13):
    row(ApiKey.FETCH, version, "of a consumer", fetch(TOPIC), {
        NO_PERMISSION: {29}, grants(DESCRIBE_T): {29}, grants(CLUSTER_ACTION): {29}, grants(READ_T): {0},
    })  # fmt: skip
row(
    ApiKey.FETCH, 12, "of an absent topic", fetch(ABSENT), {NO_PERMISSION: {0, 29}, grants("Read topic absent"): {0, 3}}
)
row(ApiKey.FETCH, 13, "of an unknown id", fetch(ABSENT), {NO_PERMISSION: {0, 100}})
row(ApiKey.FETCH, 13, "of a follower", fetch(TOPIC, replica_id=7), {
    NO_PERMISSION: {29}, grants(READ_T): {29}, grants(CLUSTER_ACTION): {6},
})  # fmt: skip
row(ApiKey.FETCH, 13, "of a follower with an unknown id", fetch(ABSENT, replica_id=7), {
    NO_PERMISSION: {0, 29}, grants(CLUSTER_ACTION): {0, 100},
})  # fmt: skip

asked_offset = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1, "max_num_offsets": 1}
row(ApiKey.LIST_OFFSETS, 7, "", always(
    replica_id=-1, topics=[{"name": each, "partitions": [asked_offset]} for each in (TOPIC, ABSENT)])(7, {}), {
    NO_PERMISSION: {29}, grants(DESCRIBE_T): {0, 29}, grants(READ_T): {0, 29}, grants("Describe topic *"): {0, 3},
    grants(DESCRIBE_T, "Describe topic absent"): {0, 3},
})  # fmt: skip
row(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, "", {
    "replica_id": -1, "topics": [{"topic": each, "partitions": [
        {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]} for each in (TOPIC, ABSENT)]}, {
    NO_PERMISSION: {29}, grants(DESCRIBE_T): {0, 29}, grants(CLUSTER_ACTION): {0, 3},
})  # fmt: skip
row(ApiKey.DELETE_RECORDS, 2, "", {"timeout_ms": 1000, "topics": [
    {"name": each, "partitions": [{"partition_index": 0, "offset": 0}]} for each in (TOPIC, ABSENT)]}, {
    NO_PERMISSION: {29}, grants(DESCRIBE_T): {29}, grants("Delete topic t"): {0, 29},
    grants("Delete topic t", "Delete topic absent"): {0, 3},
})  # fmt: skip
row(ApiKey.DESCRIBE_PRODUCERS, 0, "", {
    "topics": [{"name": each, "partition_indexes": [0]} for each in (TOPIC, ABSENT, "bad/name")]}, {
    NO_PERMISSION: {17, 29}, grants(READ_T): {0, 17, 29}, grants(READ_T, "Read topic absent"): {0, 3, 17},
})  # fmt: skip


# -- metadata


def metadata(names: list[str] | None, *, create: bool = False, by_id: bool = False) -> Callable[[Context], Values]:
    def values(context: Context) -> Values:
        topics = None if names is None else [
            {"name": None, "topic_id": context.ids.get(each, UNKNOWN_ID)} if by_id
            else {"name": each.format(user=context.user)} for each in names
        ]  # fmt: skip
        return {
            "topics": topics, "allow_auto_topic_creation": create, "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }  # fmt: skip

    return values


for version in (1, 9, 12):
    row(ApiKey.METADATA, version, "of named topics", metadata([TOPIC, ABSENT]), {
        NO_PERMISSION: {29}, grants(DESCRIBE_T): {0, 29}, grants("Alter topic t"): {0, 29},
        # Version 1 creates missing topics.
        grants("Describe topic absent"): {29, 3} if version > 1 else {29}, grants("Describe cluster"): {29},
        grants(DESCRIBE_T, "Describe cluster", "AlterConfigs cluster", READ_T): {0, 29},
    })  # fmt: skip
    row(ApiKey.METADATA, version, "of all topics", metadata(None), {
        NO_PERMISSION: set(), grants(DESCRIBE_T): {0}, grants(READ_T, "Read topic absent"): {0},
    })  # fmt: skip
row(ApiKey.METADATA, 12, "by id", metadata([TOPIC, OTHER, ABSENT], by_id=True), {
    NO_PERMISSION: {29, 100}, grants(DESCRIBE_T): {0, 29, 100},
})  # fmt: skip
row(ApiKey.METADATA, 12, "with creation", metadata(["auto-{user}"], create=True), {
    NO_PERMISSION: {29}, grants("Create cluster"): {29}, grants("Describe topic auto-{user}"): {29},
    grants("Describe topic auto-{user}", "Create topic auto-{user}"): {3},
    grants("Describe topic auto-{user}", "Create cluster"): {3},
})  # fmt: skip
for names in ([TOPIC, ABSENT], []):
    row(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, "of named topics" if names else "of all topics", {
        "topics": [{"name": each} for each in names], "response_partition_limit": 10, "cursor": None}, {
        NO_PERMISSION: {29} if names else set(), grants(DESCRIBE_T): {0, 29} if names else {0},
    })  # fmt: skip
row(ApiKey.DESCRIBE_CLUSTER, 2, "", {"include_cluster_authorized_operations": True, "endpoint_type": 1}, {
    NO_PERMISSION: {0}, grants("Describe cluster"): {0}, grants("Alter cluster", "IdempotentWrite cluster"): {0},
})  # fmt: skip


# -- groups


def find_coordinator(key_type: int, *keys: str) -> Values:
    return {"key_type": key_type, "coordinator_keys": list(keys)}


row(ApiKey.FIND_COORDINATOR, 4, "of groups", find_coordinator(0, GROUP, CONSUMER_GROUP), {
    NO_PERMISSION: {30}, grants(READ_G): {0, 30}, grants(DESCRIBE_G): {0, 30},
})  # fmt: skip
row(ApiKey.FIND_COORDINATOR, 3, "of a group", {"key": GROUP, "key_type": 0}, {
    NO_PERMISSION: {30}, grants(DESCRIBE_G): {0},
})  # fmt: skip
row(ApiKey.FIND_COORDINATOR, 4, "of a transactional id", find_coordinator(1, TRANSACTIONAL_ID), {
    NO_PERMISSION: {53}, grants(DESCRIBE_X): {0}, grants(WRITE_X): {0},
})  # fmt: skip
row(ApiKey.FIND_COORDINATOR, 6, "of a share partition", find_coordinator(2, "g:AAAAAAAAAAAAAAAAAAAAAg:0"), {
    NO_PERMISSION: {31}, grants(CLUSTER_ACTION): {15},
})  # fmt: skip
join = {
    "group_id": GROUP, "session_timeout_ms": 10000, "rebalance_timeout_ms": 1000, "member_id": "nobody",
    "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"\0\1"}],
}  # fmt: skip
for version in (5, 9):
    row(ApiKey.JOIN_GROUP, version, "", join, {
        NO_PERMISSION: {30}, grants(DESCRIBE_G): {30}, grants(READ_G): {25},
    })  # fmt: skip
member = {"group_id": GROUP, "generation_id": 1, "member_id": "nobody"}
sync = {**member, "assignments": [], "protocol_type": "consumer", "protocol_name": "range"}
row(ApiKey.SYNC_GROUP, 5, "", sync, {NO_PERMISSION: {30}, grants(READ_G): {25}})
row(ApiKey.SYNC_GROUP, 5, "without a protocol", {**sync, "protocol_name": None}, {NO_PERMISSION: {23}})
row(ApiKey.HEARTBEAT, 4, "", member, {NO_PERMISSION: {30}, grants(READ_G): {25}})
row(ApiKey.LEAVE_GROUP, 4, "", {"group_id": GROUP, "members": [{"member_id": "nobody"}]}, {
    NO_PERMISSION: {30}, grants(READ_G): {0, 25},
})  # fmt: skip
row(ApiKey.DESCRIBE_GROUPS, 5, "", {"groups": [GROUP, CONSUMER_GROUP], "include_authorized_operations": True}, {
    NO_PERMISSION: {30}, grants(DESCRIBE_G): {0, 30}, grants(READ_G, DELETE_G): {0, 30},
    grants("Describe cluster"): {30},
})  # fmt: skip
row(ApiKey.LIST_GROUPS, 4, "", {"states_filter": []}, {
    NO_PERMISSION: {0}, grants(DESCRIBE_G): {0}, grants("Describe cluster"): {0},
})  # fmt: skip
row(ApiKey.DELETE_GROUPS, 2, "", {"groups_names": [CONSUMER_GROUP, "nobody"]}, {
    NO_PERMISSION: {30}, grants(READ_G, "Read group cg"): {30}, grants("Delete group cg"): {30, 68},
    grants("Delete group cg", "Delete group nobody"): {68, 69},
})  # fmt: skip
row(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, "", {"group_ids": [CONSUMER_GROUP], "include_authorized_operations": True}, {
    NO_PERMISSION: {30}, grants("Describe group cg"): {29}, grants("Describe group cg", DESCRIBE_T): {0},
})  # fmt: skip
row(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, "", {
    "group_id": "cg-{user}", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": [TOPIC, ABSENT], "topic_partitions": []}, {
    NO_PERMISSION: {30}, grants("Read group cg-{user}"): {29}, grants("Read group cg-{user}", DESCRIBE_T): {29},
    grants("Read group cg-{user}", DESCRIBE_T, "Describe topic absent"): {0},
})  # fmt: skip
row(ApiKey.SHARE_GROUP_HEARTBEAT, 1, "", {
    "group_id": "sg-{user}", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": [TOPIC, ABSENT]}, {
    NO_PERMISSION: {30}, grants("Read group sg-{user}"): {29}, grants("Read group sg-{user}", DESCRIBE_T): {29},
    grants("Read group sg-{user}", DESCRIBE_T, "Describe topic absent"): {0},
})  # fmt: skip
row(ApiKey.SHARE_GROUP_DESCRIBE, 1, "", {"group_ids": ["nobody"], "include_authorized_operations": True}, {
    NO_PERMISSION: {30}, grants("Describe group nobody"): {69},
})  # fmt: skip
row(ApiKey.SHARE_FETCH, 2, "", lambda context: {
    "group_id": "sg-{user}", "member_id": "m", "share_session_epoch": 0, "max_wait_ms": 0, "min_bytes": 0,
    "max_bytes": 0, "topics": [{"topic_id": context.ids[OTHER], "partitions": [{"partition_index": 0}]}]}, {
    NO_PERMISSION: {30}, grants("Read group sg-{user}"): {29},
})  # fmt: skip
row(ApiKey.SHARE_ACKNOWLEDGE, 2, "", lambda context: {
    "group_id": "sg-{user}", "member_id": "m", "share_session_epoch": 1, "topics": [
        {"topic_id": context.ids[TOPIC], "partitions": [{"partition_index": 0}]}]}, {
    NO_PERMISSION: {30}, grants("Read group sg-{user}"): {122},
})  # fmt: skip
row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, "", {
    "groups": [{"group_id": "nobody", "topics": [{"topic_name": ABSENT, "partitions": [0]}]}]}, {
    NO_PERMISSION: {30}, grants("Describe group nobody"): {29},
    grants("Describe group nobody", "Describe topic absent"): {0},
})  # fmt: skip
row(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, "", {
    "group_id": "so-{user}", "topics": [
        {"topic_name": ABSENT, "partitions": [{"partition_index": 0, "start_offset": 0}]}]}, {
    NO_PERMISSION: {30}, grants("Read group so-{user}"): {29},
    grants("Read group so-{user}", "Read topic absent"): {3},
})  # fmt: skip
row(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, "", {"group_id": "nobody", "topics": [{"topic_name": ABSENT}]}, {
    NO_PERMISSION: {30}, grants("Delete group nobody"): {69},
})  # fmt: skip
for key, version in (
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0), (ApiKey.READ_SHARE_GROUP_STATE, 0), (ApiKey.WRITE_SHARE_GROUP_STATE, 1),
    (ApiKey.DELETE_SHARE_GROUP_STATE, 0), (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1),
):  # fmt: skip
    row(key, version, "", lambda context: {
        "group_id": "", "topics": [{"topic_id": context.ids[TOPIC], "partitions": [{"partition": 0}]}]}, {
        NO_PERMISSION: {31}, grants(CLUSTER_ACTION): {0},
    })  # fmt: skip


def topology(changelog: str) -> Values:
    """Returns a topology whose only subtopology counts the records of the topic `t`, for a heartbeat that joins."""
    changelogs = [{"name": changelog, "partitions": 0, "replication_factor": 1, "topic_configs": []}]
    subtopology = {
        "subtopology_id": "0", "source_topics": [TOPIC], "source_topic_regex": [],
        "state_changelog_topics": changelogs, "repartition_sink_topics": [], "repartition_source_topics": [],
        "copartition_groups": [],
    }  # fmt: skip
    return {
        "member_epoch": 0, "rebalance_timeout_ms": 1000, "process_id": "p",
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
    }  # fmt: skip


row(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, "", {"group_id": "sg-{user}", "member_id": "m", **topology("made-{user}")}, {
    NO_PERMISSION: {30}, grants("Read group sg-{user}"): {29}, grants("Read group sg-{user}", DESCRIBE_T): {29},
    grants("Read group sg-{user}", DESCRIBE_T, "Describe topic made-{user}"): {0},
    grants("Read group sg-{user}", DESCRIBE_T, "Create topic made-{user}", "Describe topic made-{user}"): {0},
    grants("Read group sg-{user}", DESCRIBE_T, "Create cluster", "Describe topic made-{user}"): {0},
})  # fmt: skip
row(ApiKey.STREAMS_GROUP_DESCRIBE, 0, "", {"group_ids": [STREAMS_GROUP], "include_authorized_operations": True}, {
    NO_PERMISSION: {30}, grants("Describe group sg"): {29}, grants("Describe group sg", DESCRIBE_T): {29},
    grants("Describe group sg", DESCRIBE_T, "Describe topic absent"): {0},
})  # fmt: skip


# -- offsets


def offset_commit(context: Context) -> Values:
    asked = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m"}
    topics = [
        {"name": each, "topic_id": context.ids.get(each, UNKNOWN_ID), "partitions": [asked]}
        for each in (TOPIC, OTHER, ABSENT)
    ]
    return {"group_id": GROUP, "generation_id_or_member_epoch": -1, "topics": topics}


row(ApiKey.OFFSET_COMMIT, 8, "by name", offset_commit, {
    NO_PERMISSION: {30}, grants(READ_T): {30}, grants(READ_G): {29}, grants(READ_G, READ_T): {0, 29},
    grants(READ_G, READ_T, "Read topic absent"): {0, 3, 29},
})  # fmt: skip
row(ApiKey.OFFSET_COMMIT, 10, "by id", offset_commit, {
    NO_PERMISSION: {30}, grants(READ_G): {29, 100}, grants(READ_G, READ_T): {0, 29, 100},
})  # fmt: skip


def offset_fetch(version: int, names: tuple[str, ...] | None) -> Callable[[Context], Values]:
    def values(context: Context) -> Values:
        topics = None if names is None else [
            {"name": each, "topic_id": context.ids.get(each, UNKNOWN_ID), "partition_indexes": [0]} for each in names
        ]  # fmt: skip
        if version >= 8:
            return {"groups": [{"group_id": GROUP, "topics": topics}], "require_stable": True}
        plain = None if names is None else [{"name": each, "partition_indexes": [0]} for each in names]
        return {"group_id": GROUP, "topics": plain}

    return values


for version, denied in ((1, {30}), (5, {30}), (8, {30}), (10, {30})):
    absent = {100} if version == 10 else {29}
    named = {0} | {29} | absent if version != 1 else {29}
    row(ApiKey.OFFSET_FETCH, version, "of named topics", offset_fetch(version, (TOPIC, OTHER, ABSENT)), {
        NO_PERMISSION: denied, grants(DESCRIBE_T): denied, grants(DESCRIBE_G): named,
        grants(READ_G, READ_T): {0} | {29} | absent,
    })  # fmt: skip
for version in (5, 8, 10):
    row(ApiKey.OFFSET_FETCH, version, "of all topics", offset_fetch(version, None), {
        NO_PERMISSION: {30}, grants(DESCRIBE_G): {0}, grants(DESCRIBE_G, DESCRIBE_T): {0},
    })  # fmt: skip
row(ApiKey.OFFSET_DELETE, 0, "", {"group_id": "to-delete", "topics": [
    {"name": each, "partitions": [{"partition_index": 0}]} for each in (TOPIC, OTHER, ABSENT)]}, {
    NO_PERMISSION: {30}, grants("Read group to-delete"): {30}, grants("Delete group to-delete"): {0, 29},
    grants("Delete group to-delete", READ_T, "Read topic absent"): {0, 3, 29},
})  # fmt: skip


# -- transactions

row(ApiKey.INIT_PRODUCER_ID, 4, "transactional", {
    "transactional_id": "i-{user}", "transaction_timeout_ms": 1000}, {
    NO_PERMISSION: {53}, grants("IdempotentWrite cluster"): {53}, grants("Describe transactional-id i-{user}"): {53},
    grants("Write transactional-id i-{user}"): {0},
})  # fmt: skip
row(ApiKey.INIT_PRODUCER_ID, 4, "idempotent", {"transactional_id": None, "transaction_timeout_ms": 1000}, {
    NO_PERMISSION: {31}, grants(READ_T): {31}, grants("IdempotentWrite cluster"): {0}, grants(WRITE_T): {0},
})  # fmt: skip
row(ApiKey.INIT_PRODUCER_ID, 4, "with an id and no epoch", {
    "transactional_id": None, "transaction_timeout_ms": 1000, "producer_id": 5}, {
    NO_PERMISSION: {31}, grants(WRITE_T): {42},
})  # fmt: skip
producer = {"producer_id": 5, "producer_epoch": 0}
topics = [{"name": each, "partitions": [0]} for each in (TOPIC, ABSENT)]
row(ApiKey.ADD_PARTITIONS_TO_TXN, 3, "of a client", {
    "v3_and_below_transactional_id": "nobody", "v3_and_below_producer_id": 5, "v3_and_below_producer_epoch": 0,
    "v3_and_below_topics": topics}, {
    NO_PERMISSION: {53}, grants(WRITE_T): {53}, grants("Write transactional-id nobody"): {29},
    grants("Write transactional-id nobody", WRITE_T): {29, 55},
    grants("Write transactional-id nobody", WRITE_T, "Write topic absent"): {3, 55},
})  # fmt: skip
row(ApiKey.ADD_PARTITIONS_TO_TXN, 3, "with an internal topic", {
    "v3_and_below_transactional_id": "nobody", "v3_and_below_producer_id": 5, "v3_and_below_producer_epoch": 0,
    "v3_and_below_topics": [{"name": "__consumer_offsets", "partitions": [0]}, {"name": TOPIC, "partitions": [0]}]}, {
    grants("Write transactional-id nobody", "Write topic __consumer_offsets", WRITE_T): {29, 55},
})  # fmt: skip
row(ApiKey.ADD_PARTITIONS_TO_TXN, 5, "of a broker", {
    "transactions": [{"transactional_id": "nobody", "verify_only": True, "topics": topics[:1], **producer}]}, {
    NO_PERMISSION: {31}, grants("Write transactional-id nobody", WRITE_T): {31}, grants(CLUSTER_ACTION): {0, 49},
})  # fmt: skip
row(ApiKey.ADD_OFFSETS_TO_TXN, 3, "", {"transactional_id": "nobody", "group_id": GROUP, **producer}, {
    NO_PERMISSION: {53}, grants(READ_G): {53}, grants("Write transactional-id nobody"): {30},
    grants("Write transactional-id nobody", READ_G): {49},
})  # fmt: skip
row(ApiKey.END_TXN, 3, "", {"transactional_id": "nobody", "committed": True, **producer}, {
    NO_PERMISSION: {53}, grants("Write transactional-id nobody"): {49},
})  # fmt: skip
committed = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
row(ApiKey.TXN_OFFSET_COMMIT, 3, "", {
    "transactional_id": "nobody", "group_id": GROUP, "member_id": "", "generation_id": -1, **producer,
    "topics": [{"name": each, "partitions": [committed]} for each in (OTHER, ABSENT)]}, {
    NO_PERMISSION: {53}, grants("Write transactional-id nobody"): {30},
    grants("Write transactional-id nobody", READ_G): {29},
    grants("Write transactional-id nobody", READ_G, "Read topic absent"): {3, 29},
})  # fmt: skip
row(ApiKey.WRITE_TXN_MARKERS, 1, "", {"markers": [{
    "transaction_result": True, "coordinator_epoch": 0, **producer,
    "topics": [{"name": ABSENT, "partition_indexes": [0]}]}]}, {
    NO_PERMISSION: {31}, grants("Write topic absent"): {31}, grants(ALTER): {3}, grants(CLUSTER_ACTION): {3},
})  # fmt: skip
row(ApiKey.DESCRIBE_TRANSACTIONS, 0, "", {"transactional_ids": [TRANSACTIONAL_ID, "nobody"]}, {
    NO_PERMISSION: {53}, grants(DESCRIBE_X): {0, 53}, grants(WRITE_X, DESCRIBE_T): {0, 53},
    grants(DESCRIBE_X, "Describe transactional-id nobody"): {0, 105},
})  # fmt: skip
for pattern in (None, "x.*"):
    row(ApiKey.LIST_TRANSACTIONS, 2, f"with the pattern {pattern}", {
        "state_filters": [], "producer_id_filters": [], "transactional_id_pattern": pattern,
        "duration_filter": -1}, {NO_PERMISSION: {0}, grants(DESCRIBE_X): {0}})  # fmt: skip


# -- topics


def create_topics(context: Context) -> Values:
    names = (f"made-{context.user}", "__cluster_metadata")
    wanted = [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in names]
    wanted += [{"name": "twice", "num_partitions": 1, "replication_factor": 1}] * 2
    return {"topics": wanted, "timeout_ms": 10000}


row(ApiKey.CREATE_TOPICS, 7, "", create_topics, {
    NO_PERMISSION: {0, 29, 42}, grants("Describe topic made-{user}"): {0, 29, 42},
    grants("Create topic made-{user}"): {0, 29, 42}, grants("Create cluster"): {0, 29, 42},
    grants("Create cluster", "DescribeConfigs topic made-{user}"): {0, 42},
})  # fmt: skip
row(ApiKey.DELETE_TOPICS, 6, "by name", {
    "topics": [{"name": each} for each in ("gone-{user}", ABSENT)], "timeout_ms": 10000}, {
    NO_PERMISSION: {29}, grants("Describe topic gone-{user}"): {29}, grants("Describe topic absent"): {3, 29},
    grants("Delete topic absent"): {3, 29}, grants("Delete topic gone-{user}"): {0, 29},
    grants("Delete cluster"): {0, 3},
})  # fmt: skip


def delete_by_id(context: Context) -> Values:
    names = (f"gone-{context.user}", ABSENT)
    ids = [{"name": None, "topic_id": context.ids.get(each, UNKNOWN_ID)} for each in names]
    return {"topics": ids, "timeout_ms": 10000}


row(ApiKey.DELETE_TOPICS, 6, "by id", delete_by_id, {
    NO_PERMISSION: {29, 100}, grants("Describe topic gone-{user}"): {29, 100},
    grants("Delete topic gone-{user}"): {0, 100}, grants("Delete cluster"): {0, 100},
})  # fmt: skip
row(ApiKey.CREATE_PARTITIONS, 3, "", {
    "topics": [{"name": each, "count": 1, "assignments": None} for each in (TOPIC, ABSENT)], "timeout_ms": 10000,
    "validate_only": True}, {
    NO_PERMISSION: {29}, grants("Create topic t"): {29}, grants("Alter topic t"): {29, 37},
    grants("Alter topic t", "Alter topic absent"): {3, 37},
})  # fmt: skip


# -- configuration

TOPIC_CONFIG, BROKER_CONFIG, LOGGER_CONFIG, CLIENT_METRICS, GROUP_CONFIG = 2, 4, 8, 16, 32


def configs(kind: int, name: str, key: str, value: str, *, is_incremental: bool) -> Values:
    config: Values = {"name": key, "value": value} | ({"config_operation": 0} if is_incremental else {})
    resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
    return {"resources": [resource], "validate_only": True}


for kind, name, key, value, secured, error in (
    (TOPIC_CONFIG, TOPIC, "retention.ms", "1000000", "topic t", 29),
    (TOPIC_CONFIG, ABSENT, "retention.ms", "1000000", "topic absent", 29),
    (GROUP_CONFIG, GROUP, "consumer.session.timeout.ms", "50000", "group g", 30),
    (BROKER_CONFIG, "1", "log.cleaner.threads", "2", "cluster", 31),
    (CLIENT_METRICS, "metrics", "interval.ms", "60000", "cluster", 31),
):  # fmt: skip
    outcome = {3} if name == ABSENT else {0}
    for version, api in ((2, ApiKey.ALTER_CONFIGS), (1, ApiKey.INCREMENTAL_ALTER_CONFIGS)):
        row(api, version, f"of {kind} {name}", configs(
            kind, name, key, value, is_incremental=api is ApiKey.INCREMENTAL_ALTER_CONFIGS), {
            NO_PERMISSION: {error}, grants(f"DescribeConfigs {secured}"): {error},
            grants(f"AlterConfigs {secured}"): outcome,
        })  # fmt: skip
    row(ApiKey.DESCRIBE_CONFIGS, 4, f"of {kind} {name}", {
        "resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": [key]}]}, {
        NO_PERMISSION: {error}, grants(f"Describe {secured}"): {error}, grants(f"DescribeConfigs {secured}"): outcome,
        grants(f"AlterConfigs {secured}"): outcome,
    })  # fmt: skip
row(ApiKey.DESCRIBE_CONFIGS, 4, "of loggers", {
    "resources": [{"resource_type": LOGGER_CONFIG, "resource_name": "1", "configuration_keys": ["none"]}]}, {
    NO_PERMISSION: {31}, grants("DescribeConfigs cluster"): {0},
})  # fmt: skip
loggers = configs(LOGGER_CONFIG, "1", "no.such.logger", "INFO", is_incremental=True)
row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "of loggers", loggers, {
    NO_PERMISSION: {31}, grants(CLUSTER_ACTION): {31}, grants("AlterConfigs cluster"): {40},
})  # fmt: skip
row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "of a topic and a broker", {
    "resources": [
        *configs(TOPIC_CONFIG, TOPIC, "retention.ms", "1000000", is_incremental=True)["resources"],
        *configs(BROKER_CONFIG, "9", "log.cleaner.threads", "2", is_incremental=True)["resources"],
    ], "validate_only": True}, {NO_PERMISSION: {29, 42}, grants("AlterConfigs topic t"): {0, 42}})  # fmt: skip
row(ApiKey.LIST_CONFIG_RESOURCES, 1, "", {"resource_types": [CLIENT_METRICS]}, {
    NO_PERMISSION: {31}, grants("Describe cluster"): {31}, grants("DescribeConfigs cluster"): {0},
})  # fmt: skip
row(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, "", {"components": [], "strict": False}, {
    NO_PERMISSION: {31}, grants("DescribeConfigs cluster"): {0},
})  # fmt: skip
row(ApiKey.ALTER_CLIENT_QUOTAS, 1, "", {"validate_only": True, "entries": [
    {"entity": [{"entity_type": "user", "entity_name": "a"}],
     "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}]}, {
    NO_PERMISSION: {31}, grants("DescribeConfigs cluster"): {31}, grants("AlterConfigs cluster"): {0},
})  # fmt: skip


# -- the cluster


def on_cluster(operation: str, outcome: Expected) -> Variants:
    """Returns variants of an API that needs an operation on the cluster; Read on a topic does not help."""
    return {NO_PERMISSION: {31}, grants(READ_T): {31}, grants(f"{operation} cluster"): outcome}


voter = {"cluster_id": ANOTHER_CLUSTER, "voter_id": 9, "voter_directory_id": bytes(range(16))}
quorum_topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
row(ApiKey.ELECT_LEADERS, 2, "", {
    "election_type": 0, "topic_partitions": [{"topic": TOPIC, "partitions": [0]}], "timeout_ms": 1000}, {
    NO_PERMISSION: {31}, grants("Alter topic t"): {31}, grants(ALTER): {0, 84},
})  # fmt: skip
row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, "", {
    "timeout_ms": 1000, "topics": [{"name": ABSENT, "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
    on_cluster("Alter", {0, 3}))  # fmt: skip
row(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, "", {
    "dirs": [{"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0]}]}]},
    on_cluster("Alter", {57}))  # fmt: skip
row(ApiKey.UNREGISTER_BROKER, 0, "", {"broker_id": 9}, on_cluster("Alter", {102}))
row(ApiKey.UPDATE_FEATURES, 1, "", {
    "feature_updates": [{"feature": "nothing.version", "max_version_level": 1, "upgrade_type": 1}]},
    on_cluster("Alter", {95}))  # fmt: skip
row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, "", {
    "deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []}, on_cluster("Alter", {91}))  # fmt: skip
row(ApiKey.ADD_RAFT_VOTER, 0, "", {**voter, "timeout_ms": 1000, "listeners": []}, on_cluster("Alter", {104}))
row(ApiKey.REMOVE_RAFT_VOTER, 0, "", voter, on_cluster("Alter", {104}))
acl_filter = {
    "resource_type_filter": 2, "resource_name_filter": "nothing", "pattern_type_filter": 3, "principal_filter": None,
    "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip
acl = {
    "resource_type": 2, "resource_name": "", "resource_pattern_type": 3, "principal": "User:nobody", "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
row(ApiKey.CREATE_ACLS, 3, "", {"creations": [acl]}, on_cluster("Alter", {42}))
row(ApiKey.DELETE_ACLS, 3, "", {"filters": [acl_filter]}, on_cluster("Alter", {0}))
row(ApiKey.DESCRIBE_ACLS, 3, "", acl_filter, on_cluster("Describe", {0}))
row(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, "", {"topics": None, "timeout_ms": 1000}, on_cluster("Describe", {0}))
row(ApiKey.DESCRIBE_QUORUM, 2, "", {"topics": [quorum_topic]}, on_cluster("Describe", {0}))
row(ApiKey.DESCRIBE_LOG_DIRS, 4, "", {"topics": []}, on_cluster("Describe", {0}))
row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, "", {"users": [{"name": "nobody"}]}, on_cluster("Describe", {0, 91}))


# -- the listeners of controllers


def on_controller(key: ApiKey, version: int, values: Any, operation: str, outcome: Expected) -> None:
    row(key, version, "on a controller", values, on_cluster(operation, outcome), listener=CONTROLLER)


raft_partition = {"partition_index": 0}
raft_topics = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [raft_partition]}]}
on_controller(ApiKey.VOTE, 0, {"cluster_id": ANOTHER_CLUSTER, **raft_topics}, "ClusterAction", {104})
on_controller(ApiKey.BEGIN_QUORUM_EPOCH, 0, {"cluster_id": ANOTHER_CLUSTER, **raft_topics}, "ClusterAction", {104})
on_controller(ApiKey.END_QUORUM_EPOCH, 0, {"cluster_id": ANOTHER_CLUSTER, **raft_topics}, "ClusterAction", {104})
metadata_topic = {"topic_id": bytes(15) + b"\1", "partitions": [{"partition": 0, "fetch_offset": 0}]}
on_controller(ApiKey.FETCH, 17, {
    "cluster_id": ANOTHER_CLUSTER, "topics": [metadata_topic]}, "ClusterAction", {104})  # fmt: skip
snapshot = {"partition": 0, "snapshot_id": {"end_offset": 1, "epoch": 1}}
on_controller(ApiKey.FETCH_SNAPSHOT, 1, {
    "cluster_id": ANOTHER_CLUSTER, "topics": [{"name": "__cluster_metadata", "partitions": [snapshot]}]},
    "ClusterAction", {104})  # fmt: skip
on_controller(ApiKey.UPDATE_RAFT_VOTER, 0, voter, "ClusterAction", {104})
altered = [{"topic_id": UNKNOWN_ID, "partitions": [{"partition_index": 0}]}]
on_controller(ApiKey.ALTER_PARTITION, 3, {
    "broker_id": 9, "broker_epoch": 1, "topics": altered}, "ClusterAction", {77})  # fmt: skip
on_controller(ApiKey.BROKER_REGISTRATION, 4, {
    "broker_id": 9, "cluster_id": ANOTHER_CLUSTER}, "ClusterAction", {104})  # fmt: skip
on_controller(ApiKey.BROKER_HEARTBEAT, 1, {"broker_id": 9, "broker_epoch": 1}, "ClusterAction", {77})
on_controller(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 9, "broker_epoch": 1}, "ClusterAction", {77})
on_controller(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, {"broker_id": 9, "broker_epoch": 1}, "ClusterAction", {77})
on_controller(ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 9}, "Alter", {102})
on_controller(ApiKey.DESCRIBE_QUORUM, 2, {"topics": [quorum_topic]}, "Describe", {0})
on_controller(ApiKey.DESCRIBE_CLUSTER, 2, {
    "include_cluster_authorized_operations": True, "endpoint_type": 2}, "Alter", {0})  # fmt: skip
row(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "of loggers on a controller", loggers, {
    NO_PERMISSION: {31}, grants("AlterConfigs cluster"): {31}, grants(CLUSTER_ACTION): {40},
}, listener=CONTROLLER)  # fmt: skip


def envelope(context: Context) -> Values:
    """Returns an envelope whose request cannot be read."""
    return {"request_data": b"\0", "request_principal": b"\0\0\5User\2a\0\0", "client_host_address": bytes(4)}


row(ApiKey.ENVELOPE, 0, "", envelope, {
    NO_PERMISSION: {31}, grants(ALTER): {31}, grants(CLUSTER_ACTION): {35},
}, listener=CONTROLLER)  # fmt: skip


def formatted(values: Any, user: str) -> Any:
    """Returns the values with the name of the user put into all texts that contain `{user}`."""
    if isinstance(values, str):
        return values.replace("{user}", user)
    if isinstance(values, dict):
        return {key: formatted(each, user) for key, each in values.items()}
    return [formatted(each, user) for each in values] if isinstance(values, list) else values
