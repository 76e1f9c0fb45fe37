"""KafkaAdminClient of kafkapy.compat.kafka returns what kafka-python's returns for the same cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import kafka
import pytest

import kafkapy.compat.kafka as ours
from kafkapy.client import Producer
from kafkapy.compat.kafka.admin.cluster import ClusterOperations
from kafkapy.compat.kafka.admin.topics import TopicOperations
from kafkapy.compat.kafka.errors import kafka_errors
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.delete_topics import DeleteTopicsResponse
from kafkapy.testing import Broker

TOPIC, GROUP, USER = "compared", "compared-group", "compared-user"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Yields a broker with a topic of two partitions, a group with an offset, and an open transaction."""
    with Broker(AUTHORIZER) as started:
        with ours.KafkaAdminClient(bootstrap_servers=started.bootstrap_servers) as admin:
            admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
        with ours.KafkaProducer(bootstrap_servers=started.bootstrap_servers) as producer:
            for number in range(10):
                producer.send(TOPIC, b"v", partition=0, timestamp_ms=1_700_000_000_000 + number)
        consumer = ours.KafkaConsumer(bootstrap_servers=started.bootstrap_servers, group_id=GROUP)
        consumer.assign([ours.TopicPartition(TOPIC, 0)])
        consumer.commit({ours.TopicPartition(TOPIC, 0): ours.OffsetAndMetadata(4, "text", -1)})
        consumer.close()
        transactional = Producer(bootstrap_servers=started.bootstrap_servers, transactional_id="compared")
        transactional.init_transactions()
        transactional.begin_transaction()
        transactional.send(TOPIC, b"open", partition=1).result(60)
        yield started
        transactional.close()


def partition(package: Any, number: int = 0) -> Any:
    return package.TopicPartition(TOPIC, number)


def admin_of(package: Any) -> Any:
    return import_module(f"{package.__name__}.admin")


def acl_filter(package: Any) -> Any:
    names = admin_of(package)
    pattern = names.ResourcePattern(names.ResourceType.TOPIC, TOPIC)
    return names.ACLFilter("User:a", "*", names.ACLOperation.ANY, names.ACLPermissionType.ANY, pattern)


def acl(package: Any) -> Any:
    names = admin_of(package)
    pattern = names.ResourcePattern(names.ResourceType.TOPIC, TOPIC)
    return names.ACL("User:a", "*", names.ACLOperation.READ, names.ACLPermissionType.ALLOW, pattern)


def config(package: Any, configs: Any = None, kind: str = "TOPIC", name: str = TOPIC) -> Any:
    return admin_of(package).ConfigResource(kind, name, configs)


def upsertion(package: Any) -> Any:
    return admin_of(package).UserScramCredentialUpsertion(USER, "SCRAM-SHA-256", "secret", salt=b"salt" * 6)


