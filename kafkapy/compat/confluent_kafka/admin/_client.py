"""AdminClient of confluent-kafka."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self

from kafkapy.client import admin as kafkapy
from kafkapy.client.admin import Results
from kafkapy.compat.confluent_kafka import _model as model
from kafkapy.compat.confluent_kafka._client import Client, seconds, time_left
from kafkapy.compat.confluent_kafka._config import ADMIN, Settings
from kafkapy.compat.confluent_kafka._errors import kafka_exception, local_error
from kafkapy.compat.confluent_kafka._records import TopicPartition
from kafkapy.compat.confluent_kafka.admin import _checks as checks
from kafkapy.compat.confluent_kafka.admin import _conversions as convert
from kafkapy.compat.confluent_kafka.admin._acl import AclBinding, AclBindingFilter
from kafkapy.compat.confluent_kafka.admin._config import ConfigResource
from kafkapy.compat.confluent_kafka.admin._futures import Operations
from kafkapy.compat.confluent_kafka.admin._group import ListConsumerGroupsResult
from kafkapy.compat.confluent_kafka.admin._metadata import ClusterMetadata, GroupMetadata
from kafkapy.compat.confluent_kafka.admin._topic import NewPartitions, NewTopic
from kafkapy.compat.confluent_kafka.admin._values import (
    DeletedRecords,
    OffsetSpec,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from kafkapy.errors import ApiError, Error, KafkapyError

Futures = dict[Any, "Future[Any]"]


class AdminClient(Client):
    """Administers a cluster. Every operation returns at once.

    The result is a dictionary with a future for each topic, group or other key that the operation is about, or a single
    future if the operation has no such keys.

    `AdminClient(conf)`; the keys are librdkafka's. Time-outs are in seconds: `request_timeout` limits an operation,
    by default to `socket.timeout.ms`; `operation_timeout` has no effect. Thread-safe.
    """

    _closed_message = "Admin client closed"

    def __init__(self, conf: dict[str, Any] | None = None, **kwargs: Any) -> None:
        settings = Settings(ADMIN, conf, kwargs)
        self._start(settings, None)
        self._operations = Operations()
        admin = self._admin()
        self._callbacks.watch(admin._network)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> bool | None:
        self._is_closed = True
        self._operations.close()
        self._close_admin()
        return None

    def poll(self, timeout: float = -1) -> int:
        """Calls the callbacks of events; returns their number. Does not block."""
        self._check_open()
        seconds(timeout)
        return self._callbacks.serve()

    def _statistics(self) -> str:
        from kafkapy.compat.confluent_kafka._statistics import admin_statistics

        return admin_statistics(self._settings, self._admin())

    def _limit(self, options: dict[str, Any], *accepted: str) -> float | None:
        """Removes the time-out from an operation's options, and returns it in seconds; None if none is given.

        Raises TypeError if the options that remain are not among `accepted`, and KafkaException for the option
        `broker`.
        """
        limit_s = seconds(options.pop("request_timeout", -1))
        options.pop("operation_timeout", None)
        if options.pop("broker", -1) >= 0:
            raise local_error("_NOT_IMPLEMENTED", "kafkapy chooses the broker of a request itself")
        for name in options:
            if name not in accepted:
                raise TypeError(f"{name!r} is an invalid keyword argument for this function")
        return limit_s

    def _time_left(self, limit_s: float | None) -> Callable[[], float]:
        """Returns a function that returns the seconds left for the next request of an operation.

        The operation begins with this call and may last `limit_s` seconds, or `socket.timeout.ms` if `limit_s` is None.
        """
        return time_left(self._settings["socket.timeout.ms"] / 1000 if limit_s is None else limit_s)

    # Topics

    def create_topics(self, new_topics: list[NewTopic], **kwargs: Any) -> Futures:
        """Creates topics. Returns a future for each topic, by name; the result of a future is None.

        If the option `validate_only` is True, the broker only checks the request.
        """
        limit_s = self._limit(kwargs, "validate_only")
        topics = [convert.new_topic(each) for each in new_topics]
        only_validates = bool(kwargs.get("validate_only", False))
        return self._by_key(
            [each.topic for each in new_topics],
            lambda: self._admin().create_topics(topics, validate_only=only_validates, timeout=limit_s),
        )

    def delete_topics(self, topics: list[str], **kwargs: Any) -> Futures:
        """Deletes topics. Returns a future for each topic, by name; the result of a future is None."""
        limit_s = self._limit(kwargs)
        return self._by_key(topics, lambda: self._admin().delete_topics(topics, timeout=limit_s))

    def create_partitions(self, new_partitions: list[NewPartitions], **kwargs: Any) -> Futures:
        """Adds partitions to topics. Returns a future for each topic, by name; the result of a future is None.

        If the option `validate_only` is True, the broker only checks the request.
        """
        limit_s = self._limit(kwargs, "validate_only")
        wanted = {
            each.topic: kafkapy.NewPartitions(each.new_total_count, each.replica_assignment) for each in new_partitions
        }
        only_validates = bool(kwargs.get("validate_only", False))
        return self._by_key(
            list(wanted),
            lambda: self._admin().create_partitions(wanted, validate_only=only_validates, timeout=limit_s),
        )

    def describe_topics(self, topics: model.TopicCollection, **kwargs: Any) -> Futures:
        """Describes topics. Returns a future for each topic, by name; the result of a future is a TopicDescription."""
        limit_s = self._limit(kwargs, "include_authorized_operations")
        _refuse_authorized_operations(kwargs)
        if not isinstance(topics, model.TopicCollection):
            raise TypeError("Expected input to be instance of TopicCollection")
        names = topics.topic_names
        if not isinstance(names, list):
            raise TypeError("Expected list of topic names to be described")
        nodes: dict[int, model.Node] = {}

        def call() -> Results[Any, Any]:
            admin, left_s = self._admin(), self._time_left(limit_s)
            brokers = admin.describe_cluster(timeout=left_s()).brokers
            nodes.update({each.node_id: convert.node(each) for each in brokers})
            return admin.describe_topics(names, timeout=left_s())

        return self._by_key(names, call, lambda name, found: convert.topic_description(found, nodes))

    # The cluster

    def describe_cluster(self, **kwargs: Any) -> Future[Any]:
        """Describes the cluster; the result is a DescribeClusterResult."""
        limit_s = self._limit(kwargs, "include_authorized_operations")
        _refuse_authorized_operations(kwargs)
        self._check_open()
        return self._operations.one(
            lambda: convert.cluster_description(self._admin().describe_cluster(timeout=limit_s))
        )

    def elect_leaders(
        self, election_type: model.ElectionType, partitions: list[TopicPartition] | None = None, **kwargs: Any
    ) -> Future[Any]:
        """Elects leaders of partitions; None for `partitions` means all partitions of the cluster.

        The result of the future is a dictionary from each partition to None or, if its election failed, a
        KafkaException.
        """
        limit_s = self._limit(kwargs)
        checks.check_election(election_type, partitions)
        places = None if partitions is None else [convert.place(each) for each in partitions]
        kind = kafkapy.ElectionType(election_type.value)

        def call() -> dict[TopicPartition, Exception | None]:
            results = self._admin().elect_leaders(kind, places, timeout=limit_s)
            found: dict[TopicPartition, Exception | None] = {convert.partition(each): None for each in results.values}
            for each, error in results.errors.items():
                found[convert.partition(each)] = kafka_exception(error)
            return found

        self._check_open()
        return self._operations.one(call)

    # Configurations

    def describe_configs(self, resources: list[ConfigResource], **kwargs: Any) -> Futures:
        """Describes configurations. Returns a future for each resource.

        The result of a future is a dictionary from the keys to ConfigEntries.
        """
        limit_s = self._limit(kwargs)
        wanted = _resources(resources)
        return self._by_key(
            resources,
            lambda: self._admin().describe_configs(list(wanted.values()), include_synonyms=True, timeout=limit_s),
            convert.described_configs,
            inner=wanted.__getitem__,
        )

    def incremental_alter_configs(self, resources: list[ConfigResource], **kwargs: Any) -> Futures:
        """Applies the list of changes in the attribute `incremental_configs` of each resource to the resource.

        Returns a future for each resource; the result of each future is an empty dictionary. If the option
        `validate_only` is True, the broker only checks the changes.
        """
        limit_s = self._limit(kwargs, "validate_only")
        wanted = _resources(resources, TypeError)
        changes = {wanted[each]: [convert.change(entry) for entry in each.incremental_configs] for each in resources}
        only_validates = bool(kwargs.get("validate_only", False))
        return self._by_key(
            resources,
            lambda: self._admin().incremental_alter_configs(changes, validate_only=only_validates, timeout=limit_s),
            lambda resource, found: {},
            inner=wanted.__getitem__,
        )

    def alter_configs(self, resources: list[ConfigResource], **kwargs: Any) -> Futures:
        """Replaces the configuration of each resource by its attribute `set_config_dict`. Deprecated.

        Reads the present configuration first, and removes the keys that are not in the new one; a configuration that
        cannot be read is not changed. Returns a future for each resource; the result of each future is an empty
        dictionary. If the option `validate_only` is True, the broker only checks the changes.
        """
        warnings.warn(
            "alter_configs has been deprecated. Use incremental_alter_configs instead.", DeprecationWarning, 2
        )
        limit_s = self._limit(kwargs, "validate_only")
        wanted = _resources(resources)
        only_validates = bool(kwargs.get("validate_only", False))

        def call() -> Results[Any, Any]:
            admin, left_s = self._admin(), self._time_left(limit_s)
            present = admin.describe_configs(list(wanted.values()), timeout=left_s())
            changes = {
                wanted[each]: convert.replacement(each, present.values[wanted[each]])
                for each in resources
                if wanted[each] in present.values  # otherwise it is not known which keys to remove
            }
            results = admin.incremental_alter_configs(changes, validate_only=only_validates, timeout=left_s())
            results.errors.update(present.errors)
            return results

        return self._by_key(resources, call, lambda resource, found: {}, inner=wanted.__getitem__)

    # Permissions

    def create_acls(self, acls: list[AclBinding], **kwargs: Any) -> Futures:
        """Creates permissions. Returns a future for each AclBinding; the result of a future is None."""
        limit_s = self._limit(kwargs)
        _check_bindings(acls, AclBinding, "duplicate ACL bindings not allowed")
        return self._by_key(
            acls,
            lambda: self._admin().create_acls([convert.entry(each) for each in acls], timeout=limit_s),
            inner=convert.entry,
        )

    def describe_acls(self, acl_binding_filter: AclBindingFilter, **kwargs: Any) -> Future[Any]:
        """Lists the permissions that a filter matches; the result is a list of AclBinding."""
        limit_s = self._limit(kwargs)
        if not isinstance(acl_binding_filter, AclBindingFilter):
            raise TypeError("Expected AclBindingFilter")
        wanted = convert.acl_filter(acl_binding_filter)
        self._check_open()

        def call() -> list[AclBinding]:
            try:
                return [convert.binding(each) for each in self._admin().describe_acls(wanted, timeout=limit_s)]
            except ApiError as error:
                if error.error is Error.SECURITY_DISABLED:
                    return []  # as librdkafka answers for a broker without an authorizer
                raise

        return self._operations.one(call)

    def delete_acls(self, acl_binding_filters: list[AclBindingFilter], **kwargs: Any) -> Futures:
        """Deletes the permissions that match filters.

        Returns a future for each filter; the result of a future is the list of the deleted AclBindings.
        """
        limit_s = self._limit(kwargs)
        _check_bindings(acl_binding_filters, AclBindingFilter, "duplicate ACL binding filters not allowed")
        return self._by_key(
            acl_binding_filters,
            lambda: self._admin().delete_acls(
                [convert.acl_filter(each) for each in acl_binding_filters], timeout=limit_s
            ),
            lambda each, found: [convert.binding(entry) for entry in found],
            inner=convert.acl_filter,
        )

    # Groups

    def list_topics(self, *args: Any, **kwargs: Any) -> ClusterMetadata:
        """Returns the brokers and the topics of the cluster, or only one topic. Blocks.

        The arguments are `topic`, None for all topics, and `timeout` in seconds (-1: no limit). Raises KafkaException
        if the brokers refuse a request or do not respond in time.
        """
        return super().list_topics(*args, **kwargs)

    def cluster_id(self, *args: Any, **kwargs: Any) -> str:
        """Returns the id of the cluster. Blocks for at most `timeout` seconds (-1: no limit).

        Raises KafkaException if no broker responds in time.
        """
        return super().cluster_id(*args, **kwargs)

    def list_groups(self, *args: Any, **kwargs: Any) -> list[GroupMetadata]:
        """Returns the groups of the cluster, or only one group, as GroupMetadata. Blocks.

        The arguments are `group`, None for all groups, and `timeout` in seconds (-1: no limit). Raises
        KafkaException if the brokers refuse a request or do not respond in time.
        """
        return self._list_groups(*args, **kwargs)

    def _list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        self._check_open()
        try:
            return convert.group_metadata(self._admin(), group, time_left(timeout))
        except KafkapyError as error:
            raise kafka_exception(error, "Failed to list groups: ") from error

    def list_consumer_groups(self, **kwargs: Any) -> Future[Any]:
        """Lists the consumer groups; the result of the future is a ListConsumerGroupsResult.

        The options `states` and `types`, sets of ConsumerGroupState and ConsumerGroupType, choose the groups; None
        chooses all.
        """
        limit_s = self._limit(kwargs, "states", "types")
        states, types = kwargs.get("states"), kwargs.get("types")
        checks.check_members("states", states, model.ConsumerGroupState)
        checks.check_members("types", types, model.ConsumerGroupType)

        def call() -> ListConsumerGroupsResult:
            listed = self._admin().list_groups(
                states=[convert.state_text(each) for each in states or ()],
                types=[each.name.lower() for each in types or ()],
                timeout=limit_s,
            )
            kinds = ("consumer", "")
            return ListConsumerGroupsResult(
                [convert.group_listing(each) for each in listed if each.protocol_type in kinds], []
            )

        self._check_open()
        return self._operations.one(call)

    def describe_consumer_groups(self, group_ids: list[str], **kwargs: Any) -> Futures:
        """Describes groups. Returns a future for each group id; the result of each future is a
        ConsumerGroupDescription.
        """
        limit_s = self._limit(kwargs, "include_authorized_operations")
        _refuse_authorized_operations(kwargs)
        checks.check_groups(group_ids, "described")
        return self._by_key(
            group_ids,
            lambda: self._admin().describe_groups(group_ids, timeout=limit_s),
            lambda group, found: convert.group_description(found),
        )

    def delete_consumer_groups(self, group_ids: list[str], **kwargs: Any) -> Futures:
        """Deletes groups. Returns a future for each group id; the result of a future is None."""
        limit_s = self._limit(kwargs)
        checks.check_groups(group_ids, "deleted")
        return self._by_key(group_ids, lambda: self._admin().delete_groups(group_ids, timeout=limit_s))

    def list_consumer_group_offsets(
        self, list_consumer_group_offsets_request: list[model.ConsumerGroupTopicPartitions], **kwargs: Any
    ) -> Futures:
        """Lists the committed offsets of one group: of the partitions in the request, or of all if it names none.

        The request is a list with one element. Returns a dictionary that maps the group id to a future; the future's
        result is a ConsumerGroupTopicPartitions. If the option `require_stable` is True, the operation waits until no
        open transaction has offsets of the group pending.
        """
        limit_s = self._limit(kwargs, "require_stable")
        checks.check_group_offsets(list_consumer_group_offsets_request, "listing", alters=False)
        [wanted] = list_consumer_group_offsets_request
        places = None if wanted.topic_partitions is None else [convert.place(each) for each in wanted.topic_partitions]
        is_stable = bool(kwargs.get("require_stable", False))
        return self._by_key(
            [wanted.group_id],
            lambda: self._admin().list_group_offsets(
                {wanted.group_id: places}, require_stable=is_stable, timeout=limit_s
            ),
            lambda group, found: convert.group_offsets(group, places, found),
        )

    def alter_consumer_group_offsets(
        self, alter_consumer_group_offsets_request: list[model.ConsumerGroupTopicPartitions], **kwargs: Any
    ) -> Futures:
        """Sets the committed offsets of one group. The request is a list with one element.

        Returns a dictionary that maps the group id to a future. The future's result is a ConsumerGroupTopicPartitions,
        in which each partition has its error or None.
        """
        limit_s = self._limit(kwargs)
        checks.check_group_offsets(alter_consumer_group_offsets_request, "altering", alters=True)
        [wanted] = alter_consumer_group_offsets_request
        partitions = wanted.topic_partitions or []

        def call() -> Results[Any, Any]:
            offsets = {convert.place(each): convert.offset_and_metadata(each) for each in partitions}
            whole: Results[Any, Any] = Results()
            whole.put(wanted.group_id, self._admin().alter_group_offsets(wanted.group_id, offsets, timeout=limit_s))
            return whole

        return self._by_key(
            [wanted.group_id],
            call,
            lambda group, found: model.ConsumerGroupTopicPartitions(group, convert.with_errors(partitions, found)),
        )

    # Offsets and records

    def list_offsets(self, topic_partition_offsets: dict[TopicPartition, OffsetSpec], **kwargs: Any) -> Futures:
        """Looks up an offset for each partition. Returns a future for each; its result is a ListOffsetsResultInfo.

        The option `isolation_level` is an IsolationLevel; with READ_COMMITTED the latest offset is the last stable
        offset.
        """
        limit_s = self._limit(kwargs, "isolation_level")
        level = kwargs.get("isolation_level", model.IsolationLevel.READ_UNCOMMITTED)
        checks.check_offset_specs(topic_partition_offsets, level)
        wanted = {convert.place(each): convert.timestamp(spec) for each, spec in topic_partition_offsets.items()}
        reads_committed = level is model.IsolationLevel.READ_COMMITTED
        return self._by_key(
            list(topic_partition_offsets),
            lambda: self._admin().list_offsets(wanted, read_committed=reads_committed, timeout=limit_s),
            lambda each, found: convert.offset_info(found),
            inner=convert.place,
        )

    def delete_records(self, topic_partition_offsets: list[TopicPartition], **kwargs: Any) -> Futures:
        """Deletes the records before the offset of each partition.

        Returns a future for each partition; the result of each future is a DeletedRecords.
        """
        limit_s = self._limit(kwargs)
        checks.check_partitions_to_delete(topic_partition_offsets)
        wanted = {convert.place(each): each.offset for each in topic_partition_offsets}
        return self._by_key(
            topic_partition_offsets,
            lambda: self._admin().delete_records(wanted, timeout=limit_s),
            lambda each, found: DeletedRecords(found),
            inner=convert.place,
        )

    # Users

    def describe_user_scram_credentials(self, users: list[str] | None = None, **kwargs: Any) -> Future[Any] | Futures:
        """Describes the SCRAM credentials of users.

        Returns a future for each user; the result of each future is a UserScramCredentialsDescription. If `users` is
        None, returns one future instead; its result is a dictionary with the description of each user that has
        credentials, by user name.
        """
        limit_s = self._limit(kwargs)
        checks.check_users(users)
        if users is None:
            self._check_open()
            return self._operations.one(
                lambda: {
                    user: convert.credentials(user, found)
                    for user, found in self._admin().describe_user_scram_credentials(timeout=limit_s).check().items()
                }
            )
        return self._by_key(
            users,
            lambda: self._admin().describe_user_scram_credentials(users, timeout=limit_s),
            convert.credentials,
        )

    def alter_user_scram_credentials(self, alterations: list[UserScramCredentialAlteration], **kwargs: Any) -> Futures:
        """Creates, replaces and deletes SCRAM credentials. Returns a future for each user, with the result None."""
        limit_s = self._limit(kwargs)
        checks.check_alterations(alterations)
        upserts = [convert.upsertion(each) for each in alterations if isinstance(each, UserScramCredentialUpsertion)]
        deletions = [
            (each.user, convert.mechanism(each.mechanism))  # type: ignore[attr-defined]
            for each in alterations
            if not isinstance(each, UserScramCredentialUpsertion)
        ]
        return self._by_key(
            sorted({each.user for each in alterations}),
            lambda: self._admin().alter_user_scram_credentials(upserts, deletions, timeout=limit_s),
        )

    def _by_key(
        self,
        keys: list[Any],
        call: Callable[[], Results[Any, Any]],
        to_result: Callable[[Any, Any], Any] = lambda key, value: None,
        *,
        inner: Callable[[Any], Any] = lambda key: key,
    ) -> Futures:
        self._check_open()
        return self._operations.by_key(keys, call, to_result, inner=inner)


def _refuse_authorized_operations(options: dict[str, Any]) -> None:
    if options.get("include_authorized_operations"):
        raise local_error("_NOT_IMPLEMENTED", "kafkapy's admin client does not request authorized operations")


def _resources(
    resources: list[ConfigResource], refusal: type[Exception] = ValueError
) -> dict[ConfigResource, kafkapy.ConfigResource]:
    """Returns a dictionary from each of confluent-kafka's resources to the corresponding resource of kafkapy.

    `refusal` is the class of the exception for an element that is not a ConfigResource.
    """
    for each in resources:
        if not isinstance(each, ConfigResource):
            raise refusal(f"Expected list of {ConfigResource!r}")
    return {each: kafkapy.ConfigResource(kafkapy.ResourceType(convert.resource_type(each)), each.name)
            for each in resources}  # fmt: skip


def _check_bindings(bindings: list[Any], kind: type, message: str) -> None:
    if len(set(bindings)) != len(bindings):
        raise ValueError(message)
    for each in bindings:
        if not isinstance(each, kind):
            raise ValueError(f"Expected list of {kind!r}")
