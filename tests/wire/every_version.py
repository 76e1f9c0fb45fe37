"""One request and more for each API in each of its versions, and how an answer is made comparable between brokers.

Requests and answers go through the reference codec, which knows the facts of Kafka's releases and nothing of ours.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from kafkapy._core.message_set import build_message_set, iterate_records
from kafkapy._core.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.old_client import ask
from tests.reactor_harness import frame, receive_frame
from tests.reference.wire import Codec, Record, attribute_name, default_of
from tests.server_process import ServerProcess

TOPIC = "every"
GROUP = "every-group"
JOINED = "every-group-joined-{version}"
NOW_MS = 1_790_000_000_000
# Ids, times and addresses, by the name of their field, wherever they stand.
NOT_COMPARED = frozenset(
    {
        "throttle_time_ms", "cluster_id", "port", "member_id", "leader", "producer_id", "log_dir", "topic_id",
        "finalized_features_epoch", "api_keys", "partition_size", "total_bytes", "usable_bytes",
        "replica_directory_id", "last_fetch_timestamp", "last_caught_up_timestamp", "unknown_tagged_fields",
        "generation_id",
    }
)  # fmt: skip
# In no particular order in an answer.
UNORDERED = frozenset(
    {
        "config_resources", "configs", "entries", "finalized_features", "groups", "partitions", "responses", "results",
        "supported_features", "topics",
    }
)  # fmt: skip

Values = dict[str, Any]
TopicIds = dict[str, bytes]
UNKNOWN_ID = bytes([9] * 16)


class Case:
    """One request of an API; `versions` are those in which it makes sense. Immutable."""

    __slots__ = ("key", "name", "values", "versions")

    def __init__(self, key: ApiKey, name: str, values: Callable[[int, TopicIds], Values], versions: range) -> None:
        self.key = key
        self.name = name
        self.values = values
        self.versions = versions


def conversation(server: ServerProcess, case: Case, version: int, ids: TopicIds) -> Any:
    """The answer as plain values, comparable; None if the broker closes the connection."""
    payload = raw_answer(server, case.key, version, request_body(case, version, ids))
    if payload is None:
        return None
    return comparable(decode_answer(case.key, version, payload))


def request_body(case: Case, version: int, ids: TopicIds) -> bytes:
    codec = Codec(f"{API_TABLE[case.key].name}Request", version)
    return codec.encode(fill(codec, codec.message["fields"], case.values(version, ids)))


def fill(codec: Codec, fields: list[Values], values: Values) -> Record:
    """A message with these values; what the version does not have is left at its default."""
    names = {attribute_name(field["name"]) for field in fields}
    assert set(values) <= names, f"{set(values) - names} are no fields of {names}"
    record = Record(unknown_tagged_fields=())
    for field in fields:
        name = attribute_name(field["name"])
        value = values.get(name, default_of(field)) if codec.holds(field["versions"]) else default_of(field)
        if name in values and "fields" in field and codec.holds(field["versions"]) and value is not None:
            if isinstance(value, list):
                value = [fill(codec, field["fields"], each) for each in value]
            else:
                value = fill(codec, field["fields"], value)
        setattr(record, name, value)
    return record


def header(key: ApiKey, version: int) -> bytes:
    """A request header by the book: version 0 for ControlledShutdown only, 2 where the body is flexible."""
    client_id = b"tests"
    flexible = Codec(f"{API_TABLE[key].name}Request", version).flexible
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id + (b"\0" if flexible else b"")


def raw_answer(server: ServerProcess, key: ApiKey, version: int, body: bytes) -> bytes | None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(frame(header(key, version) + body))
        try:
            return bytes(receive_frame(client))
        except (AssertionError, ConnectionError):
            return None  # it ended without an answer


def decode_answer(key: ApiKey, version: int, payload: bytes) -> Record:
    codec = Codec(f"{API_TABLE[key].name}Response", version)
    assert struct.unpack_from(">i", payload) == (7,)
    # The answer to ApiVersions never has a flexible header (KIP-511).
    return codec.decode(payload[5 if codec.flexible and key != ApiKey.API_VERSIONS else 4 :])


def comparable(value: Any, name: str = "") -> Any:
    if isinstance(value, Record):
        return {key: comparable(each, key) for key, each in sorted(vars(value).items()) if key not in NOT_COMPARED}
    if isinstance(value, list):
        items = [comparable(each) for each in value]
        return sorted(items, key=repr) if name in UNORDERED else items
    if name == "records":
        return contents(value or b"")
    return value


def contents(records: bytes) -> list[Any]:
    """(offset, timestamp, key, value) of records in whatever formats."""
    seen: list[Any] = []
    position = 0
    while len(records) - position > 16 and records[position : position + 8] != b"\xff" * 8:
        size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        entry = records[position : position + size]
        found = iterate_records(entry) if entry[16] < 2 else [r for each in iterate_batches(entry) for r in each]
        seen += [(record.offset, record.timestamp, record.key, record.value) for record in found]
        position += size
    return seen


# -- what stands on the broker before


RECORD_COUNT = 10
COLLIDING = "co_lli.de"
VERSIONS_WITH_TOPICS = 15


def prepare(server: ServerProcess) -> TopicIds:
    """Topics with records, groups with offsets; the ids of the topics by name."""
    numbered = [
        f"{kind}-{version}" for kind in ("produced", "grown", "gone") for version in range(VERSIONS_WITH_TOPICS)
    ]
    names = [TOPIC, COLLIDING, *numbered]
    topics = [CreateTopicsRequest.CreatableTopic(name=each, num_partitions=2, replication_factor=1) for each in names]
    created = ask(server, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=30000))
    assert {each.error_code for each in created.topics} == {0}
    ids = {each.name: bytes(each.topic_id) for each in created.topics}
    builder = RecordBatchBuilder()
    for number in range(RECORD_COUNT):
        builder.append(NOW_MS + number % 7, b"k", b"v%d" % number)
    until_no_error(server, ApiKey.PRODUCE, 9, produce_body(builder.build()), lambda answer: answer.responses)
    until_no_error(server, ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key=GROUP), lambda answer: [answer])
    until_no_error(
        server, ApiKey.INIT_PRODUCER_ID, 1, InitProducerIdRequest(transactional_id=None), lambda answer: [answer]
    )
    until_no_error(
        server, ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key="nobody", key_type=1), lambda answer: [answer]
    )
    until_no_error(
        server, ApiKey.INIT_PRODUCER_ID, 1,
        InitProducerIdRequest(transactional_id="every", transaction_timeout_ms=9000), lambda answer: [answer],
    )  # fmt: skip
    for group in (GROUP, f"{GROUP}-deleted", *(f"{GROUP}-gone-{version}" for version in range(3))):
        until_no_error(server, ApiKey.OFFSET_COMMIT, 5, commit_body(group), lambda answer: answer.topics)
    return ids


def until_no_error(
    server: ServerProcess, key: ApiKey, version: int, body: Any, parts: Callable[[Any], list[Any]]
) -> None:
    """Sends it again while a coordinator comes into being."""
    deadline = time.monotonic() + 30
    while True:
        answer = ask(server, key, version, body)
        codes = {
            getattr(each, "error_code", 0)
            for part in parts(answer)
            for each in (part, *getattr(part, "partitions", ()), *getattr(part, "partition_responses", ()))
        }
        if codes == {0}:
            return
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def produce_body(records: bytes) -> ProduceRequest:
    data = [ProduceRequest.PartitionProduceData(index=0, records=records)]
    topics = [ProduceRequest.TopicProduceData(name=TOPIC, partition_data=data)]
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)


def commit_body(group: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata="m"
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[topic])


# -- the requests


def records_of(version: int) -> bytes:
    """In the format of the time."""
    if version < 3:
        return build_message_set([(0, NOW_MS, b"k", b"v%d" % version)], magic=1 if version >= 2 else 0)
    builder = RecordBatchBuilder()
    builder.append(NOW_MS, b"k", b"v%d" % version)
    return builder.build()


def produce(name: str, records: Callable[[int], bytes | None] = records_of, acks: int = 1, index: int = 0) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        named = name.format(version=version)
        data = [{"index": index, "records": records(version)}]
        topic = {"name": named, "topic_id": ids.get(named, UNKNOWN_ID), "partition_data": data}
        return {"acks": acks, "timeout_ms": 5000, "transactional_id": None, "topic_data": [topic]}

    return values


def fetch(name: str, offset: int, partition: int = 0, epoch: int = -1) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        asked = {
            "partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20,
            "current_leader_epoch": epoch,
        }  # fmt: skip
        topic = {"topic": name, "topic_id": ids.get(name, UNKNOWN_ID), "partitions": [asked]}
        return {
            "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [topic],
            "session_epoch": -1,
        }  # fmt: skip

    return values


def list_offsets(timestamp: int, name: str = TOPIC, epoch: int = -1, replica_id: int = -1) -> Any:
    asked = {"partition_index": 0, "timestamp": timestamp, "max_num_offsets": 3, "current_leader_epoch": epoch}
    return lambda version, ids: {
        "replica_id": replica_id, "topics": [{"name": name, "partitions": [asked]}], "timeout_ms": 1000
    }  # fmt: skip


def metadata(names: list[str] | None, create: bool = False) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        topics = None if names is None else [{"name": name} for name in names]
        if names is None and version == 0:
            topics = []
        return {"topics": topics, "allow_auto_topic_creation": create, "include_topic_authorized_operations": True}

    return values


def offset_commit(name: str, partition: int = 0, member: str = "", generation: int = -1) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        asked = {
            "partition_index": partition, "committed_offset": 5, "committed_metadata": "m", "commit_timestamp": -1
        }  # fmt: skip
        topic = {"name": name, "topic_id": ids.get(name, UNKNOWN_ID), "partitions": [asked]}
        return {
            "group_id": f"{GROUP}-{version}", "generation_id_or_member_epoch": generation, "member_id": member,
            "retention_time_ms": -1, "topics": [topic],
        }  # fmt: skip

    return values


def offset_fetch(name: str, every: bool = False) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        group = GROUP
        topic = {"name": name, "topic_id": ids.get(name, UNKNOWN_ID), "partition_indexes": [0, 7]}
        topics = None if every else [topic]
        if version >= 8:
            asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
            return {"groups": [asked], "require_stable": True}
        plain = None if every else [{"name": name, "partition_indexes": [0, 7]}]
        return {"group_id": group, "topics": plain, "require_stable": True}

    return values


def find_coordinator(key: str, key_type: int = 0) -> Any:
    return lambda version, ids: {"key": key, "key_type": key_type} if version < 4 else {
        "key_type": key_type, "coordinator_keys": [key]
    }  # fmt: skip


def join_group(group: str, member: str = "", session_ms: int = 10000, protocol: str = "consumer") -> Any:
    return lambda version, ids: {
        "group_id": group.format(version=version), "session_timeout_ms": session_ms, "rebalance_timeout_ms": 1000,
        "member_id": member, "protocol_type": protocol, "protocols": [{"name": "range", "metadata": b"\0\1"}],
        "reason": "because",
    }  # fmt: skip


def create_topics(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        topic = {"name": name.format(version=version), "num_partitions": partitions, "replication_factor": factor}
        assignments = more.get("assignments", [])
        topic |= {"assignments": assignments, "configs": more.get("configs", [])}
        return {"topics": [topic], "timeout_ms": 10000, "validate_only": more.get("validate_only", False)}

    return values


def delete_topics(name: str) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        named = name.format(version=version)
        return {"topics": [{"name": named}], "topic_names": [named], "timeout_ms": 10000}

    return values


def alter_configs(key: str, value: str, name: str = TOPIC, kind: int = 2, operation: int | None = None) -> Any:
    config: Values = {"name": key, "value": value}
    if operation is not None:
        config["config_operation"] = operation
    resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
    return lambda version, ids: {"resources": [resource], "validate_only": False}


def add_partitions_to_txn(verify_only: bool = False) -> Any:
    def values(version: int, ids: TopicIds) -> Values:
        topics = [{"name": TOPIC, "partitions": [0]}]
        transaction = {
            "transactional_id": "nobody", "producer_id": 5, "producer_epoch": 0, "verify_only": verify_only,
            "topics": topics,
        }  # fmt: skip
        if version >= 4:
            return {"transactions": [transaction]}
        return {
            "v3_and_below_transactional_id": "nobody", "v3_and_below_producer_id": 5,
            "v3_and_below_producer_epoch": 0, "v3_and_below_topics": topics,
        }  # fmt: skip

    return values


def txn_offset_commit(group: str) -> Any:
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    return always(
        transactional_id="nobody", group_id=group, producer_id=5, producer_epoch=0, member_id="unknown",
        generation_id=1, topics=[{"name": TOPIC, "partitions": [partition]}],
    )  # fmt: skip


def always(**values: Any) -> Any:
    return lambda version, ids: values


def epochs(leader_epoch: int, current: int = -1, partition: int = 0) -> Any:
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    return always(replica_id=-1, topics=[{"topic": TOPIC, "partitions": [asked]}])


EVERY_VERSION = range(100)


def cases() -> list[Case]:
    """In the order in which they are sent; what one changes the next ones see."""
    return [
        Case(key, name, values, versions[0] if versions else EVERY_VERSION) for key, name, values, *versions in TABLE
    ]


_CONFIGS = ["cleanup.policy", "retention.ms", "max.message.bytes", "compression.type"]
TABLE: list[Any] = [
    (ApiKey.API_VERSIONS, "all", always(client_software_name="tests", client_software_version="1.0")),
    (ApiKey.API_VERSIONS, "a bad name", always(client_software_name="-", client_software_version=""), range(3, 9)),
    (ApiKey.METADATA, "a topic", metadata([TOPIC])),
    (ApiKey.METADATA, "unknown and bad", metadata(["nobody", "bad/name", ""])),
    (ApiKey.METADATA, "none", metadata([]), range(1, 99)),
    (ApiKey.CREATE_TOPICS, "a topic", create_topics("made-{version}", 2)),
    (ApiKey.CREATE_TOPICS, "only validated", create_topics("unmade-{version}", validate_only=True), range(1, 99)),
    (ApiKey.CREATE_TOPICS, "there already", create_topics(TOPIC)),
    (ApiKey.CREATE_TOPICS, "a collision", create_topics("co.lli_de")),
    (ApiKey.CREATE_TOPICS, "a bad name", create_topics("bad/name")),
    (ApiKey.CREATE_TOPICS, "no partitions", create_topics("none", 0)),
    (ApiKey.CREATE_TOPICS, "too many replicas", create_topics("many", 1, 5)),
    (ApiKey.CREATE_TOPICS, "a bad config", create_topics("bad", configs=[{"name": "retention.ms", "value": "x"}])),
    (ApiKey.CREATE_TOPICS, "assigned", create_topics(
        "assigned-{version}", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1]}])),
    (ApiKey.CREATE_TOPICS, "assigned and counted", create_topics(
        "both", 1, 1, assignments=[{"partition_index": 0, "broker_ids": [1]}])),
    (ApiKey.CREATE_PARTITIONS, "more", lambda version, ids: {
        "topics": [{"name": f"grown-{version}", "count": 3, "assignments": None}], "timeout_ms": 10000,
        "validate_only": False}),
    (ApiKey.CREATE_PARTITIONS, "fewer", always(
        topics=[{"name": TOPIC, "count": 1, "assignments": None}], timeout_ms=10000, validate_only=False)),
    (ApiKey.CREATE_PARTITIONS, "unknown", always(
        topics=[{"name": "nobody", "count": 3, "assignments": None}], timeout_ms=10000, validate_only=False)),
    (ApiKey.DELETE_TOPICS, "a topic", delete_topics("gone-{version}")),
    (ApiKey.DELETE_TOPICS, "unknown", delete_topics("nobody")),
    (ApiKey.PRODUCE, "a record", produce("produced-{version}")),
    (ApiKey.PRODUCE, "unknown topic", produce("nobody")),
    (ApiKey.PRODUCE, "unknown partition", produce("produced-{version}", index=9)),
    (ApiKey.PRODUCE, "nothing", produce("produced-{version}", lambda version: b"")),
    (ApiKey.PRODUCE, "bad acks", produce("produced-{version}", acks=7)),
    (ApiKey.PRODUCE, "garbage", produce("produced-{version}", lambda version: bytes(80))),
    (ApiKey.FETCH, "records", fetch(TOPIC, 3)),
    (ApiKey.FETCH, "at the end", fetch(TOPIC, RECORD_COUNT)),
    (ApiKey.FETCH, "out of range", fetch(TOPIC, 10_000)),
    (ApiKey.FETCH, "unknown topic", fetch("nobody", 0)),
    (ApiKey.FETCH, "unknown partition", fetch(TOPIC, 0, 9)),
    (ApiKey.FETCH, "fenced", fetch(TOPIC, 0, epoch=77), range(9, 99)),
    (ApiKey.LIST_OFFSETS, "latest", list_offsets(-1)),
    (ApiKey.LIST_OFFSETS, "earliest", list_offsets(-2)),
    (ApiKey.LIST_OFFSETS, "of the largest timestamp", list_offsets(-3)),
    (ApiKey.LIST_OFFSETS, "earliest local", list_offsets(-4)),
    (ApiKey.LIST_OFFSETS, "latest tiered", list_offsets(-5)),
    (ApiKey.LIST_OFFSETS, "of a time", list_offsets(NOW_MS)),
    (ApiKey.LIST_OFFSETS, "of the future", list_offsets(NOW_MS * 2), range(1, 99)),
    (ApiKey.LIST_OFFSETS, "unknown topic", list_offsets(-1, "nobody")),
    (ApiKey.LIST_OFFSETS, "debugging", list_offsets(-1, replica_id=-2)),
    (ApiKey.LIST_OFFSETS, "fenced", list_offsets(-1, epoch=77), range(4, 99)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "epoch 0", epochs(0)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "a later epoch", epochs(50)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "unknown", epochs(0, partition=9)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "fenced", epochs(0, current=77), range(2, 99)),
    (ApiKey.DELETE_RECORDS, "a record", always(
        topics=[{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 1}]}], timeout_ms=1000)),
    (ApiKey.DELETE_RECORDS, "out of range", always(
        topics=[{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 999}]}], timeout_ms=1000)),
    (ApiKey.DELETE_RECORDS, "unknown", always(
        topics=[{"name": "nobody", "partitions": [{"partition_index": 0, "offset": 1}]}], timeout_ms=1000)),
    (ApiKey.INIT_PRODUCER_ID, "idempotent", always(transactional_id=None, transaction_timeout_ms=1000)),
    (ApiKey.INIT_PRODUCER_ID, "no id", always(transactional_id="", transaction_timeout_ms=1000)),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "unknown", add_partitions_to_txn()),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "verified", add_partitions_to_txn(True), range(4, 99)),
    (ApiKey.ADD_OFFSETS_TO_TXN, "unknown", always(
        transactional_id="nobody", producer_id=5, producer_epoch=0, group_id=GROUP)),
    (ApiKey.END_TXN, "unknown", always(
        transactional_id="nobody", producer_id=5, producer_epoch=0, committed=True)),
    (ApiKey.TXN_OFFSET_COMMIT, "unknown", txn_offset_commit("nobody")),
    (ApiKey.WRITE_TXN_MARKERS, "unknown", always(markers=[{
        "producer_id": 5, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0,
        "topics": [{"name": "nobody", "partition_indexes": [0]}]}])),
    (ApiKey.DESCRIBE_PRODUCERS, "none", always(topics=[
        {"name": TOPIC, "partition_indexes": [0, 9]}, {"name": "nobody", "partition_indexes": [0]}])),
    (ApiKey.DESCRIBE_TRANSACTIONS, "unknown", always(transactional_ids=["nobody", ""])),
    (ApiKey.LIST_TRANSACTIONS, "none", always(state_filters=[], producer_id_filters=[])),
    (ApiKey.LIST_TRANSACTIONS, "unknown states", always(state_filters=["Nonsense"], producer_id_filters=[])),
    (ApiKey.FIND_COORDINATOR, "group", find_coordinator(GROUP)),
    (ApiKey.FIND_COORDINATOR, "nothing", find_coordinator("")),
    (ApiKey.FIND_COORDINATOR, "another type", find_coordinator(GROUP, 9), range(1, 99)),
    (ApiKey.JOIN_GROUP, "new member", join_group(JOINED)),
    (ApiKey.JOIN_GROUP, "unknown member", join_group(JOINED, "unknown")),
    (ApiKey.JOIN_GROUP, "a short session", join_group(JOINED, "", 1)),
    (ApiKey.JOIN_GROUP, "no group", join_group("")),
    (ApiKey.JOIN_GROUP, "another protocol type", join_group(JOINED, "", 10000, "connect")),
    (ApiKey.SYNC_GROUP, "unknown member", always(
        group_id="every-group-joined-1", generation_id=1, member_id="unknown", assignments=[], protocol_type="consumer",
        protocol_name="range")),
    (ApiKey.SYNC_GROUP, "unknown group", always(
        group_id="nobody", generation_id=1, member_id="unknown", assignments=[], protocol_type="consumer",
        protocol_name="range")),
    (ApiKey.HEARTBEAT, "unknown member", always(group_id="every-group-joined-1", generation_id=1, member_id="unknown")),
    (ApiKey.HEARTBEAT, "unknown group", always(group_id="nobody", generation_id=1, member_id="unknown")),
    (ApiKey.LEAVE_GROUP, "unknown member", lambda version, ids: {
        "group_id": "every-group-joined-1", "member_id": "unknown",
        **({"members": [{"member_id": "unknown", "group_instance_id": None}]} if version >= 3 else {})}),
    (ApiKey.OFFSET_COMMIT, "an offset", offset_commit(TOPIC)),
    (ApiKey.OFFSET_COMMIT, "unknown topic", offset_commit("nobody")),
    (ApiKey.OFFSET_COMMIT, "unknown partition", offset_commit(TOPIC, 9)),
    (ApiKey.OFFSET_COMMIT, "unknown member", offset_commit(TOPIC, 0, "unknown", 3), range(1, 99)),
    (ApiKey.OFFSET_FETCH, "an offset", offset_fetch(TOPIC)),
    (ApiKey.OFFSET_FETCH, "unknown topic", offset_fetch("nobody")),
    (ApiKey.OFFSET_FETCH, "all", offset_fetch(TOPIC, True), range(2, 99)),
    (ApiKey.DESCRIBE_GROUPS, "unknown", always(groups=["nobody", ""], include_authorized_operations=True)),
    (ApiKey.DESCRIBE_GROUPS, "empty", lambda version, ids: {
        "groups": [GROUP], "include_authorized_operations": True}),
    (ApiKey.LIST_GROUPS, "empty ones", always(states_filter=["Empty"], types_filter=["Classic"])),
    (ApiKey.LIST_GROUPS, "an unknown state", always(states_filter=["Nonsense"]), range(4, 99)),
    (ApiKey.OFFSET_DELETE, "an offset", always(
        group_id=f"{GROUP}-deleted",
        topics=[{"name": TOPIC, "partitions": [{"partition_index": 0}, {"partition_index": 9}]}])),
    (ApiKey.OFFSET_DELETE, "unknown group", always(
        group_id="nobody", topics=[{"name": TOPIC, "partitions": [{"partition_index": 0}]}])),
    (ApiKey.DELETE_GROUPS, "empty and unknown", lambda version, ids: {
        "groups_names": [f"{GROUP}-gone-{version}", "nobody", ""]}),
    (ApiKey.DESCRIBE_CONFIGS, "of a topic", always(resources=[
        {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": _CONFIGS}], include_synonyms=True)),
    (ApiKey.DESCRIBE_CONFIGS, "unknown", always(resources=[
        {"resource_type": 2, "resource_name": "nobody", "configuration_keys": None},
        {"resource_type": 2, "resource_name": "bad/name", "configuration_keys": None},
        {"resource_type": 4, "resource_name": "88", "configuration_keys": None}], include_synonyms=True)),
    (ApiKey.DESCRIBE_CONFIGS, "unknown type", always(resources=[
        {"resource_type": 99, "resource_name": "x", "configuration_keys": None}], include_synonyms=True)),
    (ApiKey.ALTER_CONFIGS, "a topic", alter_configs("retention.ms", "1000000")),
    (ApiKey.ALTER_CONFIGS, "a bad value", alter_configs("retention.ms", "x")),
    (ApiKey.ALTER_CONFIGS, "a bad key", alter_configs("nothing", "x")),
    (ApiKey.ALTER_CONFIGS, "unknown", alter_configs("retention.ms", "1", "nobody")),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "set", alter_configs("retention.ms", "2000000", operation=0)),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "append", alter_configs("cleanup.policy", "compact", operation=2)),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "append to no list", alter_configs("retention.ms", "1", operation=2)),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "a bad operation", alter_configs("retention.ms", "1", operation=9)),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "unknown", alter_configs("retention.ms", "1", "nobody", operation=0)),
    (ApiKey.DESCRIBE_LOG_DIRS, "a topic", always(topics=[{"topic": TOPIC, "partitions": [0]}])),
    (ApiKey.ELECT_LEADERS, "not needed", always(
        election_type=0, topic_partitions=[{"topic": TOPIC, "partitions": [0, 9]}], timeout_ms=1000)),
    (ApiKey.DESCRIBE_CLUSTER, "all", always(include_cluster_authorized_operations=True, endpoint_type=1)),
    (ApiKey.DESCRIBE_CLUSTER, "controllers", always(endpoint_type=2), range(1, 99)),
    (ApiKey.LIST_CONFIG_RESOURCES, "client metrics", always(resource_types=[16])),
    (ApiKey.LIST_CONFIG_RESOURCES, "unknown type", always(resource_types=[77]), range(1, 99)),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "topics", always(
        topics=[{"name": TOPIC}, {"name": "nobody"}], response_partition_limit=10, cursor=None)),
]  # fmt: skip