Call = Callable[[Any, Any], Any]
CALLS: dict[str, Call] = {
    "list_topics": lambda admin, package: sorted(admin.list_topics()),
    "describe_topics": lambda admin, package: admin.describe_topics([TOPIC]),
    "describe_an_unknown_topic": lambda admin, package: admin.describe_topics(["unknown"]),
    "create_an_existing_topic": lambda admin, package: admin.create_topics([TOPIC]),
    "validate_a_topic": lambda admin, package: admin.create_topics(
        {"validated": {"num_partitions": 2, "configs": {"retention.ms": "1000"}}}, validate_only=True
    )["topics"][0]["num_partitions"],
    "delete_an_unknown_topic": lambda admin, package: admin.delete_topics(["unknown"]),
    "delete_without_raising": lambda admin, package: admin.delete_topics(["unknown"], raise_errors=False),
    "describe_cluster": lambda admin, package: admin.describe_cluster(),
    "describe_log_dirs": lambda admin, package: [
        {**each, "total_bytes": 0, "usable_bytes": 0}  # the bytes of the file system change
        for each in admin.describe_log_dirs({TOPIC: [0]})[0]["log_dirs"]
    ],
    "describe_metadata_quorum": lambda admin, package: [
        sorted(each) for each in admin.describe_metadata_quorum()["topics"][0]["partitions"]
    ],
    "describe_features": lambda admin, package: admin.describe_features(),
    "describe_topic_configs": lambda admin, package: admin.describe_configs([config(package)], config_filter="all"),
    "describe_broker_configs": lambda admin, package: admin.describe_configs(
        [config(package, kind="BROKER", name="1")], include_synonyms=True, config_filter="static"
    ),
    "alter_configs": lambda admin, package: admin.alter_configs([config(package, {"retention.ms": "5000"})]),
    "alter_one_key": lambda admin, package: admin.alter_configs([config(package, {"retention.ms": ("SET", "6000")})]),
    "describe_modified": lambda admin, package: admin.describe_configs([config(package)]),
    "alter_an_unknown_key": lambda admin, package: admin.alter_configs([config(package, {"no.such.key": "1"})]),
    "reset_configs": lambda admin, package: admin.reset_configs([config(package, ["retention.ms"])]),
    "list_config_resources": lambda admin, package: admin.list_config_resources(["TOPIC"])["topic"].count(TOPIC),
    "list_groups": lambda admin, package: [each for each in admin.list_groups() if each["group_id"] == GROUP],
    "list_empty_groups": lambda admin, package: admin.list_groups(states_filter=["Empty"], types_filter=["classic"]),
    "describe_groups": lambda admin, package: admin.describe_groups([GROUP]),
    "describe_an_unknown_group": lambda admin, package: admin.describe_groups(["unknown"]),
    "list_group_offsets": lambda admin, package: admin.list_group_offsets(GROUP),
    "list_chosen_offsets": lambda admin, package: admin.list_group_offsets({GROUP: [partition(package, 1)]}),
    "alter_group_offsets": lambda admin, package: admin.alter_group_offsets(
        GROUP, {partition(package): package.OffsetAndMetadata(5, "", -1)}
    ),
    "reset_group_offsets": lambda admin, package: admin.reset_group_offsets(
        GROUP, {partition(package): package.OffsetSpec.EARLIEST, partition(package, 1): 99}
    ),
    "reset_to_a_negative_offset": lambda admin, package: admin.reset_group_offsets(GROUP, {partition(package): -5}),
    "delete_group_offsets": lambda admin, package: admin.delete_group_offsets(GROUP, [partition(package, 1)]),
    "remove_an_unknown_member": lambda admin, package: admin.remove_group_members(
        GROUP, [admin_of(package).MemberToRemove(group_instance_id="unknown")]
    ),
    "delete_an_unknown_group": lambda admin, package: admin.delete_groups(["unknown"]),
    "list_partition_offsets": lambda admin, package: admin.list_partition_offsets(
        {partition(package): package.OffsetSpec.LATEST, partition(package, 1): package.OffsetSpec.EARLIEST}
    ),
    "offsets_by_time": lambda admin, package: admin.list_partition_offsets({partition(package): 1_700_000_000_003}),
    "offsets_of_an_unknown_partition": lambda admin, package: admin.list_partition_offsets({partition(package, 9): -1}),
    "describe_topic_partitions": lambda admin, package: admin.describe_topic_partitions([TOPIC]),
    "a_page_of_partitions": lambda admin, package: admin.describe_topic_partitions([TOPIC], 1),
    "list_partition_reassignments": lambda admin, package: admin.list_partition_reassignments(),
    "alter_partition_reassignments": lambda admin, package: admin.alter_partition_reassignments(
        {partition(package): [99]}
    ),
    "elect_leaders": lambda admin, package: admin.elect_leaders(0, {TOPIC: [0]}).to_dict(),
    "create_partitions": lambda admin, package: admin.create_partitions({TOPIC: 1}),
    "delete_records": lambda admin, package: admin.delete_records({partition(package): 2}),
    "delete_too_many_records": lambda admin, package: admin.delete_records({partition(package): 999}),
    "create_acls": lambda admin, package: admin.create_acls([acl(package)]),
    "describe_acls": lambda admin, package: admin.describe_acls(acl_filter(package)),
    "delete_acls": lambda admin, package: admin.delete_acls([acl_filter(package)])[0][2],
    "alter_scram": lambda admin, package: admin.alter_user_scram_credentials([upsertion(package)]),
    "describe_scram": lambda admin, package: admin.describe_user_scram_credentials([USER]),
    "list_transactions": lambda admin, package: admin.list_transactions(state_filters=["Ongoing"]),
    "describe_transactions": lambda admin, package: admin.describe_transactions(["compared"]),
    "describe_an_unknown_transaction": lambda admin, package: admin.describe_transactions(["unknown"]),
    "describe_producers": lambda admin, package: admin.describe_producers([partition(package, 1)]),
    "find_hanging_transactions": lambda admin, package: admin.find_hanging_transactions(),
    "get_broker_version_data": lambda admin, package: admin.get_broker_version_data(1).broker_version_str,
    "api_versions": lambda admin, package: {int(key): each for key, each in admin.api_versions().items()},
}


