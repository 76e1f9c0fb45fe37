"""Requests for each API of share groups and of streams groups, in each of its versions (see every_version)."""

from __future__ import annotations

from typing import Any

from kafkapy.protocol.api import ApiKey


def always(**values: Any) -> Any:
    return lambda version, ids: values


def _request(
    topic: str,
    epoch: int,
    others: dict[str, Any],
    *acknowledgements: tuple[int, int, list[int]],
    group: str | None = "nobody",
    member: str = "m",
) -> Any:
    """Returns a ShareFetch or ShareAcknowledge of partition 0 of `topic`."""
    batches = [
        {"first_offset": first, "last_offset": last, "acknowledge_types": types}
        for first, last, types in acknowledgements
    ]

    def values(version: int, ids: dict[str, bytes]) -> dict[str, Any]:
        partition = {"partition_index": 0, "acknowledgement_batches": batches}
        entry = {"topic_id": ids.get(topic, bytes(16)), "partitions": [partition]}
        return {"group_id": group, "member_id": member, "share_session_epoch": epoch, "topics": [entry], **others}

    return values


def share_cases(topic: str, group: str) -> list[Any]:
    """Returns rows for the table of cases. `topic` exists, and `group` is not a share group."""
    return [
        (
            ApiKey.FIND_COORDINATOR,
            "share partition, bad key",
            always(key_type=2, coordinator_keys=["nobody"]),
            range(4, 99),
        ),
        (ApiKey.SHARE_GROUP_HEARTBEAT, "unknown group", always(group_id="nobody", member_id="m", member_epoch=1)),
        (ApiKey.SHARE_GROUP_HEARTBEAT, "no subscription", always(group_id="nobody", member_id="m", member_epoch=0)),
        (
            ApiKey.SHARE_GROUP_HEARTBEAT,
            "a long member id",
            always(group_id="nobody", member_id="m" * 37, member_epoch=1),
        ),
        (
            ApiKey.SHARE_GROUP_HEARTBEAT,
            "another kind of group",
            always(group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=[topic]),
        ),
        (
            ApiKey.SHARE_GROUP_DESCRIBE,
            "unknown",
            always(group_ids=["nobody", "", group], include_authorized_operations=True),
        ),
        (ApiKey.SHARE_FETCH, "no session", _request(topic, 3, {"max_wait_ms": 0, "min_bytes": 0})),
        (ApiKey.SHARE_FETCH, "no group", _request(topic, 0, {"max_wait_ms": 0, "min_bytes": 0}, group=None)),
        (
            ApiKey.SHARE_FETCH,
            "acknowledges at once",
            _request(topic, 0, {"max_wait_ms": 0, "min_bytes": 0}, (0, 0, [1])),
        ),
        (ApiKey.SHARE_ACKNOWLEDGE, "no session", _request(topic, 1, {}, (0, 0, [1]))),
        (ApiKey.SHARE_ACKNOWLEDGE, "initial epoch", _request(topic, 0, {}, (0, 0, [1]))),
        (ApiKey.SHARE_ACKNOWLEDGE, "no member", _request(topic, 1, {}, (0, 0, [1]), member="")),
        (ApiKey.INITIALIZE_SHARE_GROUP_STATE, "nothing", always(group_id="nobody", topics=[])),
        (ApiKey.READ_SHARE_GROUP_STATE, "nothing", always(group_id="nobody", topics=[])),
        (ApiKey.WRITE_SHARE_GROUP_STATE, "nothing", always(group_id="nobody", topics=[])),
        (ApiKey.DELETE_SHARE_GROUP_STATE, "nothing", always(group_id="", topics=[])),
        (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "nothing", always(group_id="nobody", topics=[])),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "unknown group", always(groups=[{"group_id": "nobody", "topics": None}])),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "no topics", always(groups=[{"group_id": "nobody", "topics": []}])),
        (
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            "unknown topic",
            always(groups=[{"group_id": "nobody", "topics": [{"topic_name": "nobody", "partitions": [0]}]}]),
        ),
        (
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            "another kind of group",
            always(
                group_id=group,
                topics=[{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}],
            ),
        ),
        (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "no group", always(group_id="", topics=[])),
        (ApiKey.DELETE_SHARE_GROUP_OFFSETS, "unknown group", always(group_id="nobody", topics=[{"topic_name": topic}])),
    ]


def streams_cases() -> list[Any]:
    """Returns rows for the table of cases."""
    return [
        (
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            "unknown group",
            always(group_id="nobody", member_id="unknown", member_epoch=1),
        ),
        (
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            "no topology",
            always(
                group_id="nobody",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
            ),
        ),
        (
            ApiKey.STREAMS_GROUP_DESCRIBE,
            "unknown",
            always(group_ids=["nobody", ""], include_authorized_operations=True),
        ),
    ]
