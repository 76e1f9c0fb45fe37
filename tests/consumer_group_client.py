"""Raw requests of the group protocols to one server; their responses become lines that can be compared."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkapy.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.data_records import ConsumerProtocolSubscription
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.end_txn import EndTxnRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_delete import OffsetDeleteRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.api_client import ask

PARTITIONS = 4
GROUP_RESOURCE = 32
Request = ConsumerGroupHeartbeatRequest


def subscription(topics: Sequence[str], owned: Sequence[int] = ()) -> bytes:
    """Returns a classic consumer's metadata; `owned` are partitions of the first topic."""
    entries = [ConsumerProtocolSubscription.TopicPartition(topic=topics[0], partitions=list(owned))] if owned else []
    return encode_coordinator(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=entries), 3)


class ConsumerGroupClient:
    """Owns a connection, a topic named `topic` with four partitions, and groups whose names begin with the topic's.

    The methods add lines about the responses to `said`.
    """

    def __init__(self, port: int, topic: str) -> None:
        self._connection = socket.create_connection(("localhost", port), timeout=30)
        self.topic = topic
        self.said: list[str] = []
        self._ids: dict[str, str] = {}
        self._producer = (1, 0)
        self.joining: dict[str, Any] = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 60000,
            "subscribed_topic_names": [topic],
            "topic_partitions": [],
        }
        entry = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
        created = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[entry], timeout_ms=10000))
        self.topic_id = created.topics[0].topic_id
        self._await_coordinator()

    def close(self) -> None:
        self._connection.close()

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self._connection, key, version, request, response_class(key))

    def _await_coordinator(self) -> None:
        """Creates the offsets topic by the first request, and waits until the coordinator serves a group."""
        deadline = time.monotonic() + 30
        while True:
            found = self.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["warm"]))
            if found.coordinators[0].error_code == 0:
                request = Request(group_id="warm", member_id="warm", **self.joining)
                answer = self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
                if answer.error_code == 0 and answer.assignment.topic_partitions:
                    self.ask(
                        ApiKey.CONSUMER_GROUP_HEARTBEAT,
                        1,
                        Request(group_id="warm", member_id="warm", member_epoch=-1),
                    )
                    return
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def ask_about(self, topic: str) -> None:
        """Makes the later requests name another topic, which exists already."""
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        (found,) = self.ask(ApiKey.METADATA, 12, request).topics
        self.topic, self.topic_id = topic, found.topic_id
        self.joining["subscribed_topic_names"] = [topic]

    def assigned(self, group: str) -> list[list[int]]:
        """Returns the assignments of the members, in the order of their instances."""
        request = ConsumerGroupDescribeRequest(group_ids=[self._group(group)])
        (found,) = self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups
        members = sorted(found.members, key=lambda member: member.instance_id or "")
        return [[p for entry in member.assignment.topic_partitions for p in entry.partitions] for member in members]

    def _say(self, label: str, *words: object) -> None:
        line = " ".join([f"{label}:", *map(str, words)]).replace(f"{self.topic}-", "").replace(self.topic, "TOPIC")
        for member_id, name in self._ids.items():
            line = line.replace(member_id, name)
        self.said.append(line)

    def _group(self, name: str) -> str:
        return f"{self.topic}-{name}" if name.strip() else name

    def _name(self, member_id: str | None) -> str | None:
        """Replaces an id that the server made by a name that is the same for every server: <0>, <1>."""
        if not member_id or len(member_id) < 12:
            return member_id
        return self._ids.setdefault(member_id, f"<{len(self._ids)}>")

    # -- the consumer protocol

    def heartbeat(self, label: str, group: str = "g", member: str = "m1", version: int = 1, **fields: Any) -> Any:
        """Sends a heartbeat, and adds a line with `label` and the response to `said`; returns the response.

        `owned` are the partitions of the topic that the member reports as its own; `fields` are further fields.
        """
        owned = fields.pop("owned", None)
        if owned is not None:
            entries = [Request.TopicPartitions(topic_id=self.topic_id, partitions=owned)] if owned else []
            fields["topic_partitions"] = entries
        request = Request(group_id=self._group(group), member_id=member, **fields)
        answer = self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        assignment = None
        if answer.assignment is not None:
            assignment = [sorted(entry.partitions) for entry in answer.assignment.topic_partitions]
        self._say(
            label,
            answer.error_code,
            answer.error_message or "",
            self._name(answer.member_id) or "",
            answer.member_epoch,
            answer.heartbeat_interval_ms,
            assignment,
        )
        return answer

    def join_heartbeat(self, label: str, group: str = "g", member: str = "m1", **fields: Any) -> Any:
        return self.heartbeat(label, group, member, **{**self.joining, **fields})

    def describe(self, label: str, *groups: str) -> None:
        group_ids = [self._group(group) for group in groups]
        request = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=True)
        for group in self.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups:
            self._say(
                label,
                group.error_code,
                group.error_message or "",
                group.group_state,
                group.group_epoch,
                group.assignment_epoch,
                group.assignor_name,
                group.authorized_operations,
            )
            members = sorted(group.members, key=lambda member: self._name(member.member_id) or "")
            for member in members:
                self._say(
                    label,
                    self._name(member.member_id),
                    member.instance_id,
                    member.rack_id,
                    member.member_epoch,
                    member.client_id,
                    member.client_host,
                    member.subscribed_topic_names,
                    member.subscribed_topic_regex or "",
                    [sorted(entry.partitions) for entry in member.assignment.topic_partitions],
                    [sorted(entry.partitions) for entry in member.target_assignment.topic_partitions],
                    member.member_type,
                )

    # -- the classic protocol

    def join(
        self,
        label: str,
        group: str = "g",
        member: str = "",
        *,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = (),
        protocol_type: str = "consumer",
        version: int = 9,
        owned: Sequence[int] = (),
    ) -> Any:
        protocols = protocols or [("range", subscription([self.topic], owned))]
        request = JoinGroupRequest(
            group_id=self._group(group),
            session_timeout_ms=10000,
            rebalance_timeout_ms=20000,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=n, metadata=data) for n, data in protocols],
        )
        answer = self.ask(ApiKey.JOIN_GROUP, version, request)
        words = (answer.generation_id, answer.protocol_type, answer.protocol_name, self._name(answer.leader))
        self._say(label, answer.error_code, *words, self._name(answer.member_id), len(answer.members))
        return answer

    def sync(self, label: str, group: str, member: str, generation: int, **fields: Any) -> None:
        fields = {"protocol_type": "consumer", "protocol_name": "range", **fields}
        request = SyncGroupRequest(group_id=self._group(group), generation_id=generation, member_id=member, **fields)
        answer = self.ask(ApiKey.SYNC_GROUP, 5, request)
        assignment = bytes(answer.assignment).replace(self.topic.encode(), b"TOPIC")
        self._say(label, answer.error_code, answer.protocol_type, answer.protocol_name, assignment)

    def beat(self, label: str, group: str, member: str, generation: int, instance: str | None = None) -> None:
        request = HeartbeatRequest(
            group_id=self._group(group), generation_id=generation, member_id=member, group_instance_id=instance
        )
        self._say(label, self.ask(ApiKey.HEARTBEAT, 4, request).error_code)

    def leave(self, label: str, group: str, *members: tuple[str, str | None]) -> None:
        leaving = [LeaveGroupRequest.MemberIdentity(member_id=m, group_instance_id=i) for m, i in members]
        answer = self.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id=self._group(group), members=leaving))
        self._say(label, answer.error_code, [member.error_code for member in answer.members])

    def describe_classic(self, label: str, group: str) -> None:
        (found,) = self.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[self._group(group)])).groups
        members = [(self._name(member.member_id), len(member.member_assignment)) for member in found.members]
        self._say(label, found.error_code, found.error_message, found.group_state, found.protocol_type, members)

    # -- the protocols that kafkapy does not serve

    def join_share_group(self, group: str, member: str) -> None:
        """Joins `member` to a share group of this client's topic."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._group(group), member_id=member, member_epoch=0, subscribed_topic_names=[self.topic]
        )
        self._until_no_error(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)

    def leave_share_group(self, group: str, member: str) -> None:
        request = ShareGroupHeartbeatRequest(group_id=self._group(group), member_id=member, member_epoch=-1)
        self._until_no_error(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)

    def join_streams_group(self, group: str, member: str) -> None:
        """Joins `member` to a streams group with one subtopology, whose source is this client's topic."""
        topology = StreamsGroupHeartbeatRequest.Topology(
            epoch=1,
            subtopologies=[StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=[self.topic])],
        )
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group(group),
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=60000,
            topology=topology,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="process",
        )
        self._until_no_error(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)

    def leave_streams_group(self, group: str, member: str) -> None:
        request = StreamsGroupHeartbeatRequest(group_id=self._group(group), member_id=member, member_epoch=-1)
        self._until_no_error(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)

    def _until_no_error(self, key: ApiKey, version: int, request: Any) -> Any:
        deadline = time.monotonic() + 30
        while (answer := self.ask(key, version, request)).error_code:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        return answer

    # -- offsets and administration

    def begin_transaction(self, group: str) -> None:
        """Begins a transaction, and adds the offsets of the group to it."""
        find = FindCoordinatorRequest(key=f"{self.topic}-transactional", key_type=1)
        self._until_no_error(ApiKey.FIND_COORDINATOR, 3, find)
        init = InitProducerIdRequest(transactional_id=f"{self.topic}-transactional", transaction_timeout_ms=60000)
        answer = self._until_no_error(ApiKey.INIT_PRODUCER_ID, 3, init)
        self._producer = (answer.producer_id, answer.producer_epoch)
        add = AddOffsetsToTxnRequest(
            transactional_id=f"{self.topic}-transactional",
            producer_id=answer.producer_id,
            producer_epoch=answer.producer_epoch,
            group_id=self._group(group),
        )
        self._until_no_error(ApiKey.ADD_OFFSETS_TO_TXN, 3, add)

    def commit_transaction(self) -> None:
        """Commits the transaction; returns when the group's offsets are those that it has committed."""
        producer_id, producer_epoch = self._producer
        end = EndTxnRequest(
            transactional_id=f"{self.topic}-transactional",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=True,
        )
        self._until_no_error(ApiKey.END_TXN, 3, end)
        self.begin_transaction("g")  # This waits for the markers.

    def commit_transactional(self, label: str, group: str, member: str = "", generation: int = -1) -> None:
        """Commits an offset in the transaction that `begin_transaction` began, or in one that was never begun."""
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        request = TxnOffsetCommitRequest(
            transactional_id=f"{self.topic}-transactional",
            group_id=self._group(group),
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            member_id=member,
            generation_id=generation,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        (answered,) = self.ask(ApiKey.TXN_OFFSET_COMMIT, 3, request).topics
        self._say(label, [partition.error_code for partition in answered.partitions])

    def commit(self, label: str, group: str, member: str, epoch: int, version: int = 9, **fields: Any) -> None:
        partitions = [
            OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=number, committed_offset=5)
            for number in range(PARTITIONS)
        ]
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=self.topic, topic_id=self.topic_id, partitions=partitions
        )
        request = OffsetCommitRequest(
            group_id=self._group(group), member_id=member, generation_id_or_member_epoch=epoch, topics=[topic], **fields
        )
        (answered,) = self.ask(ApiKey.OFFSET_COMMIT, version, request).topics
        self._say(label, [partition.error_code for partition in answered.partitions])

    def fetch(self, label: str, group: str, member: str | None = None, epoch: int = -1) -> None:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=self.topic, topic_id=self.topic_id, partition_indexes=[0]
        )
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self._group(group), member_id=member, member_epoch=epoch, topics=[topic]
        )
        (found,) = self.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[asked])).groups
        offsets = [(entry.committed_offset, entry.error_code) for each in found.topics for entry in each.partitions]
        self._say(label, found.error_code, offsets)

    def delete_offset(self, label: str, group: str) -> None:
        partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=self.topic, partitions=[partition])
        answer = self.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=self._group(group), topics=[topic]))
        errors = [entry.error_code for each in answer.topics for entry in each.partitions]
        self._say(label, answer.error_code, errors)

    def delete(self, label: str, group: str) -> None:
        answer = self.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[self._group(group)]))
        self._say(label, [result.error_code for result in answer.results])

    def list(self, label: str, group: str) -> None:
        for types in ([], ["consumer"], ["Classic"]):
            answer = self.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(types_filter=types))
            found = [each for each in answer.groups if each.group_id == self._group(group)]
            self._say(label, types, [(each.protocol_type, each.group_state, each.group_type) for each in found])

    def configure(self, group: str, name: str, value: str) -> None:
        config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self._group(group), configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
        self._say(f"{name}={value}", answer.error_code, answer.error_message)
