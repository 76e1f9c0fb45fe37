"""Sends the active controller the requests that old tools of Kafka make by writing znodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from kafkapy.controller.acls import create_acls, delete_acls
from kafkapy.controller.client_quotas import IP, QuotaAlteration, alter_client_quotas
from kafkapy.controller.configs import legacy_alter_configs
from kafkapy.controller.elections import elect_leaders
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.scram_credentials import ScramDeletion, ScramUpsertion, alter_scram_credentials
from kafkapy.controller.settings import ControllerSettings
from kafkapy.controller.topics import (
    MorePartitions,
    NewTopic,
    PlacementRules,
    create_partitions,
    create_topics,
    delete_topics,
)
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import ScramCredential
from kafkapy.metadata.image import MetadataImage, QuotaEntity
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl_filter import AclFilter
from kafkapy.security.standard_authorizer import StandardAuthorizer
from kafkapy.server.scram_keys import keys_request
from kafkapy.server.services import Services
from kafkapy.types import TopicPartition, by_topic
from kafkapy.zookeeper.commands import Assignment, OnDone
from kafkapy.zookeeper.scram_nodes import CredentialChanges

_PREFERRED = 0
_LIMIT_MS = 30_000
# An error code with the message, which may be None.
Outcome = tuple[int, "str | None"]


class ControllerRequests:
    """The ClusterRequests of a broker: runs an operation if this node is the active controller, and sends a request to
    the active controller otherwise. Only the reactor's thread may use it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def create_topic(self, name: str, assignment: Assignment, configs: Mapping[str, str], on_done: OnDone) -> None:
        topic = NewTopic(name, assignments=sorted(assignment.items()), configs=configs)
        message = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                for number, replicas in sorted(assignment.items())
            ],
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        self._request(
            lambda image: create_topics(image, [topic], self._rules),
            lambda result: (each.error for each in result.values()),
            CreateTopicsRequest(topics=[message], timeout_ms=_LIMIT_MS),
            ApiKey.CREATE_TOPICS,
            lambda response: response.topics,
            on_done,
        )

    def add_partitions(self, name: str, total: int, assignment: Sequence[Sequence[int]], on_done: OnDone) -> None:
        message = CreatePartitionsRequest.CreatePartitionsTopic(
            name=name,
            count=total,
            assignments=[
                CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignment
            ],
        )
        self._request(
            lambda image: create_partitions(image, [MorePartitions(name, total, assignment)], self._rules),
            lambda result: result.values(),
            CreatePartitionsRequest(topics=[message], timeout_ms=_LIMIT_MS),
            ApiKey.CREATE_PARTITIONS,
            lambda response: response.results,
            on_done,
        )

    def delete_topic(self, name: str, on_done: OnDone) -> None:
        if not self._services.config.delete_topic_enable:
            on_done("delete.topic.enable is false")
            return

        def operation(image: MetadataImage) -> ControllerResult[Any]:
            topic = image.topics.by_name.get(name)
            if topic is None:
                raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
            return delete_topics(image, [topic.topic_id])

        self._request(
            operation,
            lambda result: result.values(),
            DeleteTopicsRequest(
                topics=[DeleteTopicsRequest.DeleteTopicState(name=name)],
                topic_names=[name],
                timeout_ms=_LIMIT_MS,
            ),
            ApiKey.DELETE_TOPICS,
            lambda response: response.responses,
            on_done,
        )

    def replace_config(self, resource_type: int, name: str, config: Mapping[str, str], on_done: OnDone) -> None:
        services = self._services
        resource = AlterConfigsRequest.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in config.items()],
        )
        self._request(
            lambda image: legacy_alter_configs(
                image, services.config, {(resource_type, name): config}, policies=services.policies
            ),
            lambda result: result.values(),
            AlterConfigsRequest(resources=[resource]),
            ApiKey.ALTER_CONFIGS,
            lambda response: response.responses,
            on_done,
        )

    def replace_quotas(self, entity: QuotaEntity, quotas: Mapping[str, float], on_done: OnDone) -> None:
        present = self._services.metadata.image.client_quotas.get(entity, {})
        values: dict[str, float | None] = {**dict.fromkeys(present), **quotas}
        message = AlterClientQuotasRequest.EntryData(
            entity=[AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[
                AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in values.items()
            ],
        )
        addresses = {name for kind, name in entity if kind == IP and name is not None and _is_address(name)}
        self._request(
            lambda image: alter_client_quotas(image, [QuotaAlteration(entity, values)], addresses),
            lambda result: result.values(),
            AlterClientQuotasRequest(entries=[message]),
            ApiKey.ALTER_CLIENT_QUOTAS,
            lambda response: response.entries,
            on_done,
        )

    def alter_credentials(self, changes: CredentialChanges, on_done: OnDone) -> None:
        """Changes the SCRAM credentials of one user with one request after the other.

        A request may name a user only once. After the first error no further request is sent. `on_done` gets the text
        of this error, or None after success.
        """
        remaining = list(changes.credentials.items())

        def next_one(error: str | None) -> None:
            if error is not None or not remaining:
                on_done(error)
            else:
                self._alter_credential(changes.user, *remaining.pop(0), next_one)

        next_one(None)

    def _alter_credential(self, user: str, mechanism: int, credential: ScramCredential | None, on_done: OnDone) -> None:
        deletions, upsertions = [], []
        if credential is None:
            deletions = [ScramDeletion(user, mechanism)]
        else:
            keys = (credential.stored_key, credential.server_key)
            upsertions = [ScramUpsertion(user, mechanism, credential.iterations, credential.salt, b"", keys)]
        self._request(
            lambda image: alter_scram_credentials(image, deletions, upsertions),
            lambda result: result.values(),
            keys_request(user, mechanism, credential),
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            lambda response: response.results,
            on_done,
        )

    def alter_acls(
        self, created: Collection[AccessControlEntry], deleted: Collection[AccessControlEntry], on_done: OnDone
    ) -> None:
        """Creates the ACLs `created`, and then deletes the ACLs `deleted`.

        After an error, nothing more is done. `on_done` gets the text of this error, or None after success.
        """
        if not isinstance(self._services.authorizer, StandardAuthorizer):
            on_done("no authorizer is configured")
            return
        if not created:
            self._delete_acls(deleted, on_done)
            return

        def done(error: str | None) -> None:
            if error is not None or not deleted:
                on_done(error)
            else:
                self._delete_acls(deleted, on_done)

        self._request(
            lambda image: create_acls(image, list(created)),
            lambda result: result,
            CreateAclsRequest(
                creations=[
                    CreateAclsRequest.AclCreation(
                        resource_type=each.resource_type,
                        resource_name=each.resource_name,
                        resource_pattern_type=each.pattern_type,
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission_type,
                    )
                    for each in created
                ]
            ),
            ApiKey.CREATE_ACLS,
            lambda response: response.results,
            done,
        )

    def _delete_acls(self, deleted: Collection[AccessControlEntry], on_done: OnDone) -> None:
        self._request(
            lambda image: delete_acls(image, [AclFilter(*each) for each in deleted]),
            lambda result: (each.error for each in result),
            DeleteAclsRequest(
                filters=[
                    DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=each.resource_type,
                        resource_name_filter=each.resource_name,
                        pattern_type_filter=each.pattern_type,
                        principal_filter=each.principal,
                        host_filter=each.host,
                        operation=each.operation,
                        permission_type=each.permission_type,
                    )
                    for each in deleted
                ]
            ),
            ApiKey.DELETE_ACLS,
            lambda response: response.filter_results,
            on_done,
        )

    def elect_preferred(self, partitions: Sequence[TopicPartition], on_done: OnDone) -> None:
        message = [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=list(numbers))
            for topic, numbers in by_topic(partitions).items()
        ]
        self._request(
            lambda image: elect_leaders(image, _PREFERRED, partitions, self._settings),
            lambda result: (_unless_unneeded(error) for each in result.values() for error in each.values()),
            ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=message, timeout_ms=_LIMIT_MS),
            ApiKey.ELECT_LEADERS,
            lambda response: (
                _unless_unneeded((each.error_code, each.error_message))
                for topic in response.replica_election_results
                for each in topic.partition_result
            ),
            on_done,
        )

    def reassign(self, replicas: Mapping[TopicPartition, Sequence[int]], on_done: OnDone) -> None:
        topics = [
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=topic,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=number, replicas=list(replicas[TopicPartition(topic, number)])
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(replicas).items()
        ]
        self._request(
            lambda image: alter_partition_reassignments(image, list(replicas.items()), self._settings),
            lambda result: (error for _, error in result),
            AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=_LIMIT_MS),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            lambda response: (each for topic in response.responses for each in topic.partitions),
            on_done,
        )

    @property
    def _rules(self) -> PlacementRules:
        return PlacementRules(self._services.config, policies=self._services.policies)

    @property
    def _settings(self) -> ControllerSettings:
        return ControllerSettings.from_config(self._services.config)

    def _request(
        self,
        operation: Callable[[MetadataImage], ControllerResult[Any]],
        outcomes_of_result: Callable[[Any], Iterable[Any]],
        request: Any,
        api_key: ApiKey,
        outcomes_of_response: Callable[[Any], Iterable[Any]],
        on_done: OnDone,
    ) -> None:
        """Makes one change: by `operation` if this node is the active controller, otherwise by sending `request` to it.

        `outcomes_of_result` is called with the result of `operation`, or `outcomes_of_response` with the response to
        `request`. Both return an outcome for each changed element: (error code, message), or an object with error_code
        and error_message. `on_done` is called with the text of the first error, or with None if there is no error.
        """
        services = self._services
        post = services.reactor.post
        if services.forwarding is None or services.controller.is_active:
            self._run(operation, outcomes_of_result, on_done)
            return

        def responded(response: Any, version: int, failure: Exception | None) -> None:
            text = str(failure) if response is None else _first_error(outcomes_of_response(response))
            post(lambda: on_done(text))

        services.forwarding.request(request, api_key, responded)

    def _run(
        self,
        operation: Callable[[MetadataImage], ControllerResult[Any]],
        outcomes_of_result: Callable[[Any], Iterable[Any]],
        on_done: OnDone,
    ) -> None:
        """Makes one change by `operation` on this node, which is the active controller.

        `outcomes_of_result` is called with the operation's result. It returns an outcome for each changed element:
        (error code, message), or an object with error_code and error_message. `on_done` is called with the text of the
        first error, or with None if there is no error.
        """
        post = self._services.reactor.post

        def submitted(done: Any) -> None:
            failure = done.exception()
            text = str(failure) if failure is not None else _first_error(outcomes_of_result(done.result()))
            post(lambda: on_done(text))

        self._services.controller.submit(operation).add_done_callback(submitted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _unless_unneeded(outcome: Any) -> Outcome:
    """Returns the outcome (error code, message) of an election.

    ELECTION_NOT_NEEDED means that the preferred replica leads already, and is returned as success: (0, None).
    """
    code, message = outcome
    return (0, None) if code == Error.ELECTION_NOT_NEEDED else (code, message)


def _first_error(outcomes: Iterable[Any]) -> str | None:
    """Returns the text of the first error in `outcomes`; None if there is none.

    An outcome is (error code, message) or an object with error_code and error_message; code 0 is no error.
    """
    for outcome in outcomes:
        code, message = outcome if isinstance(outcome, tuple) else (outcome.error_code, outcome.error_message)
        if int(code):
            return message or Error.of(int(code)).message
    return None