def outcome(call: Call, package: Any, bootstrap: str) -> str:
    """Returns the text of a result, or the name of the exception.

    Classes have no packages in the text, and a dictionary has the order of its keys' texts.
    """
    with package.KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        try:
            result = call(admin, package)
            found = repr(dict(sorted(result.items(), key=repr)) if isinstance(result, dict) else result)
        except Exception as error:
            return type(error).__name__
    return found.replace("kafkapy.compat.", "")


@pytest.mark.parametrize("name", CALLS)
def test_both_return_the_same(broker: Broker, name: str) -> None:
    wanted = outcome(CALLS[name], kafka, broker.bootstrap_servers)
    assert outcome(CALLS[name], ours, broker.bootstrap_servers) == wanted


class OldBroker(ClusterOperations):
    """An administration client of a cluster of release 4.3, whose ApiVersions requests get one response."""

    def __init__(self, response: ApiVersionsResponse) -> None:
        self.config = {"api_version": (4, 3)}
        self._response = response

    def _ask(self, *arguments: Any) -> Any:
        return self._response


def test_the_release_of_a_broker_is_not_that_of_the_first_broker() -> None:
    fetch = ApiVersionsResponse.ApiVersion(api_key=ApiKey.FETCH, min_version=4, max_version=13)
    admin = OldBroker(ApiVersionsResponse(api_keys=[fetch]))
    assert admin.get_broker_version_data(2).broker_version == (3, 1)
    admin.config["api_version"] = (2, 8)
    assert admin.get_broker_version_data(2).broker_version == (2, 8)


def test_a_refused_request_for_versions_is_an_error() -> None:
    admin = OldBroker(ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION))
    for call in (admin.api_versions, admin.describe_features, lambda: admin.get_broker_version_data(2)):
        with pytest.raises(kafka_errors[Error.UNSUPPORTED_VERSION]):
            call()


class OldConnection:
    """A connection to a cluster whose brokers know the requests up to a version, and respond that all went well."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.sent: list[Any] = []

    def ask(self, key: ApiKey, build: Callable[[int], Any], node: int | str | None, timeout_s: float) -> Any:
        self.sent.append(build(self._version))
        return DeleteTopicsResponse()


class TopicsOfOldBroker(TopicOperations):
    """The topics of a cluster whose brokers know the requests up to a version."""

    def __init__(self, version: int) -> None:
        self.config = {"request_timeout_ms": 1000}
        self.connection = OldConnection(version)
        self._connection = self.connection  # type: ignore[assignment]


def test_an_old_broker_deletes_topics_by_name() -> None:
    admin = TopicsOfOldBroker(5)
    admin.delete_topics(iter(["a", "b"]))
    assert admin.connection.sent[0].topic_names == ["a", "b"]


@pytest.mark.parametrize("topics", [[uuid.uuid4()], ["a", uuid.uuid4()]])
def test_an_old_broker_deletes_no_topics_by_id(topics: list[Any]) -> None:
    admin = TopicsOfOldBroker(5)
    with pytest.raises(kafka_errors[Error.UNSUPPORTED_VERSION], match="by name only"):
        admin.delete_topics(topics)
    assert not admin.connection.sent


@pytest.mark.parametrize("version", [9, 11])
def test_an_old_broker_describes_no_topics_by_id(version: int) -> None:
    with pytest.raises(kafka_errors[Error.UNSUPPORTED_VERSION], match="by name only"):
        TopicsOfOldBroker(version).describe_topics([uuid.uuid4()])
