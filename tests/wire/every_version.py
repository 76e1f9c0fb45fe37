"""Requests for each API in each of its versions, and the conversion of responses to comparable values.

Requests and responses are encoded and decoded by the reference codec, which is built from the facts of Kafka's releases
and uses no code of kafkapy.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.message_set import build_message_set, iterate_records
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
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
from tests.wire.share_and_streams_versions import always, share_cases, streams_cases

TOPIC = "every"
GROUP = "every-group"
JOINED = "every-group-joined-{version}"
NOW_MS = 1_790_000_000_000
# Names of fields with ids, times and addresses, which differ between brokers.
NOT_COMPARED = frozenset(
    {
        "throttle_time_ms", "cluster_id", "port", "member_id", "leader", "producer_id", "log_dir", "topic_id",
        "finalized_features_epoch", "api_keys", "partition_size", "total_bytes", "usable_bytes",
        "replica_directory_id", "last_fetch_timestamp", "log_end_offset", "last_caught_up_timestamp", "generation_id",
        "unknown_tagged_fields",
    }
)  # fmt: skip
# Names of lists whose order is not defined.
UNORDERED = frozenset(
    {
        "config_resources", "configs", "entity", "entries", "finalized_features", "groups", "partitions",
        "responses", "results", "supported_features", "topics",
    }
)  # fmt: skip

Values = dict[str, Any]
TopicIds = dict[str, bytes]
UNKNOWN_ID = bytes([9] * 16)


class Case:
    """One request of an API, for the `versions` in which it makes sense. Immutable."""

    __slots__ = ("key", "name", "values", "versions")

    def __init__(self, key: ApiKey, name: str, values: Callable[[int, TopicIds], Values], versions: range) -> None:
        self.key = key
        self.name = name
        self.values = values
        self.versions = versions


def conversation(server: ServerProcess, case: Case, version: int, ids: TopicIds) -> Any:
    """Returns the response as comparable values, None if the broker closes the connection."""
    payload = raw_answer(server, case.key, version, request_body(case, version, ids))
    if payload is None:
        return None
    return comparable(decode_answer(case.key, version, payload))


def request_body(case: Case, version: int, ids: TopicIds) -> bytes:
    codec = Codec(f"{API_TABLE[case.key].name}Request", version)
    return codec.encode(fill(codec, codec.message["fields"], case.values(version, ids)))


def fill(codec: Codec, fields: list[Values], values: Values) -> Record:
    """Returns a message with these values; fields that the version does not have keep their default."""
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
    """Returns a request header: version 2 for a flexible body, otherwise 1."""
    client_id = b"tests"
    flexible = Codec(f"{API_TABLE[key].name}Request", version).flexible
    return struct.pack(">hhih", key, version, 7, len(client_id)) + client_id + (b"\0" if flexible else b"")


def raw_answer(server: ServerProcess, key: ApiKey, version: int, body: bytes) -> bytes | None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(frame(header(key, version) + body))
        try:
            return bytes(receive_frame(client))
        except ConnectionError:
            return None  # the broker closed the connection without a response


def decode_answer(key: ApiKey, version: int, payload: bytes) -> Record:
    codec = Codec(f"{API_TABLE[key].name}Response", version)
    assert struct.unpack_from(">i", payload) == (7,)
    # The response to ApiVersions never has a flexible header (KIP-511).
    return codec.decode(payload[5 if codec.flexible and key != ApiKey.API_VERSIONS else 4 :])


def comparable(value: Any, name: str = "") -> Any:
    if isinstance(value, Record):
        if hasattr(value, "current_voters"):
            value.high_watermark = value.leader_epoch = None  # the metadata logs of two brokers differ
        return {key: comparable(each, key) for key, each in sorted(vars(value).items()) if key not in NOT_COMPARED}
    if isinstance(value, list):
        items = [comparable(each) for each in value]
        return sorted(items, key=repr) if name in UNORDERED else items
    if name == "records":
        return contents(value or b"")
    return value


def contents(records: bytes) -> list[Any]:
    """Returns (offset, timestamp, key, value) of records in any format."""
    seen: list[Any] = []
    position = 0
    while len(records) - position > 16 and records[position : position + 8] != b"\xff" * 8:
        size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        entry = records[position : position + size]
        found = iterate_records(entry) if entry[16] < 2 else [r for each in iterate_batches(entry) for r in each]
        seen += [(record.offset, record.timestamp, record.key, record.value) for record in found]
        position += size
    return seen


# -- the content of the broker before the requests


RECORD_COUNT = 10
COLLIDING = "co_lli.de"
VERSIONS_WITH_TOPICS = 15


def prepare(server: ServerProcess) -> TopicIds:
    """Creates topics with records and groups with offsets; returns the ids of the topics by name."""
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
    """Sends the request until it succeeds, because a coordinator may still be loading."""
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


def records_of(version: int) -> bytes:
    """Returns records in the format that clients of that version used."""
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


def epochs(leader_epoch: int, current: int = -1, partition: int = 0) -> Any:
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    return always(replica_id=-1, topics=[{"topic": TOPIC, "partitions": [asked]}])


EVERY_VERSION = range(100)


def cases() -> list[Case]:
    """Returns the cases in the order in which they are sent; the changes of a case are visible to the following
    cases."""
    return [
        Case(key, name, values, versions[0] if versions else EVERY_VERSION) for key, name, values, *versions in TABLE
    ]


def alter_quotas(
    entity: list[tuple[str, str | None]], *ops: tuple[str, float, bool], validate_only: bool = False
) -> Any:
    entry = {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
    }
    return always(entries=[entry], validate_only=validate_only)


def describe_quotas(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    named = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in components]
    return always(components=named, strict=strict)


ACL_ELEMENTS = ("resource_type_filter", "operation", "permission_type")
ACL_FILTER = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 3, "principal_filter": None,
    "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip
ACL = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:ann", "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
# Kafka closes the connection for the code UNKNOWN (0), but not for other unknown codes.
ACLS: list[Any] = [
    (ApiKey.DESCRIBE_ACLS, "all", always(**ACL_FILTER)),
    (ApiKey.DESCRIBE_ACLS, "codes too high", always(**ACL_FILTER | dict.fromkeys(ACL_ELEMENTS, 99))),
    (ApiKey.DESCRIBE_ACLS, "unknown pattern", always(**ACL_FILTER | {"pattern_type_filter": 0}), range(1, 99)),
    (ApiKey.CREATE_ACLS, "two", always(creations=[ACL, ACL])),
    (ApiKey.CREATE_ACLS, "none", always(creations=[])),
    (ApiKey.DELETE_ACLS, "two", always(filters=[ACL_FILTER, ACL_FILTER])),
    (ApiKey.DELETE_ACLS, "none", always(filters=[])),
    *((ApiKey.DESCRIBE_ACLS, f"unknown {name}", always(**ACL_FILTER | {name: 0})) for name in ACL_ELEMENTS),
    *((ApiKey.DELETE_ACLS, f"unknown {name}", always(filters=[ACL_FILTER | {name: 0}])) for name in ACL_ELEMENTS),
    *((ApiKey.CREATE_ACLS, f"unknown {name}", always(creations=[ACL | {name.removesuffix("_filter"): 0}]))
      for name in ACL_ELEMENTS),
]  # fmt: skip


EXACT, DEFAULT, ANY = range(3)
USER_ANN = [("user", "ann")]
QUOTAS: list[Any] = [
    (ApiKey.ALTER_CLIENT_QUOTAS, "set", alter_quotas(
        USER_ANN, ("producer_byte_rate", 1000.0, False), ("request_percentage", 12.5, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "of a pair", alter_quotas(
        [("user", "ann"), ("client-id", None)], ("consumer_byte_rate", 5.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "of an address", alter_quotas(
        [("ip", "10.0.0.1")], ("connection_creation_rate", 7, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "only validated", alter_quotas(
        [("user", "bob")], ("producer_byte_rate", 1.0, False), validate_only=True)),
    (ApiKey.ALTER_CLIENT_QUOTAS, "removed", alter_quotas(USER_ANN, ("request_percentage", 0, True))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "a bad key", alter_quotas(USER_ANN, ("nothing", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "a key of addresses", alter_quotas(USER_ANN, ("connection_creation_rate", 1, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "a fraction", alter_quotas(USER_ANN, ("producer_byte_rate", 1.5, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "nothing of it", alter_quotas(USER_ANN, ("producer_byte_rate", 0.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "negative", alter_quotas(USER_ANN, ("request_percentage", -1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "no entity", alter_quotas([], ("producer_byte_rate", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "a bad entity", alter_quotas([("planet", "x")], ("producer_byte_rate", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "an empty name", alter_quotas([("user", "")], ("producer_byte_rate", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "twice the same type", alter_quotas(
        [("user", "a"), ("user", "b")], ("producer_byte_rate", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "user and address", alter_quotas(
        [("user", "a"), ("ip", "10.0.0.1")], ("connection_creation_rate", 1.0, False))),
    (ApiKey.ALTER_CLIENT_QUOTAS, "no address", alter_quotas(
        [("ip", "no such host.")], ("connection_creation_rate", 1, False))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "all", describe_quotas()),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a user", describe_quotas(("user", EXACT, "ann"))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a user strictly", describe_quotas(("user", EXACT, "ann"), strict=True)),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a default", describe_quotas(("client-id", DEFAULT, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "any user", describe_quotas(("user", ANY, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "any pair", describe_quotas(("user", ANY, None), ("client-id", ANY, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a bad type", describe_quotas(("planet", ANY, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a bad match", describe_quotas(("user", 9, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "the same twice", describe_quotas(("user", ANY, None), ("user", ANY, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "an address and a user", describe_quotas(("user", ANY, None), ("ip", ANY, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "nothing to be exact about", describe_quotas(("user", EXACT, None))),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "a default with a name", describe_quotas(("user", DEFAULT, "x"))),
]  # fmt: skip


def alter_scram(*upsertions: tuple[str, int, int, bytes, bytes], deletions: tuple[tuple[str, int], ...] = ()) -> Any:
    return always(
        deletions=[{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
        upsertions=[
            {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": salt, "salted_password": password}
            for name, mechanism, iterations, salt, password in upsertions
        ],
    )


SALT, PASSWORD = b"salt" * 5, b"p" * 32
SCRAM: list[Any] = [
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upserted", alter_scram(
        ("ann", 1, 4096, SALT, PASSWORD), ("ann", 2, 8192, SALT, b"p" * 64), ("bob", 1, 4096, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "deleted", alter_scram(deletions=(("bob", 1),))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "not there", alter_scram(deletions=(("bob", 1), ("bob", 2)))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "few iterations", alter_scram(("cid", 1, 10, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "many iterations", alter_scram(("cid", 1, 100_000, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "a bad mechanism", alter_scram(("cid", 9, 4096, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "a bad mechanism deleted", alter_scram(deletions=(("cid", 9),))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "no name", alter_scram(("", 1, 4096, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "no salt", alter_scram(("cid", 1, 4096, b"", PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "no password", alter_scram(("cid", 1, 4096, SALT, b""))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "twice", alter_scram(
        ("cid", 1, 4096, SALT, PASSWORD), ("cid", 1, 4096, SALT, PASSWORD))),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upserted and deleted", alter_scram(
        ("ann", 1, 4096, SALT, PASSWORD), deletions=(("ann", 1),))),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "all", always(users=None)),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "none named", always(users=[])),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "some", always(users=[{"name": "ann"}, {"name": "nobody"}])),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "twice", always(users=[{"name": "ann"}, {"name": "ann"}])),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "no name", always(users=[{"name": ""}])),
]  # fmt: skip


def update_feature(feature: str, level: int, upgrade_type: int = 1, validate_only: bool = False) -> Any:
    update = {
        "feature": feature, "max_version_level": level, "upgrade_type": upgrade_type,
        "allow_downgrade": upgrade_type != 1,
    }  # fmt: skip
    return always(feature_updates=[update], validate_only=validate_only)


def change_voter(**values: Any) -> Any:
    """Returns the values of a request that names voter 9 of an unknown directory."""
    common = {"cluster_id": None, "voter_id": 9, "voter_directory_id": bytes(range(16))}
    return always(**{**common, **values})


SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 2, 3
FEATURES: list[Any] = [
    (ApiKey.UPDATE_FEATURES, "as it is", update_feature("share.version", 1)),
    (ApiKey.UPDATE_FEATURES, "too high", update_feature("share.version", 9)),
    (ApiKey.UPDATE_FEATURES, "unknown", update_feature("nothing.version", 1)),
    (ApiKey.UPDATE_FEATURES, "negative", update_feature("share.version", -1)),
    (ApiKey.UPDATE_FEATURES, "lower as upgrade", update_feature("share.version", 0)),
    (ApiKey.UPDATE_FEATURES, "lower", update_feature("streams.version", 0, SAFE_DOWNGRADE, validate_only=True)),
    (ApiKey.UPDATE_FEATURES, "higher as downgrade", update_feature("streams.version", 1, SAFE_DOWNGRADE)),
    (ApiKey.UPDATE_FEATURES, "a bad type", update_feature("share.version", 1, 9), range(1, 99)),
    (ApiKey.UPDATE_FEATURES, "nothing", always(feature_updates=[])),
    (ApiKey.UPDATE_FEATURES, "metadata too low", update_feature("metadata.version", 1, UNSAFE_DOWNGRADE)),
    (ApiKey.UNREGISTER_BROKER, "unknown", always(broker_id=9)),
    (ApiKey.ADD_RAFT_VOTER, "no voter", change_voter(voter_directory_id=bytes(16), timeout_ms=1000, listeners=[])),
    (ApiKey.REMOVE_RAFT_VOTER, "of another cluster", change_voter(cluster_id="AAAAAAAAAAAAAAAAAAAAAg")),
]  # fmt: skip


_CONFIGS = ["cleanup.policy", "retention.ms", "max.message.bytes", "compression.type"]
TABLE: list[Any] = [
    (ApiKey.API_VERSIONS, "all", always(client_software_name="tests", client_software_version="1.0")),
    (ApiKey.API_VERSIONS, "a bad name", always(client_software_name="-", client_software_version=""), range(3, 9)),
    (ApiKey.SASL_HANDSHAKE, "without SASL", always(mechanism="PLAIN")),
    (ApiKey.SASL_AUTHENTICATE, "without SASL", always(auth_bytes=b"\0a\0b")),
    (ApiKey.CREATE_DELEGATION_TOKEN, "anonymous", always(renewers=[], max_lifetime_ms=-1)),
    (ApiKey.RENEW_DELEGATION_TOKEN, "anonymous", always(hmac=b"h", renew_period_ms=-1)),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, "anonymous", always(hmac=b"h", expiry_time_period_ms=-1)),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "anonymous", always(owners=None)),
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
    (ApiKey.LIST_GROUPS, "empty ones", always(states_filter=["Empty"], types_filter=["Classic"])),
    (ApiKey.LIST_GROUPS, "an unknown state", always(states_filter=["Nonsense"]), range(4, 99)),
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
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "unknown group", always(group_id="nobody", member_id="unknown", member_epoch=1)),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "no subscription", always(
        group_id="nobody", member_id="m", member_epoch=0, rebalance_timeout_ms=1000, topic_partitions=[])),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "unknown", always(group_ids=["nobody", ""], include_authorized_operations=True)),
    *share_cases(TOPIC, GROUP),
    *streams_cases(),
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
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "nowhere", always(dirs=[{"path": "/nowhere", "topics": [
        {"name": TOPIC, "partitions": [0, 9]}, {"name": "nobody", "partitions": [0]}]}])),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "refused", always(timeout_ms=1000, topics=[
        {"name": TOPIC, "partitions": [
            {"partition_index": 0, "replicas": [7]}, {"partition_index": 9, "replicas": [1]}]},
        {"name": "nobody", "partitions": [{"partition_index": 0, "replicas": None}]}])),
    (ApiKey.ELECT_LEADERS, "not needed", always(
        election_type=0, topic_partitions=[{"topic": TOPIC, "partitions": [0, 9]}], timeout_ms=1000)),
    (ApiKey.DESCRIBE_CLUSTER, "all", always(include_cluster_authorized_operations=True, endpoint_type=1)),
    (ApiKey.DESCRIBE_CLUSTER, "controllers", always(endpoint_type=2), range(1, 99)),
    (ApiKey.LIST_CONFIG_RESOURCES, "client metrics", always(resource_types=[16])),
    (ApiKey.LIST_CONFIG_RESOURCES, "unknown type", always(resource_types=[77]), range(1, 99)),
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "a new client", always()),
    (ApiKey.PUSH_TELEMETRY, "no client", always()),
    (ApiKey.PUSH_TELEMETRY, "an unknown subscription", always(client_instance_id=UNKNOWN_ID, subscription_id=1)),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, "all", always(topics=None)),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, "some", always(topics=[
        {"name": TOPIC, "partition_indexes": [0, 9]}, {"name": "nobody", "partition_indexes": [0]}])),
    *ACLS,
    *QUOTAS,
    *SCRAM,
    (ApiKey.DESCRIBE_QUORUM, "metadata", always(topics=[
        {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}])),
    (ApiKey.DESCRIBE_QUORUM, "another topic", always(topics=[
        {"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}])),
    (ApiKey.DESCRIBE_QUORUM, "another partition", always(topics=[
        {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}])),
    *FEATURES,
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "topics", always(
        topics=[{"name": TOPIC}, {"name": "nobody"}], response_partition_limit=10, cursor=None)),
]  # fmt: skip
